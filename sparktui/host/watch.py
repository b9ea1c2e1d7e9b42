"""Findings that no log line states: what the GPUs' readings say while a server runs."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparktui.gpu.health import (
    CAP,
    LASTS_S,
    STEADY_S,
    Moment,
    Reading,
    kernel_bound,
    power_delivery_fault,
    spin_wait,
    throttling,
)
from sparktui.schema.live import Finding, GpuView

_KEEP_S = 2 * STEADY_S
_OVER_S = 1.5 * LASTS_S  # longer than a condition must last: one odd reading ends nothing
_NOTE_OVER_S = 1800.0  # a note says how this server runs: not again after every pause of the load


@dataclass(frozen=True, slots=True)
class _Rule:
    """``name``: what is over, in the line that tells its end."""

    check: Callable[[Sequence[Moment]], str | None]
    name: str
    finding: Finding

    @property
    def noted(self) -> bool:
        """Whether it is a mere note: its end is not told."""
        return self.finding.severity == "note"


def _readings(moments: Sequence[Moment]) -> list[Reading]:
    return [(moment.t, moment.gpu) for moment in moments]


_RULES = (
    _Rule(
        lambda moments: power_delivery_fault(_readings(moments)),
        "the suspected power fault",
        Finding(
            "gpu-power-fault",
            "costs speed",
            line=0,
            text="",
            meaning="The GPU is busy at a fraction of its clock and its driver names no reason: a fault in "
            "how power reaches it, seen on DGX Spark. vLLM is not to blame.",
            cost="Half the speed and less, in every step.",
            remedy="Take the power supply off the wall and off the machine for a minute; a reboot does not "
            "clear it.",
            source="several reports from GB10 owners",
        ),
    ),
    _Rule(
        spin_wait,
        "the suspected spin wait",
        Finding(
            "gpu-spin-wait",
            "costs speed",
            line=0,
            text="",
            meaning="The GPU counts as busy and draws hardly more than idle, and no token comes: a kernel "
            "waits in a loop for something that does not come, as when one rank hangs in a collective.",
            cost="The requests that run do not end.",
            remedy="Keep server.log, then relaunch. A stack of the engine (py-spy dump) names the call.",
            source="one report from a GB10 owner",
        ),
    ),
    _Rule(
        lambda moments: throttling(_readings(moments)),
        "throttling",
        Finding(
            "gpu-throttled",
            "costs speed",
            line=0,
            text="",
            meaning="The driver holds the clocks down, for heat or for the power that it is given.",
            cost="Steps take longer for as long as it lasts; figures of before and after do not compare.",
            remedy="Look at air, dust and the supply; an A/B measured meanwhile is worth repeating.",
            source="NVML's clocks event reasons",
        ),
    ),
    _Rule(
        lambda moments: throttling(_readings(moments), CAP),
        "the power cap",
        Finding(
            "gpu-power-cap",
            "note",
            line=0,
            text="",
            meaning="The GPU runs at its power limit: as built, under full load.",
            source="NVML's clocks event reasons",
        ),
    ),
    _Rule(
        kernel_bound,
        "bound by its kernels",
        Finding(
            "gpu-kernel-bound",
            "note",
            line=0,
            text="",
            meaning="Busy at low power: the time goes into launching small kernels, waiting for memory or "
            "unpacking weights, not into arithmetic. Usual for few streams; more of them cost little.",
            source="power and use while tokens came",
        ),
    ),
)


@dataclass(slots=True)
class _Episode:
    begun: float
    last: float


class GpuWatch:
    """Tells a finding once for as long as it lasts; ``note`` gets the line that it is over."""

    def __init__(
        self, tell: Callable[[Finding], object], note: Callable[[str], object] = lambda text: None
    ) -> None:
        self._tell = tell
        self._note = note
        self._moments: dict[int, deque[Moment]] = {}
        self._episodes: dict[tuple[int, str], _Episode] = {}

    def look(
        self, gpus: tuple[GpuView, ...], now: float, *, running: int | None = None, tok_s: float | None = None
    ) -> None:
        """The newest readings (one that was here before counts once), and what the server does: requests that
        run, output tok/s; None is not known. ``now``: seconds on any clock."""
        for gpu in gpus:
            moments = self._moments.setdefault(gpu.index, deque())
            if moments and moments[-1].gpu is gpu:
                continue
            moments.append(Moment(now, gpu, running, tok_s))
            while now - moments[0].t > _KEEP_S:
                moments.popleft()
            for rule in _RULES:
                self._judge(rule, gpu.index, moments)

    def _judge(self, rule: _Rule, index: int, moments: Sequence[Moment]) -> None:
        now, key = moments[-1].t, (index, rule.finding.id)
        episode, text = self._episodes.get(key), rule.check(moments)
        if text is not None:
            if episode is None:
                episode = self._episodes[key] = _Episode(now - LASTS_S, now)
                self._tell(dataclasses.replace(rule.finding, text=text))
            episode.last = now
        elif episode is not None and now - episode.last >= (_NOTE_OVER_S if rule.noted else _OVER_S):
            del self._episodes[key]
            if not rule.noted:
                lasted = episode.last - episode.begun
                self._note(f"GPU {index}: {rule.name} is over after {lasted:.0f} s")

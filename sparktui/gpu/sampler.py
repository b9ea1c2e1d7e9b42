"""A thread that reads the GPUs at 2 Hz: an ill driver blocks for seconds and must block nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from sparktui.gpu.calls import said
from sparktui.gpu.nvml import Nvml
from sparktui.schema.live import GpuView

STALE_S = 5.0  # a reading older than this is none: the driver hangs
GAP_S = 5.0  # power is not guessed across more than this


class Sensors(Protocol):
    """What is sampled: NVML, or the stand-in's. ``problem``: why there is nothing to read, else empty."""

    problem: str

    def read(self) -> tuple[GpuView, ...]: ...

    def close(self) -> None: ...


class PowerMeter:
    """Mean power and energy over a span, all GPUs together: each by its NVML energy counter where that moves,
    else by its power integrated over time (trapezoids)."""

    def __init__(self) -> None:
        self._gpus: dict[int, _Energy] = {}

    def add(self, gpus: tuple[GpuView, ...], t: float) -> None:
        """One reading at ``t`` (CLOCK_MONOTONIC seconds)."""
        for gpu in gpus:
            self._gpus.setdefault(gpu.index, _Energy()).add(t, gpu.power_w, gpu.energy_j)

    @property
    def mean_w(self) -> float | None:
        """Mean power in watts; None while any GPU's is not known."""
        means = [gpu.mean_w for gpu in self._gpus.values()]
        known = [mean for mean in means if mean is not None]
        return sum(known) if known and len(known) == len(means) else None

    @property
    def joules(self) -> float | None:
        """Energy between the first reading and the last, in joules."""
        times = [t for gpu in self._gpus.values() for t in gpu.times]
        return self.joules_over(times[-1] - times[0]) if (times := sorted(times)) else None

    def joules_over(self, seconds: float) -> float | None:
        """Energy of the measured span of ``seconds``: readings lie up to an interval inside its ends, and
        what they have in a second holds for all of it."""
        return None if self.mean_w is None else self.mean_w * seconds


class _Energy:
    """One GPU's energy: what its counter rose up to its last move, and integrated power since then. That
    bears a counter that stands still, moves in large steps or begins anew, as after a driver's reload.

    A counter's first move may be a step that began before the first reading: until then, by power.
    """

    def __init__(self) -> None:
        self.times: list[float] = []  # of the first reading that said something, and of the last
        self._settled = (0.0, 0.0)  # joules, seconds
        self._since = (0.0, 0.0)  # the same by power, since the counter's last move
        self._power: tuple[float, float] | None = None
        self._counter: tuple[float, float] | None = None
        self._moved = False  # whether the counter's last move was seen

    def add(self, t: float, watts: float | None, counter: float | None) -> None:
        if watts is None and counter is None:
            return
        self.times = [*self.times[:1], t]
        self._integrate(t, watts)
        if counter is None:
            return
        then, before = self._counter or (t, counter)
        if self._counter is None or counter < before:
            self._settle(self._since)
            self._moved = False
        elif counter > before:
            by_power = not self._moved and self._since[1] > 0
            self._settle(self._since if by_power else (counter - before, t - then))
            self._moved = True
        else:
            return
        self._counter = (t, counter)
        self._power = None if watts is None else (t, watts)

    def _integrate(self, t: float, watts: float | None) -> None:
        if watts is None:
            return
        then, before = self._power or (t, watts)
        if t - then <= GAP_S:
            joules, seconds = self._since
            self._since = (joules + (t - then) * (before + watts) / 2, seconds + t - then)
        self._power = (t, watts)

    def _settle(self, span: tuple[float, float]) -> None:
        self._settled = (self._settled[0] + span[0], self._settled[1] + span[1])
        self._since = (0.0, 0.0)

    @property
    def mean_w(self) -> float | None:
        seconds = self._settled[1] + self._since[1]
        return (self._settled[0] + self._since[0]) / seconds if seconds > 0 else None


class GpuSampler:
    """Reads in a thread of its own, from ``start`` on. ``now``: CLOCK_MONOTONIC seconds."""

    def __init__(
        self,
        interval_s: float = 0.5,
        make: Callable[[], Sensors] = Nvml,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._interval_s = interval_s
        self._make = make
        self._now = now
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._meters: list[PowerMeter] = []
        self._thread = threading.Thread(target=self._run, name="nvml", daemon=True)
        self._latest: tuple[GpuView, ...] = ()
        self._problem = ""
        self._read_at: float | None = None
        self._asked_at: float | None = None  # while the driver owes an answer

    @property
    def latest(self) -> tuple[GpuView, ...]:
        """The last reading; empty when that failed or is older than five seconds."""
        age = self.age_s()
        return self._latest if age is not None and age <= STALE_S else ()

    @property
    def problem(self) -> str:
        """Why the GPUs can't be read now; else empty."""
        asked_at = self._asked_at
        silent = 0.0 if asked_at is None else self._now() - asked_at
        return f"no answer from the driver for {silent:.0f} s" if silent > STALE_S else self._problem

    def age_s(self) -> float | None:
        """Seconds since the last reading that succeeded; None: there was none."""
        return None if self._read_at is None else self._now() - self._read_at

    def start(self) -> None:
        """Begin to read. Once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; does not wait for a driver that hangs."""
        self._stop.set()

    def measure(self) -> PowerMeter:
        """A meter that is fed until ``release``."""
        meter = PowerMeter()
        with self._lock:
            self._meters.append(meter)
        return meter

    def release(self, meter: PowerMeter) -> None:
        """Feed this meter no more."""
        with self._lock:
            self._meters.remove(meter)

    def _run(self) -> None:
        self._asked_at = self._now()
        sensors = self._make()
        while True:
            self._read(sensors)
            if self._stop.wait(self._interval_s):
                break
        sensors.close()

    def _read(self, sensors: Sensors) -> None:
        begun = self._asked_at = self._now()
        try:
            gpus, problem = sensors.read(), sensors.problem
        except Exception as exc:  # the next reading may succeed
            gpus, problem = (), said(exc)
        ended = self._now()
        if gpus:
            self._read_at = ended
        self._latest, self._problem, self._asked_at = gpus, problem, None
        with self._lock:
            for meter in self._meters:
                meter.add(gpus, (begun + ended) / 2)

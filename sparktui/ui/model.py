"""What a screen knows of a run, gathered from snapshots and events. No Textual here: a test needs no app."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from sparktui.client.freshness import fresh
from sparktui.schema.codec import SchemaError, from_plain
from sparktui.schema.live import Event, Expectation, Figures, Finding, Snapshot
from sparktui.schema.messages import Finished
from sparktui.schema.records import Cell, PrefixProbe, Report
from sparktui.ui.format import per_stream, watts
from sparktui.ui.gpu_text import power_flag

HISTORY = 600  # five minutes at two snapshots a second
_LEVEL_SAMPLES = 10
SERIES = ("output", "chunks", "decode", "stream_chunks", "ttft", "kv", "power", "acceptance", "running")
NO_LINK = "no connection"
_SCRAPED = ("output", "kv", "acceptance", "running")  # from /metrics


def _ring() -> deque[float | None]:
    return deque(maxlen=HISTORY)


@dataclass
class RunModel:
    """One run as its events tell it. Findings belong to the boot of their variant."""

    title: str = ""
    snapshot: Snapshot | None = None
    events: list[Event] = field(default_factory=list)
    history: dict[str, deque[float | None]] = field(default_factory=lambda: {s: _ring() for s in SERIES})
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    dismissed: set[str] = field(default_factory=set)
    cells: list[Cell] = field(default_factory=list)
    report: Report | None = None
    probe: PrefixProbe | None = None
    arms: tuple[str, ...] = ()  # of the newest A/B
    boots: dict[str, dict[str, Any]] = field(default_factory=dict)  # what was told of a variant's last boot
    finished: Finished | None = None
    lost: str = ""  # why there is no connection now
    variant: str = ""
    levels: dict[tuple[str, int], float] = field(default_factory=dict)  # decode tok/s by variant and load
    _booting: str = ""
    _told: tuple[Any, tuple[Finding, ...]] = (None, ())
    _marks: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=50))
    _samples: int = 0
    _loads: deque[int] = field(default_factory=lambda: deque(maxlen=_LEVEL_SAMPLES))
    _flags: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=HISTORY))
    _known: dict[str, float] = field(default_factory=dict)  # unix seconds of the last value, by series

    def take_snapshot(self, snapshot: Snapshot) -> None:
        """One sample more in each series."""
        previous, self.snapshot, self.lost = self.snapshot, snapshot, ""
        figures = fresh(snapshot)
        values = {
            "output": figures.output_tok_s
            if figures.output_tok_s is not None
            else figures.client_output_tok_s,
            "chunks": figures.client_chunks_s,
            "decode": figures.decode_tok_s,
            "stream_chunks": per_stream(figures.client_chunks_s, snapshot.load),
            "ttft": figures.ttft_ms,
            "kv": None if figures.kv_usage is None else figures.kv_usage * 100,
            "power": watts(snapshot),
            "acceptance": figures.acceptance_rate,
            "running": figures.running,
        }
        if snapshot.server.state == "booting":
            self._known.clear()
        for name, value in values.items():
            self.history[name].append(value)
            if value is not None:
                self._known[name] = snapshot.t - _silence(name, snapshot)
        self._samples += 1
        if flag := power_flag(snapshot):
            self._flags.append((self._samples, flag))
        self._loads.append(snapshot.load.asked)
        if previous is not None and previous.load.asked != snapshot.load.asked:
            self._marks.append((self._samples, str(snapshot.load.asked)))
        self._follow_variant(snapshot.server.variant)
        self._remember_level()

    def lose(self, why: str) -> None:
        """No snapshot comes any more: the last one's figures are not of now."""
        if self.snapshot is None or self.lost:
            self.lost = why
            return
        self.lost = why
        figures = Figures(self.snapshot.figures.window_s)
        self.snapshot = replace(self.snapshot, figures=figures, gpus=(), gpu_problem=NO_LINK, memory=None)
        for series in self.history.values():
            series.append(None)
        self._samples += 1

    def age(self, name: str) -> float | None:
        """Seconds since this series was told; None while it has a value, and when it never had."""
        known = self._known.get(name)
        if known is None or self.snapshot is None or self.history[name][-1] is not None:
            return None
        return self.snapshot.t - known

    def others(self) -> int:
        """Requests on the server that are not ours."""
        return (self.snapshot.figures.others_running or 0) if self.snapshot else 0

    def take_event(self, event: Event) -> None:
        """Findings, cells and reports are carried by events: a terminal that comes late misses nothing."""
        self.events.append(event)
        data = event.data
        try:
            if event.kind == "finding":
                self.findings.setdefault(self.booting, []).append(from_plain(Finding, data))
            elif "started" in data:
                self._booting = str(data["started"])
                self.findings[self._booting] = []
            elif "adopted" in data:  # a new host tells the findings again
                self._booting = str(data["adopted"])
                self.findings[self._booting] = []
            elif "begun" in data:
                self.cells, self.report = [], None
                self.arms = tuple(str(arm) for arm in data["begun"])
            elif "facts" in data and "variant" in data:
                self.boots[str(data["variant"])] = data
            elif "cell" in data:
                self.cells.append(from_plain(Cell, data["cell"]))
            elif "report" in data:
                self.report = from_plain(Report, data["report"])
            elif "prefix_probe" in data:
                self.probe = from_plain(PrefixProbe, data["prefix_probe"])
        except SchemaError:
            return  # another version's data: its text is still shown

    @property
    def booting(self) -> str:
        """The variant whose log the newest findings come from."""
        return self._booting or self.variant

    def _follow_variant(self, variant: str) -> None:
        if variant and variant != self.variant:
            self.variant = variant

    def _remember_level(self) -> None:
        recent = [v for v in list(self.history["decode"])[-_LEVEL_SAMPLES:] if v is not None]
        state = self.snapshot.server.state if self.snapshot else ""
        loads = set(self._loads)
        if len(recent) == _LEVEL_SAMPLES and state == "ready" and len(loads) == 1:
            self.levels[self.variant, loads.pop()] = median(recent)

    @property
    def marks(self) -> list[tuple[int, str]]:
        """Load changes as (samples ago, new load)."""
        return [(self._samples - at, text) for at, text in self._marks if self._samples - at < HISTORY]

    @property
    def flags(self) -> list[tuple[int, str]]:
        """GPU trouble as (samples ago, sign): ``▲`` throttled, ``°`` hot."""
        return [(self._samples - at, sign) for at, sign in self._flags if self._samples - at < HISTORY]

    def ghost(self) -> tuple[float | None, str]:
        """The other arm's decode tok/s at this load: measured, else as last seen live."""
        asked = self.snapshot.load.asked if self.snapshot else 0
        for cell in reversed(self.cells):
            if cell.variant != self.variant and cell.concurrency == asked and cell.decode_tok_s is not None:
                return cell.decode_tok_s, cell.variant
        for (variant, load), level in self.levels.items():
            if variant != self.variant and load == asked:
                return level, variant
        return None, ""

    def current_findings(self) -> list[Finding]:
        """Of the newest boot, as they were first said."""
        return self.findings.get(self.booting, [])

    def counted_findings(self) -> tuple[Finding, ...]:
        """Of the newest boot, with how often each was said so far."""
        current = self.current_findings()
        repeats = self.snapshot.repeats if self.snapshot else {}
        key = (self.booting, len(current), tuple(repeats.items()))
        if key != self._told[0]:
            self._told = key, _counted(current, dict(repeats))
        return self._told[1]

    def only_here(self) -> list[Finding]:
        """Findings of this boot that the other arms' boots (without an A/B, other variants') did not have."""
        elsewhere = [v for v in self.findings if v != self.booting and (not self.arms or v in self.arms)]
        if not elsewhere:
            return []
        known = {f.id for variant in elsewhere for f in self.findings[variant]}
        return [f for f in self.current_findings() if f.id not in known]

    def warnings(self) -> list[Finding]:
        """Findings above note of this boot that were not dismissed."""
        return [
            f
            for f in self.current_findings()
            if f.severity not in ("note", "harmless") and f.id not in self.dismissed
        ]

    def unmet(self) -> list[Expectation]:
        """What the profile expects in the log and this boot did not say."""
        return [e for e in self.snapshot.expected if e.met is False] if self.snapshot else []


def _silence(name: str, snapshot: Snapshot) -> float:
    """Seconds since what a series shows was told: a figure is kept for a while before it is given up."""
    figures = snapshot.figures
    if name == "power":
        return snapshot.gpu_age_s or 0.0
    scraped = name in _SCRAPED or (name == "decode" and figures.decode_source == "server")
    return max(snapshot.server.stalled_s or 0.0, (figures.scrape_age_s or 0.0) if scraped else 0.0)


def _counted(findings: list[Finding], counts: dict[str, int]) -> tuple[Finding, ...]:
    """The first finding of an id has its count; a finding that knows a higher one keeps that."""
    told = []
    for finding in findings:
        count = counts.pop(finding.id, 1)
        told.append(replace(finding, count=count) if count > finding.count else finding)
    return tuple(told)

"""What earlier runs of a profile told: verdicts, seconds of boots and their phases, figures by load."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from sparktui.rundir import RunDir, RunError, all_runs
from sparktui.schema.codec import SchemaError, from_plain, loads
from sparktui.schema.launch import MeasureSpec
from sparktui.schema.live import BootPhase, Event
from sparktui.schema.records import ArmReport, Cell, Report, RunRecord
from sparktui.schema.text import printable

_MOST_RUNS = 200
_BOOTS_KEPT = 5
_EVENT_BYTES = 1 << 20  # boots come first; a run that serves for weeks tells much afterwards
_REPORT_BYTES = 16 << 20
_READY = re.compile(r"(.+): ready after (\d+(?:\.\d+)?) s")
_BEGUN = re.compile(r"(.+): (started|adopted), pid \d+")


@dataclass(frozen=True, slots=True)
class KnownCell:
    """What a variant has reached at a load, best of all windows: of those without flags, if there are any.

    The two figures may come from two windows. ``at``: unix seconds of the newest report with this cell.
    """

    output_tok_s: float | None
    decode_tok_s: float | None  # per stream
    at: float
    windows: int


@dataclass(frozen=True, slots=True)
class ProfileHistory:
    """``boot_s``: seconds of the last boots by variant, newest first, five at most. ``phase_s``: seconds by
    phase of the last good boot, by variant. ``cells``: by variant and concurrency, newest first."""

    profile: str
    last_verdict: str | None = None  # headline of the newest report that has one
    verdict_at: float | None = None  # unix seconds
    boot_s: dict[str, tuple[float, ...]] = field(default_factory=dict)
    phase_s: dict[str, dict[str, float]] = field(default_factory=dict)
    cells: dict[tuple[str, int], KnownCell] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Boot:
    variant: str
    t: float  # unix seconds
    seconds: float
    phases: dict[str, float]


@dataclass(slots=True)
class _Told:
    """Everything read about one profile."""

    boots: list[_Boot] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)


def history_of(profile_name: str) -> ProfileHistory:
    """Of one profile; an empty history when nothing is known."""
    told = _read(profile_name).get(profile_name)
    return _history(profile_name, told) if told else ProfileHistory(profile_name)


def histories() -> dict[str, ProfileHistory]:
    """By profile name, from the newest 200 runs. Files that can't be read are passed over."""
    return {name: _history(name, told) for name, told in _read(None).items()}


def expected_minutes(
    history: ProfileHistory, arms: Sequence[str], loads: Sequence[int], measure: MeasureSpec, rounds: int
) -> float | None:
    """Minutes that an A/B will take, None when no boot of the profile is known.

    ``rounds × Σ_arms (boot + |loads| × (settle_s + (min_window_s + max_window_s) / 2)) / 60``, where boot is
    the median of the variant's last boots; for a variant that never booted, the longest of the others'
    medians. Not in it: warm-up requests, stops, a window that is repeated, and the boot of what serves
    afterwards.
    """
    medians = {variant: median(seconds) for variant, seconds in history.boot_s.items() if seconds}
    if not medians:
        return None
    unknown = max(medians.values())
    window_s = (measure.min_window_s + measure.max_window_s) / 2
    measured_s = len(loads) * (measure.settle_s + window_s)
    return rounds * sum(medians.get(arm, unknown) + measured_s for arm in arms) / 60


def _read(wanted: str | None) -> dict[str, _Told]:
    found: dict[str, _Told] = {}
    for run, record in _records():
        if wanted not in (None, record.profile):
            continue
        told = found.setdefault(record.profile, _Told())
        report = _report(run)
        if report is not None:
            told.reports.append(report)
        told.boots += _boots(run, report)
    for told in found.values():
        told.reports.sort(key=lambda report: report.created, reverse=True)
        told.boots.sort(key=lambda boot: boot.t, reverse=True)
    return found


def _records() -> Iterator[tuple[RunDir, RunRecord]]:
    try:
        runs = all_runs()[:_MOST_RUNS]
    except OSError:
        return
    for run in runs:
        try:
            record = run.record()
        except RunError:
            continue
        yield run, record


def _report(run: RunDir) -> Report | None:
    try:
        if (run.path / "report.json").stat().st_size > _REPORT_BYTES:
            return None
        return run.report()
    except (OSError, RunError):
        return None


def _boots(run: RunDir, report: Report | None) -> list[_Boot]:
    """Boots that ended well. Events know each one, a report the first of each arm and its phases."""
    arms = {arm.name: arm for arm in report.arms} if report else {}
    boots: list[_Boot] = []
    seen: set[str] = set()
    for boot in _told_boots(run):
        phases = boot.phases
        if boot.variant in arms and boot.variant not in seen:
            phases = phases or _seconds(arms[boot.variant].phases)
        seen.add(boot.variant)
        boots.append(_Boot(boot.variant, boot.t, boot.seconds, phases))
    if report is not None and not boots:
        boots = [_reported(arm, arm.boot_s, report) for arm in report.arms if arm.boot_s is not None]
    return boots


def _reported(arm: ArmReport, seconds: float, report: Report) -> _Boot:
    return _Boot(arm.name, report.created, seconds, _seconds(arm.phases))


def _told_boots(run: RunDir) -> Iterator[_Boot]:
    """From events.jsonl. After an adoption "ready" counts the time that the server has run, not its boot."""
    adopted: set[str] = set()
    for event in _server_events(run):
        if begun := _BEGUN.fullmatch(event.text):
            (adopted.add if begun[2] == "adopted" else adopted.discard)(begun[1])
        elif (boot := _boot(event)) and boot.variant not in adopted:
            yield boot


def _server_events(run: RunDir) -> Iterator[Event]:
    try:
        with run.events.open("rb") as file:
            lines = file.read(_EVENT_BYTES).splitlines()
    except OSError:
        return
    for line in lines:
        if b'"server"' not in line:
            continue
        try:
            event = loads(Event, line)
        except SchemaError:
            continue
        if event.kind == "server":
            yield event


def _boot(event: Event) -> _Boot | None:
    """From its data (``variant``, ``boot_s``, ``phases``) if it has any, else from ``X: ready after N s``."""
    found = _READY.fullmatch(event.text)
    if found is None:
        return None
    variant, seconds = event.data.get("variant"), event.data.get("boot_s")
    if not isinstance(variant, str):
        variant = found[1]
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        seconds = float(found[2])
    return _Boot(variant, event.t, float(seconds), _phases(event.data.get("phases")))


def _phases(plain: Any) -> dict[str, float]:
    try:
        return _seconds([from_plain(BootPhase, phase) for phase in plain or ()])
    except (SchemaError, TypeError):
        return {}


def _seconds(phases: Sequence[BootPhase]) -> dict[str, float]:
    """Without "ready", which is an instant."""
    return {p.name: p.seconds for p in phases if p.seconds is not None and p.name != "ready"}


def _history(name: str, told: _Told) -> ProfileHistory:
    verdict, at = _last_verdict(told.reports)
    boot_s: dict[str, tuple[float, ...]] = {}
    phase_s: dict[str, dict[str, float]] = {}
    for boot in told.boots:
        boot_s[boot.variant] = (*boot_s.get(boot.variant, ()), boot.seconds)[:_BOOTS_KEPT]
        if boot.phases:
            phase_s.setdefault(boot.variant, boot.phases)
    return ProfileHistory(name, verdict, at, boot_s, phase_s, _cells(told.reports))


def _last_verdict(reports: Sequence[Report]) -> tuple[str | None, float | None]:
    """The first headline of the newest report that has one; one that was measured before one that wasn't."""
    for report in reports:
        headlines = [verdict for verdict in report.verdicts if verdict.headline]
        if headlines:
            best = min(headlines, key=lambda verdict: verdict.call == "could not measure")
            return printable(" ".join(best.text.split())), report.created
    return None, None


def _cells(reports: Sequence[Report]) -> dict[tuple[str, int], KnownCell]:
    windows: dict[tuple[str, int], list[Cell]] = {}
    newest: dict[tuple[str, int], float] = {}
    for report in reports:
        for arm in report.arms:
            for cell in arm.cells:
                key = (arm.name, cell.concurrency)
                windows.setdefault(key, []).append(cell)
                newest.setdefault(key, report.created)
    return {key: _known(cells, newest[key]) for key, cells in windows.items()}


def _known(cells: Sequence[Cell], at: float) -> KnownCell:
    sound = [cell for cell in cells if not cell.flags] or cells
    output = [cell.output_tok_s for cell in sound if cell.output_tok_s is not None]
    decode = [cell.decode_tok_s for cell in sound if cell.decode_tok_s is not None]
    return KnownCell(max(output, default=None), max(decode, default=None), at, len(cells))

"""What earlier runs of a profile told: verdicts, seconds of boots and their phases, figures by load."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from sparktui.rundir import RunDir, RunError, all_runs
from sparktui.schema.codec import SchemaError, from_plain, loads
from sparktui.schema.launch import MeasureSpec
from sparktui.schema.live import BootPhase, Event
from sparktui.schema.records import Cell, Report, RunRecord
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
class FailedBoot:
    """A boot that ended in an error. ``argv`` is empty where the run doesn't tell it."""

    cause: str
    argv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileHistory:
    """By variant, newest first. ``boot_s``: seconds of the last boots, five at most. ``phase_s``: seconds by
    phase of the last good boot. ``quiet_s``: longest silence by phase of those five boots. ``failed``: boots
    since the last good one, five at most. ``cells``: by variant and concurrency."""

    profile: str
    last_verdict: str | None = None  # headline of the newest report that has one
    verdict_at: float | None = None  # unix seconds
    boot_s: dict[str, tuple[float, ...]] = field(default_factory=dict)
    phase_s: dict[str, dict[str, float]] = field(default_factory=dict)
    quiet_s: dict[str, dict[str, float]] = field(default_factory=dict)
    failed: dict[str, tuple[FailedBoot, ...]] = field(default_factory=dict)
    cells: dict[tuple[str, int], KnownCell] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Boot:
    variant: str
    t: float  # unix seconds
    seconds: float
    phases: tuple[BootPhase, ...] = ()
    failure: FailedBoot | None = None


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
    """Events know each boot, a report the first good one of each arm and its phases."""
    arms = {arm.name: arm for arm in report.arms} if report else {}
    boots: list[_Boot] = []
    seen: set[str] = set()
    for boot in _told_boots(run):
        if boot.failure is None:
            if boot.variant in arms and boot.variant not in seen:
                boot = replace(boot, phases=boot.phases or arms[boot.variant].phases)
            seen.add(boot.variant)
        boots.append(boot)
    if report is not None and not seen:
        reported = (_Boot(arm.name, report.created, arm.boot_s or 0.0, arm.phases) for arm in report.arms
                    if arm.boot_s is not None)  # fmt: skip
        boots += reported
    return boots


def _told_boots(run: RunDir) -> Iterator[_Boot]:
    """From events.jsonl. After an adoption "ready" counts the time that the server has run, not its boot.

    An error between a start and "ready" is that of a failed boot.
    """
    adopted: set[str] = set()
    starting: dict[str, tuple[str, ...]] = {}  # with their argv
    for event in _server_events(run):
        if begun := _BEGUN.fullmatch(event.text):
            (adopted.add if begun[2] == "adopted" else adopted.discard)(begun[1])
            if begun[2] == "started":
                starting[begun[1]] = _argv(event.data.get("argv"))
        elif boot := _boot(event):
            starting.pop(boot.variant, None)
            if boot.variant not in adopted:
                yield boot
        elif event.level == "error":
            variant = next((name for name in starting if event.text.startswith(f"{name}: ")), None)
            if variant is not None:
                cause = event.text.removeprefix(f"{variant}: ")
                yield _Boot(variant, event.t, 0.0, failure=FailedBoot(cause, starting.pop(variant)))


def _argv(plain: Any) -> tuple[str, ...]:
    return tuple(plain) if isinstance(plain, list) and all(isinstance(arg, str) for arg in plain) else ()


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


def _phases(plain: Any) -> tuple[BootPhase, ...]:
    try:
        return tuple(from_plain(BootPhase, phase) for phase in plain or ())
    except (SchemaError, TypeError):
        return ()


def _seconds(phases: Sequence[BootPhase]) -> dict[str, float]:
    """Without "ready", which is an instant."""
    return {p.name: p.seconds for p in phases if p.seconds is not None and p.name != "ready"}


def _silences(boots: Sequence[_Boot]) -> dict[str, float]:
    """The longest by phase. A boot without any is of a sparktui that didn't note them."""
    longest: dict[str, float] = {}
    for boot in boots:
        if any(phase.quiet_s for phase in boot.phases):
            for phase in boot.phases:
                if phase.name != "ready":
                    longest[phase.name] = max(longest.get(phase.name, 0.0), phase.quiet_s)
    return longest


def _history(name: str, told: _Told) -> ProfileHistory:
    verdict, at = _last_verdict(told.reports)
    good: dict[str, list[_Boot]] = {}
    failed: dict[str, list[FailedBoot]] = {}
    for boot in told.boots:
        if boot.failure is None:
            good.setdefault(boot.variant, []).append(boot)
        elif boot.variant not in good:
            failed.setdefault(boot.variant, []).append(boot.failure)
    last = {variant: boots[:_BOOTS_KEPT] for variant, boots in good.items()}
    phase_s = {
        variant: next((seconds for boot in boots if (seconds := _seconds(boot.phases))), {})
        for variant, boots in good.items()
    }
    quiet_s = {variant: _silences(boots) for variant, boots in last.items()}
    return ProfileHistory(
        name,
        verdict,
        at,
        {variant: tuple(boot.seconds for boot in boots) for variant, boots in last.items()},
        {variant: seconds for variant, seconds in phase_s.items() if seconds},
        {variant: silences for variant, silences in quiet_s.items() if silences},
        {variant: tuple(boots[:_BOOTS_KEPT]) for variant, boots in failed.items()},
        _cells(told.reports),
    )


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

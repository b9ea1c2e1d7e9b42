"""A boot report as text of 80 columns, and as JSON."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sparktui.bootlog.explain import LogBoot
from sparktui.bootlog.graphsteps import graph_words
from sparktui.bootlog.subjects import ARGUMENTS, boot_seconds, by_subject, shown
from sparktui.schema.bootlog import BootReport
from sparktui.schema.live import BootPhase, Finding
from sparktui.schema.text import printable

_MARKS = {"boot fails": "✖", "wrong results possible": "✖", "costs speed": "▲", "costs memory": "▲"}
WIDTH = 80
_LONG = 1200  # characters of a log text; of a longer one the middle is left out


def wrapped(text: str, first: str = "", indent: str = "  ") -> list[str]:
    """Lines of at most 80 columns; ``first`` begins the first one, ``indent`` the others."""
    text = printable(text, keep="\t\n")  # control codes have no width
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)


def as_json(boot: LogBoot) -> dict[str, Any]:
    """The keys that scripts read; a phase's ``start`` and ``seconds`` are in seconds."""
    report: dict[str, Any] = plain(boot.report)
    report["phases"] = [_phase(phase) for phase in boot.report.phases]
    place = {"boot": boot.number, "boots": boot.of}
    return report | place | {"first_line": boot.first_line, "last_line": boot.last_line}


def _phase(phase: BootPhase) -> dict[str, Any]:
    seconds = {"start": phase.start_s, "seconds": phase.seconds, "quiet": phase.quiet_s}
    return {"name": phase.name, **seconds}


def plain(value: Any) -> Any:
    """What JSON can carry: dataclasses become objects, figures that aren't finite null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lines(boot: LogBoot, *, everything: bool = False) -> Iterator[str]:
    """The report for people. ``everything``: harmless findings too, notes in full."""
    report = boot.report
    yield from _head(boot)
    yield from _block("Findings", _findings(report, everything))
    yield from _block("Expected", _expected(report))
    yield from _block("Phases", _phases(report.phases))
    yield from _block("Facts", _facts(report))


def _block(title: str, body: Iterable[str]) -> Iterator[str]:
    told = list(body)
    if told:
        yield from ("", title, *told)


def _head(boot: LogBoot) -> Iterator[str]:
    report = boot.report
    version = f"vLLM {report.vllm_version}" if report.vllm_version else "vLLM of unknown version"
    yield from wrapped(f"{version}, {_outcome(report)}")
    if boot.of > 1:
        place = f"boot {boot.number} of {boot.of}, lines {boot.first_line}-{boot.last_line}"
        yield f"{place}; --boot N for another"
    if report.root_cause is not None:
        yield from wrapped(f"✖ root cause: {report.root_cause}", indent="    ")


def _outcome(report: BootReport) -> str:
    seconds = boot_seconds(report)
    if report.ready:
        ready = "ready" if seconds is None else f"ready after {seconds:.0f} s"
        return ready if report.root_cause is None else f"{ready}, failed later"
    where = f"in phase {report.phases[-1].name}"
    return f"the boot failed {where}" if report.root_cause is not None else f"not ready: the log ends {where}"


def _findings(report: BootReport, everything: bool) -> Iterator[str]:
    lines_of = {finding.id: finding.line for finding in reversed(report.findings)}
    notes = [f for f in report.findings if f.severity == "note"]
    harmless = [f for f in report.findings if f.severity == "harmless"]
    for finding in report.findings:
        if everything or finding.severity in _MARKS:
            yield from _finding(finding, lines_of)
    if not everything:
        width = max((len(_place(note)) for note in notes), default=0)
        yield from (_note(note, width) for note in notes)
        if harmless:
            yield f"  {len(harmless)} harmless (--all lists {'it' if len(harmless) == 1 else 'them'})"


def _finding(finding: Finding, lines_of: Mapping[str, int]) -> Iterator[str]:
    yield f"{_MARKS.get(finding.severity, '·')} {finding.severity}, {_place(finding)} [{finding.id}]"
    if finding.text:
        yield from wrapped(_without_middle(finding.text, _LONG), first="    ", indent="    ")
    told = {
        "means": finding.meaning,
        "cost": finding.cost
        and " ".join(filter(None, (finding.cost, finding.source and f"({finding.source})"))),
        "by": "" if finding.cost else finding.source,
        "do": finding.remedy,
        "flag": finding.flag if finding.flag not in finding.remedy else "",
        "cause": _cause(finding, lines_of),
    }
    for label, text in told.items():
        if text:
            yield from wrapped(f"{label + ':':<7}{text}", first="  ", indent=" " * 9)


def _place(finding: Finding) -> str:
    """``line 34, ×6``."""
    where = f"line {finding.line}" if finding.line else "no line"
    return where if finding.count == 1 else f"{where}, ×{finding.count}"


def _cause(finding: Finding, lines_of: Mapping[str, int]) -> str:
    if not finding.cause:
        return ""
    line = lines_of.get(finding.cause, 0)
    return f"because of line {line} [{finding.cause}]" if line else f"because of {finding.cause}"


def _note(finding: Finding, width: int) -> str:
    """One line. What doesn't fit is left out in the middle: a log line's end often says what happens."""
    head = f"· {_place(finding):<{width}}  "
    return head + _without_middle(printable(finding.text or finding.meaning), WIDTH - len(head))


def _without_middle(text: str, most: int) -> str:
    """At most so many characters, cut between words where there are any."""
    if len(text) <= most:
        return text
    after = text[len(text) - most * 4 // 9 :]
    after = after.partition(" ")[2] or after
    before = text[: most - len(after) - 3]
    return f"{before.rpartition(' ')[0] or before} … {after}"


def _expected(report: BootReport) -> Iterator[str]:
    for expected in report.expected:
        mark, where = ("✔", f" (line {expected.line})") if expected.met else ("✖", " (missing)")
        yield from wrapped(f"{mark} {expected.text}{where}", first="  ", indent="    ")


def _phases(phases: Sequence[BootPhase]) -> Iterator[str]:
    """Seconds of each; the last one of a boot that isn't ready has no end."""
    told = [f"{phase.name} {_seconds(phase)}" for phase in phases if phase.name != "ready"]
    if len(told) > 1:
        yield from wrapped(" · ".join(told) + " (seconds)", first="  ", indent="  ")


def _seconds(phase: BootPhase) -> str:
    return "—" if phase.seconds is None else f"{phase.seconds:.0f}"


def _facts(report: BootReport) -> Iterator[str]:
    for subject, values in by_subject(report.facts).items():
        told = [f"{name} {shown(value)}" for name, value in values.items()]
        yield from wrapped(f"{subject}: {' · '.join(told)}", first="  ", indent="    ")
    if report.ready or report.graph_steps is not None:
        yield from wrapped(
            f"steps: {graph_words(report.graph_steps, report.facts)}", first="  ", indent="    "
        )
    given = report.facts.get(ARGUMENTS)
    if given is not None:
        text = " · ".join(f"{n}={v}" for n, v in given.items()) if isinstance(given, dict) else str(given)
        yield from wrapped(f"arguments: {_without_middle(text, _LONG)}", first="  ", indent="    ")

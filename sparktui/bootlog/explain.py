"""A whole boot log, read once: one boot of it, explained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sparktui.bootlog.boots import BootSplitter
from sparktui.bootlog.clock import LogClock
from sparktui.bootlog.lines import Line
from sparktui.bootlog.reader import BootReader
from sparktui.bootlog.rules import SEVERITIES, Rule
from sparktui.schema.bootlog import BootReport
from sparktui.schema.codec import SCHEMA_VERSION
from sparktui.schema.live import Expectation, Finding

_ANNOUNCEMENTS = ("core-fail", "core-init-fail")


class NoBoot(ValueError):
    """The log doesn't hold what was asked for: not a line of vLLM, or fewer boots."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the log is held against. ``expect``: texts that it should hold; ``argv``: the command line that
    was started; ``rules``: None for the shipped ones."""

    expect: Sequence[str] = ()
    argv: Sequence[str] | None = None
    speculating: bool | None = None
    rules: tuple[Rule, ...] | None = None


@dataclass(frozen=True, slots=True)
class LogBoot:
    """One boot of a log: which of how many, and its first and last line in the file, from 1."""

    report: BootReport
    number: int
    of: int
    first_line: int
    last_line: int


def explain(chunks: Iterable[bytes], asked: Asked | None = None, boot: int | None = None) -> BootReport:
    """What one boot of a log says: see ``find_boot``."""
    return find_boot(chunks, asked, boot).report


def find_boot(chunks: Iterable[bytes], asked: Asked | None = None, boot: int | None = None) -> LogBoot:
    """Boot number ``boot`` of a log, counted from 1; the last one when None.

    Seconds come from the log's own time stamps. Line numbers are those of the log. The log is read once, in
    bounded memory. Raises NoBoot.
    """
    reading = _Reading(asked or Asked(), boot)
    splitter = BootSplitter()
    for chunk in chunks:
        reading.take(splitter.feed(chunk))
    reading.take(splitter.flush())
    reading.end_boot()
    if not reading.of_vllm and not splitter.started:
        raise NoBoot("not a line of vLLM in it")
    if reading.found is None:
        raise NoBoot(f"it holds {_boots(reading.number)}; there is no boot {boot}")
    return replace(reading.found, of=reading.number)


def gravity(finding: Finding) -> tuple[int, int, int]:
    """Sorts findings: gravest first, among equals those about CUDA graphs, then in the log's order; what only
    says that something failed stands behind what did."""
    rank = 0 if finding.id.startswith("cg-") else 2 if finding.id in _ANNOUNCEMENTS else 1
    return SEVERITIES.index(finding.severity), rank, finding.line


class _Reading:
    """The boots of a log, one after the other; only the wanted one is kept."""

    def __init__(self, asked: Asked, wanted: int | None) -> None:
        self.number = 1
        self.found: LogBoot | None = None
        self.of_vllm = False
        self._asked = asked
        self._wanted = wanted
        self._lines = 0  # complete ones of the file so far
        self._before = 0  # of these, before this boot
        self._unfinished = False
        self._reader = self._new_reader()

    def take(self, pieces: Iterable[tuple[bool, bytes]]) -> None:
        for begins, data in pieces:
            if begins:
                self.end_boot()
                self.number += 1
                self._before = self._lines
                self._reader = self._new_reader()
            if self._reader is not None:
                self._look(self._reader.feed(data))
            self._lines += data.count(b"\n")
            self._unfinished = not data.endswith(b"\n")

    def end_boot(self) -> None:
        if self._reader is None:
            return
        self._look(self._reader.flush())
        last = self._lines + self._unfinished
        report = _report(self._reader, self._before, last - self._before)
        self.of_vllm = self.of_vllm or bool(report.findings)
        self.found = LogBoot(report, self.number, self.number, self._before + 1, last)

    def _new_reader(self) -> BootReader | None:
        if self._wanted not in (None, self.number):
            return None
        asked = self._asked
        return BootReader(
            None,
            asked.rules,
            clock=LogClock(),
            expect=asked.expect,
            argv=asked.argv,
            speculating=asked.speculating,
        )

    def _look(self, lines: list[Line]) -> None:
        if not self.of_vllm:
            self.of_vllm = any(line.source is not None or line.process is not None for line in lines)


def _report(reader: BootReader, before: int, lines: int) -> BootReport:
    """What the reader knows, with the line numbers of the whole log."""
    findings = [_moved_finding(finding, before) for finding in reader.findings]
    facts = reader.facts
    version = facts.get("vllm_version")
    return BootReport(
        schema=SCHEMA_VERSION,
        vllm_version=None if version is None else str(version),
        ready=reader.ready,
        phases=reader.phases,
        findings=tuple(sorted(findings, key=gravity)),
        facts=facts,
        expected=tuple(_moved_expectation(expected, before) for expected in reader.expected),
        root_cause=reader.root_cause,
        graph_steps=reader.all_graph_steps,
        lines=lines,
    )


def _moved_finding(finding: Finding, before: int) -> Finding:
    return replace(finding, line=finding.line + before) if finding.line else finding


def _moved_expectation(expected: Expectation, before: int) -> Expectation:
    return replace(expected, line=expected.line + before) if expected.line else expected


def _boots(count: int) -> str:
    return "one boot" if count == 1 else f"{count} boots"

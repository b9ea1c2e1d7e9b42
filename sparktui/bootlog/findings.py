"""Collects what the rules say about a log: each thing once, weighed by what is known of the server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from sparktui.bootlog.context import Context
from sparktui.bootlog.lines import Line
from sparktui.bootlog.literals import Literals
from sparktui.bootlog.rules import WITH_CAUSE, Rule, release
from sparktui.schema.live import Finding, Severity

_MOST_EACH = (
    100  # findings of a rule whose texts count apart: a server that fails for days must not fill memory
)
_MOST_ADDED = 200
_DEATHS = ("core-", "worker-", "exec-", "cuda-", "nccl-", "port-")
_OPEN_RECORDS = 32  # records that may still go on; processes take turns


@dataclass(slots=True)
class _Entry:
    finding: Finding
    rule: Rule | None = None  # None: found outside the rules
    reported: bool = False
    survived: bool = False  # said while the server served, and no death of a process: a request's failure


class FindingLog:
    """Findings in the order in which they were made. Memory is bounded, however long the log."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = _by_literal(tuple(rules))
        self._entries: list[_Entry] = []
        self._by_text: dict[
            tuple[str, str], _Entry
        ] = {}  # of a rule's id, and of its text where texts count apart
        self._latest: dict[str, _Entry] = {}
        self._each: dict[str, int] = {}
        self._added = 0
        self._records: dict[int, list[_Entry]] = {}

    def read(self, line: Line, serving: bool = False) -> None:
        """What the rules say about ``line``. A finding on a record grows with the record's further lines.

        What would fail a boot fails one request of a server that is ``serving``, unless a process dies.
        """
        if line.record != line.number and (open_entries := self._records.get(line.record)):
            for entry in open_entries:
                entry.finding = replace(entry.finding, lines=line.number - entry.finding.line + 1)
        for rule in self._rules.found(line.message):
            if (finding := rule.finding(line)) is not None:
                self._take(rule, finding, line, serving and not rule.id.startswith(_DEATHS))

    def add(self, finding: Finding) -> None:
        """A finding that no rule made; one that stands already, word for word, is not added again."""
        key = (finding.id, finding.text)
        if key in self._by_text or self._added >= _MOST_ADDED:
            return
        self._added += 1
        self._keep(key, _Entry(finding))

    def all(self, context: Context) -> tuple[Finding, ...]:
        """Every finding, with the severity that it has in what is known."""
        return tuple(_weighed(entry, context)[0] for entry in self._entries)

    def new(self, context: Context, settled: bool) -> tuple[Finding, ...]:
        """Those not returned before. One whose severity depends on the unknown waits until ``settled``."""
        fresh: list[Finding] = []
        for entry in self._entries:
            if entry.reported:
                continue
            finding, certain = _weighed(entry, context)
            if certain or settled:
                entry.reported = True
                fresh.append(finding)
        return tuple(fresh)

    def _take(self, rule: Rule, finding: Finding, line: Line, survived: bool) -> None:
        key = (rule.id, finding.text if rule.each else "")
        known = self._by_text.get(key)
        if known is None and rule.each and self._each.get(rule.id, 0) >= _MOST_EACH:
            known = self._latest[rule.id]
        if known is not None:
            known.finding = replace(known.finding, count=known.finding.count + 1)
            return
        self._each[rule.id] = self._each.get(rule.id, 0) + 1
        entry = _Entry(replace(finding, cause=self._cause(rule)), rule, survived=survived)
        self._keep(key, entry)
        self._records.setdefault(line.record, []).append(entry)
        if len(self._records) > _OPEN_RECORDS:
            del self._records[next(iter(self._records))]

    def _keep(self, key: tuple[str, str], entry: _Entry) -> None:
        self._entries.append(entry)
        self._by_text[key] = entry
        self._latest[entry.finding.id] = entry

    def _cause(self, rule: Rule) -> str:
        """Of the findings that this rule follows from, the one that was made last."""
        causes = [self._latest[cause] for cause in rule.follows if cause in self._latest]
        return max(causes, key=lambda entry: entry.finding.line).finding.id if causes else ""


@lru_cache(maxsize=4)
def _by_literal(rules: tuple[Rule, ...]) -> Literals[Rule]:
    """Made once: it takes as long as reading a hundred lines."""
    return Literals((literal, rule) for rule in rules for literal in rule.needs)


def _weighed(entry: _Entry, context: Context) -> tuple[Finding, bool]:
    """The finding as it counts here, and whether that can't change any more."""
    finding, rule = entry.finding, entry.rule
    if rule is None:
        return finding, True
    severity, certain = _severity(rule, bool(finding.cause), context)
    if entry.survived and severity == "boot fails":
        severity = "note"
    return replace(finding, severity=severity, source=_source(rule, context)), certain


def _severity(rule: Rule, caused: bool, context: Context) -> tuple[Severity, bool]:
    certain = True
    for situation, severity in rule.weighs:
        holds = caused if situation == WITH_CAUSE else context.holds(situation)
        if holds:
            return severity, certain
        certain = certain and holds is not None
    return rule.severity, certain


def _source(rule: Rule, context: Context) -> str:
    """The rule's source, and a warning when the text isn't known from this release."""
    if rule.versions is None or context.version is None:
        return rule.source
    version = release(context.version)
    if not version or version in rule.versions:
        return rule.source
    outside = f"the text is known {rule.versions}"
    return f"{rule.source}; {outside}" if rule.source else outside

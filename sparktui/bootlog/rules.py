"""The rules that explain log lines: data in ``rules/*.yaml``, read strictly, compiled once.

A file is a mapping from a rule's id to its keys:

``needs``     a literal, or several, one of which every match contains: the cheap test that runs first
``pattern``   a regular expression, searched in the line's message
``severity``  one of the six words of the schema
``meaning``   what the line says, for somebody who doesn't know vLLM
``cost``      what it costs; ``source``: who measured that, and whether one report or several say so
``remedy``    what to do; ``flag``: the flag or variable to turn
``weighs``    other severities, by situation: the first one that holds counts. The words are those of
              ``context.SITUATIONS``, and ``with cause``: a finding that this one follows from stands. Where a
              situation is not known, the plain severity counts
``follows``   ids of findings that this one follows from, when they stood before
``versions``  releases of vLLM with the text: ``0.17.1+``, ``0.13.0-0.27.1``. Not every release was
              read, so a rule fires outside its range, too; the finding's source then says so
``each``      true: every other text is a finding of its own. Otherwise repeats are counted, whatever they
              name

Meaning, cost and remedy may name groups of the pattern, ``{blocks}``; a sentence whose group stayed empty is
left out. From groups ``free`` and ``total`` comes ``{utilization}``, the largest share that fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, cast, get_args

import platformdirs

from sparktui.bootlog.context import SITUATIONS
from sparktui.bootlog.lines import Line
from sparktui.schema.live import Finding, Severity
from sparktui.yamlfile.kinds import Key, boolean, choice, expected, mapping, read_keys, text
from sparktui.yamlfile.problems import FileError, Problem, Report, did_you_mean
from sparktui.yamlfile.source import MAX_BYTES, Node, Scalar, Seq, parse

WITH_CAUSE = "with cause"
_TEXT_LIMIT = 2000  # characters of a line kept in a finding
SEVERITIES = get_args(Severity)
_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
_VERSIONS = re.compile(r"(\d+\.\d+(?:\.\d+)?)(?:\+|-(\d+\.\d+(?:\.\d+)?))")
_PLACE = re.compile(r"\{(\w+)\}")
_SENTENCE = re.compile(r"(?<=[.;]) ")

Version = tuple[int, ...]


class RuleError(FileError):
    """Rules that can't be used: a line ``file:line: problem`` for each problem."""


@dataclass(frozen=True, slots=True)
class Range:
    """Releases of vLLM, both included; ``last`` None: up to the newest that was read."""

    first: Version
    last: Version | None = None

    def __contains__(self, version: Version) -> bool:
        return self.first <= version and (self.last is None or version <= self.last)

    def __str__(self) -> str:
        first = ".".join(map(str, self.first))
        return f"from {first} on" if self.last is None else f"from {first} to {'.'.join(map(str, self.last))}"


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    needs: tuple[str, ...]
    pattern: re.Pattern[str]
    severity: Severity
    meaning: str
    cost: str = ""
    source: str = ""
    remedy: str = ""
    flag: str = ""
    weighs: tuple[tuple[str, Severity], ...] = ()
    follows: tuple[str, ...] = ()
    versions: Range | None = None
    each: bool = False

    def finding(self, line: Line) -> Finding | None:
        """What this rule says about ``line``, or None when its pattern doesn't match."""
        found = self.pattern.search(line.message)
        if found is None:
            return None
        values = _values(found)
        return Finding(
            id=self.id,
            severity=self.severity,
            line=line.number,
            text=line.message[:_TEXT_LIMIT],
            meaning=_filled(self.meaning, values),
            cost=_filled(self.cost, values),
            remedy=_filled(self.remedy, values),
            flag=self.flag,
            source=self.source,
        )


def release(version: str) -> Version:
    """The numbers of a version, for comparisons: ``0.23.1rc1.dev1302`` is (0, 23, 1)."""
    found = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(part or 0) for part in found.groups()) if found else ()


def _values(found: re.Match[str]) -> dict[str, str]:
    values = {name: value for name, value in found.groupdict().items() if value}
    if "free" in values and float(values.get("total", 0)) > 0:
        share = int(float(values["free"]) / float(values["total"]) * 100) / 100
        values["utilization"] = f"{share:.2f}"
    return values


def _filled(words: str, values: Mapping[str, str]) -> str:
    """``words`` with its groups; sentences that name an empty one are left out."""
    if "{" not in words:
        return words
    sentences = [s for s in _SENTENCE.split(words) if all(name in values for name in _PLACE.findall(s))]
    return _PLACE.sub(lambda place: values[place[1]], " ".join(sentences))


@lru_cache(maxsize=1)
def shipped_rules() -> tuple[Rule, ...]:
    """The rules of this package, in the order of files and ids."""
    folder = resources.files("sparktui.bootlog").joinpath("rules")
    rules: dict[str, Rule] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            _add(rules, load_rules(file.read_bytes(), file.name), file.name)
    return tuple(rules.values())


def rules_folder() -> Path:
    """Where a user's own rules are."""
    return platformdirs.user_config_path("sparktui") / "rules"


def load_user_rules(folder: Path) -> tuple[Rule, ...]:
    """The shipped rules with the user's own: see ``own_rules``."""
    return tuple(({rule.id: rule for rule in shipped_rules()} | own_rules(folder)).values())


def own_rules(folder: Path) -> dict[str, Rule]:
    """By id, the rules of ``folder``'s ``*.yaml`` files; the same id takes a shipped one's place.

    A folder that doesn't exist has none. Raises RuleError, also for a file that can't be read.
    """
    mine: dict[str, Rule] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as exc:
            raise RuleError([Problem(str(path), 0, 0, exc.strerror or "can't be read")]) from None
        if data.strip():
            _add(mine, load_rules(data, str(path)), str(path))
    return mine


def load_rules(data: bytes | str, name: str) -> tuple[Rule, ...]:
    """Rules of a YAML file; ``name`` is the file's, for messages. Raises RuleError with every problem."""
    report = Report(name, RuleError)
    tree = parse(data.encode() if isinstance(data, str) else data, report)
    rules: list[Rule] = []
    for key, node in tree.entries if tree else ():
        if not _ID.fullmatch(key.text):
            report.add(key, f"{key.text!r} is no id: small letters, digits and dashes")
        before = len(report.problems)
        values = read_keys(mapping(node, key.text, report), _KEYS, key.text, report)
        if len(report.problems) == before:
            _check_places(key.text, node, values, report)
            rules.append(Rule(id=key.text, **values))
    report.raise_if_any()
    return tuple(rules)


def _add(rules: dict[str, Rule], more: Iterable[Rule], name: str) -> None:
    for rule in more:
        if rule.id in rules:
            raise RuleError([Problem(name, 0, 0, f"rule {rule.id!r} is in another file, too")])
        rules[rule.id] = rule


def _check_places(rule: str, node: Node, values: Mapping[str, Any], report: Report) -> None:
    groups = set(values["pattern"].groupindex)
    if {"free", "total"} <= groups:
        groups.add("utilization")
    for key in ("meaning", "cost", "remedy"):
        for name in _PLACE.findall(values.get(key, "")):
            if name not in groups:
                report.add(node, f"{rule}.{key}: the pattern has no group {name!r}")


def _texts(node: Node, label: str, report: Report) -> tuple[str, ...]:
    """One text, or a list of them."""
    if isinstance(node, Seq) and node.items:
        return tuple(text(item, f"{label}[{at}]", report) for at, item in enumerate(node.items))
    return (text(node, label, report),)


def _pattern(node: Node, label: str, report: Report) -> re.Pattern[str]:
    try:
        return re.compile(text(node, label, report))
    except re.error as exc:
        report.add(node, f"{label}: no regular expression: {exc}")
        return re.compile("")


def _versions(node: Node, label: str, report: Report) -> Range:
    found = _VERSIONS.fullmatch(node.text) if isinstance(node, Scalar) else None
    if found is None:
        expected("releases such as 0.17.1+ or 0.13.0-0.27.1", node, label, report)
        return Range(())
    return Range(release(found[1]), release(found[2]) if found[2] else None)


def _weighs(node: Node, label: str, report: Report) -> tuple[tuple[str, Severity], ...]:
    known = (*SITUATIONS, WITH_CAUSE)
    pairs: list[tuple[str, Severity]] = []
    for key, value in mapping(node, label, report).entries:
        if key.text not in known:
            hint = did_you_mean(key.text, known) or f"; known: {', '.join(known)}"
            report.add(key, f"{label}: unknown situation {key.text!r}{hint}")
        pairs.append((key.text, cast(Severity, choice(*SEVERITIES)(value, f"{label}.{key.text}", report))))
    return tuple(pairs)


_KEYS: Mapping[str, Key] = {
    "needs": Key(_texts, required=True),
    "pattern": Key(_pattern, required=True),
    "severity": Key(choice(*SEVERITIES), required=True),
    "meaning": Key(text, required=True),
    "cost": Key(text),
    "source": Key(text),
    "remedy": Key(text),
    "flag": Key(text),
    "weighs": Key(_weighs),
    "follows": Key(_texts),
    "versions": Key(_versions),
    "each": Key(boolean),
}

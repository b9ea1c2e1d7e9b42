"""The rules that explain log lines: data in ``rules.yaml``, loaded strictly, compiled once.

A rule is a mapping of ``id``, ``needs`` (a literal, or several, one of which every match contains: the cheap
test that runs first), ``pattern`` (a regular expression searched in the line's message), ``severity``,
``meaning`` and optionally ``cost``, ``remedy``, ``flag`` and ``unless_cpu`` (a note when the engine runs on a
CPU).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, get_args

import yaml

from sparktui.bootlog.lines import Line
from sparktui.schema.live import Finding, Severity

_REQUIRED = ("id", "needs", "pattern", "severity", "meaning")
_TEXTS = ("id", "pattern", "severity", "meaning", "cost", "remedy", "flag")
_TEXT_LIMIT = 2000  # characters of a line kept in a finding
_KEYS = {*_REQUIRED, *_TEXTS, "unless_cpu"}


class RuleError(ValueError):
    """A rules file that can't be used: names the file and the line."""


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    needs: tuple[str, ...]
    pattern: re.Pattern[str]
    severity: Severity
    meaning: str
    cost: str = ""
    remedy: str = ""
    flag: str = ""
    unless_cpu: bool = False

    def finding(self, line: Line) -> Finding | None:
        """What this rule says about ``line``, or None when its pattern doesn't match."""
        if self.pattern.search(line.message) is None:
            return None
        text = line.message[:_TEXT_LIMIT]
        return Finding(
            self.id, self.severity, line.number, text, self.meaning, self.cost, self.remedy, self.flag
        )


class Matcher:
    """Rules made ready for many lines: literals are looked for first, because most lines hold none."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_literal = tuple((literal, rule) for rule in rules for literal in rule.needs)

    def match(self, line: Line) -> list[tuple[Rule, Finding]]:
        """The rules that match ``line``, with what they say."""
        message = line.message
        found: list[tuple[Rule, Finding]] = []
        for rule in [rule for literal, rule in self._by_literal if literal in message]:
            finding = rule.finding(line)
            if finding is not None and all(rule is not other for other, _ in found):
                found.append((rule, finding))
        return found


@lru_cache(maxsize=1)
def shipped_rules() -> tuple[Rule, ...]:
    """The rules of this package."""
    path = resources.files("sparktui.bootlog").joinpath("rules.yaml")
    return load_rules(path.read_text(encoding="utf-8"), "rules.yaml")


def load_rules(text: str, name: str) -> tuple[Rule, ...]:
    """Rules of a YAML text; ``name`` is the file's, for messages. Raises RuleError on anything unexpected."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as exc:
        raise RuleError(f"{name}: not YAML: {exc}") from None
    if not isinstance(root, yaml.SequenceNode):
        raise RuleError(f"{name}:1: expected a list of rules")
    rules: list[Rule] = []
    seen: set[str] = set()
    for node in root.value:
        where = f"{name}:{node.start_mark.line + 1}"
        rule = _rule(_mapping(node, name), where)
        if rule.id in seen:
            raise RuleError(f"{where}: rule {rule.id!r} is there twice")
        seen.add(rule.id)
        rules.append(rule)
    return tuple(rules)


def _mapping(node: yaml.Node, name: str) -> dict[str, Any]:
    """A rule's keys and plain values; unknown and repeated keys are errors at their own line."""
    if not isinstance(node, yaml.MappingNode):
        raise RuleError(f"{name}:{node.start_mark.line + 1}: a rule is a mapping")
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        where, key = f"{name}:{key_node.start_mark.line + 1}", key_node.value
        if key not in _KEYS:
            raise RuleError(f"{where}: unknown key {key!r}")
        if key in values:
            raise RuleError(f"{where}: key {key!r} is there twice")
        values[key] = _value(key, value_node, where)
    return values


def _value(key: str, node: yaml.Node, where: str) -> Any:
    if key == "unless_cpu":
        if node.tag != "tag:yaml.org,2002:bool":
            raise RuleError(f"{where}: unless_cpu is true or false")
        return node.value.lower() in ("true", "yes", "on")
    items = node.value if key == "needs" and isinstance(node, yaml.SequenceNode) else [node]
    texts = tuple(item.value for item in items if isinstance(item, yaml.ScalarNode) and item.value)
    if len(texts) != len(items) or not texts:
        raise RuleError(f"{where}: {key} is a text that isn't empty")
    if key == "pattern":
        return _compiled(texts[0], where)
    if key == "severity" and texts[0] not in get_args(Severity):
        raise RuleError(f"{where}: severity {texts[0]!r} is none of: {', '.join(get_args(Severity))}")
    return texts if key == "needs" else texts[0]


def _compiled(pattern: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as exc:
        raise RuleError(f"{where}: pattern is no regular expression: {exc}") from None


def _rule(values: dict[str, Any], where: str) -> Rule:
    missing = [key for key in _REQUIRED if key not in values]
    if missing:
        raise RuleError(f"{where}: rule without {', '.join(missing)}")
    return Rule(**values)

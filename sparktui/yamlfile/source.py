"""YAML to a tree that keeps each scalar's source text and place.

YAML 1.1, which PyYAML resolves, turns ``off`` into False and ``0.90`` into 0.9. Both are text that vLLM
should see as it was written, so nothing is resolved here: readers decide, by YAML 1.2's core schema.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml
from yaml.composer import ComposerError

from sparktui.yamlfile.problems import Report

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {
    spelling: value
    for value, word in ((True, "true"), (False, "false"))
    for spelling in (word, word.title(), word.upper())
}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar as written. ``plain``: without quotes, so that it may mean null, a boolean or a number."""

    text: str
    plain: bool
    line: int
    column: int

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in _NULLS

    @property
    def boolean(self) -> bool | None:
        """The boolean that this is, or None when it is none."""
        return _BOOLS.get(self.text) if self.plain else None

    @property
    def integer(self) -> int | None:
        """The integer that this is in YAML 1.2's core schema, or None."""
        if not self.plain or len(self.text) > 100 or not _INT.fullmatch(self.text):
            return None
        base = {"0o": 8, "0x": 16}.get(self.text[:2], 10)
        return int(self.text, base)

    @property
    def number(self) -> float | None:
        """The number that this is in YAML 1.2's core schema (possibly infinite or NaN), or None."""
        whole = self.integer
        if whole is not None:
            return float(whole)
        if not self.plain or not _FLOAT.fullmatch(self.text):
            return None
        return float(self.text.lower().replace(".inf", "inf").replace(".nan", "nan"))

    @property
    def finite(self) -> float | None:
        """``number`` where it is finite, else None."""
        value = self.number
        return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Seq:
    items: tuple[Node, ...]
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Map:
    """A mapping in the order of the file; keys are unique."""

    entries: tuple[tuple[Scalar, Node], ...]
    line: int
    column: int

    def get(self, key: str) -> Node | None:
        return next((value for name, value in self.entries if name.text == key), None)


Node: TypeAlias = Scalar | Seq | Map


def parse(data: bytes, report: Report) -> Map | None:
    """The tree of a YAML file, or None when it has none; whatever is wrong goes to ``report``."""
    text = _decode(data, report)
    if text is None:
        return None
    root = _compose(text, report)
    if root is None:
        if not report.problems:
            report.at(1, 1, "the file is empty")
        return None
    tree = _convert(root, report)
    if not isinstance(tree, Map):
        report.add(tree, "expected a mapping at the top, such as 'name: …'")
        return None
    return tree


def _decode(data: bytes, report: Report) -> str | None:
    if len(data) > MAX_BYTES:
        report.at(0, 0, f"is larger than {MAX_BYTES // 1024} KiB")
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        before = data[: exc.start]
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
        report.at(line, column, f"not UTF-8: byte 0x{data[exc.start]:02x}")
        return None


def _compose(text: str, report: Report) -> yaml.Node | None:
    composer: _Composer | None = None
    try:
        composer = _Composer(text, report)
        return composer.get_single_node()
    except yaml.reader.ReaderError as exc:
        before = text[: exc.position]
        column = len(before) - (before.rfind("\n") + 1) + 1
        report.at(before.count("\n") + 1, column, f"character U+{ord(text[exc.position]):04X} is not allowed")
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        report.at(line, column, " ".join(filter(None, (exc.problem, exc.context))))
    except (ValueError, OverflowError) as exc:  # PyYAML lets them through for absurd escapes and versions
        line, column = (composer.line + 1, composer.column + 1) if composer else (1, 1)
        report.at(line, column, f"not YAML: {exc}")
    return None


class _Composer(yaml.SafeLoader):
    """Composes nodes only, and refuses what could make a small file a huge or endless tree."""

    def __init__(self, text: str, report: Report) -> None:
        super().__init__(text)
        self._report = report
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        mark = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            self.get_event()  # type: ignore[no-untyped-call]
            self._report.settle(
                mark.line + 1, mark.column + 1, f"aliases (*{event.anchor}) are not supported"
            )
            return yaml.ScalarNode("tag:yaml.org,2002:str", "", mark, mark, style="'")
        if getattr(event, "tag", None) not in (None, "!"):
            self._report.at(mark.line + 1, mark.column + 1, f"tags ({event.tag}) are not supported")
        if self._depth >= MAX_DEPTH:
            raise ComposerError(None, None, f"nested more than {MAX_DEPTH} levels deep", mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def _convert(node: yaml.Node, report: Report) -> Node:
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    if isinstance(node, yaml.MappingNode):
        return _convert_mapping(node, report)
    if isinstance(node, yaml.SequenceNode):
        return Seq(tuple(_convert(item, report) for item in node.value), line, column)
    scalar = Scalar(str(node.value), getattr(node, "style", None) is None, line, column)
    if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in scalar.text):
        report.settle(line, column, "NUL and lone surrogates are not allowed: no command line can carry them")
    return scalar


def _convert_mapping(node: yaml.MappingNode, report: Report) -> Map:
    entries: dict[str, tuple[Scalar, Node]] = {}
    for key_node, value_node in node.value:
        key, value = _convert(key_node, report), _convert(value_node, report)
        if not isinstance(key, Scalar):
            report.add(key, "a key must be text")
        elif key.text in entries:
            report.add(key, f"key {key.text!r} is here twice, first on line {entries[key.text][0].line}")
        else:
            entries[key.text] = (key, value)
    return Map(tuple(entries.values()), node.start_mark.line + 1, node.start_mark.column + 1)

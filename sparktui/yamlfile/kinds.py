"""Kinds of value that keys take: each reads a node and reports what is wrong with it.

A kind that reported something returns whatever is at hand: a file with problems is never made into anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sparktui.yamlfile.problems import Report, did_you_mean
from sparktui.yamlfile.source import Map, Node, Scalar, Seq

Kind: TypeAlias = Callable[[Node, str, Report], Any]  # value, its path of keys, where problems go


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the format."""

    kind: Kind
    required: bool = False


def describe(node: Node) -> str:
    """What a node is, for 'expected …, got …'."""
    if isinstance(node, Map):
        return "a mapping"
    if isinstance(node, Seq):
        return "a list"
    if node.is_null:
        return "nothing"
    text = node.text if len(node.text) <= 60 else node.text[:59] + "…"
    return repr(text) if node.plain else f"the text {text!r}"


def expected(what: str, node: Node, label: str, report: Report) -> None:
    """Report that something else stands here."""
    report.add(node, f"{label}: expected {what}, got {describe(node)}")


def text(node: Node, label: str, report: Report) -> str:
    """Source text, not empty."""
    if not isinstance(node, Scalar) or node.is_null or not node.text:
        expected("text", node, label, report)
        return ""
    return node.text


def boolean(node: Node, label: str, report: Report) -> bool:
    value = node.boolean if isinstance(node, Scalar) else None
    if value is None:
        expected("true or false", node, label, report)
    return bool(value)


def integer(low: int, high: int | None = None) -> Kind:
    """An integer within bounds, both included."""

    def read(node: Node, label: str, report: Report) -> int:
        value = node.integer if isinstance(node, Scalar) else None
        if value is None:
            expected("an integer", node, label, report)
            return low
        if value < low or (high is not None and value > high):
            bounds = f"from {low} to {high}" if high is not None else f"of at least {low}"
            expected(f"an integer {bounds}", node, label, report)
        return value

    return read


def number(*, above: float | None = None, low: float | None = None, high: float | None = None) -> Kind:
    """A finite number: above ``above``, from ``low``, up to ``high``."""
    limits = ((above, "above {:g}"), (low, "of at least {:g}"), (high, "of at most {:g}"))
    bounds = " and ".join(words.format(limit) for limit, words in limits if limit is not None)

    def read(node: Node, label: str, report: Report) -> float:
        value = node.finite if isinstance(node, Scalar) else None
        if value is None:
            expected("a number", node, label, report)
            return 0.0
        inside = (above is None or value > above) and (low is None or value >= low)
        if not inside or (high is not None and value > high):
            expected(f"a number {bounds}", node, label, report)
        return value

    return read


def choice(*options: str) -> Kind:
    """One of a few words."""

    def read(node: Node, label: str, report: Report) -> str:
        value = text(node, label, report)
        if value and value not in options:
            message = f"{label}: expected {', '.join(options[:-1])} or {options[-1]}, got {describe(node)}"
            report.add(node, message + did_you_mean(value, options))
        return value

    return read


def list_of(kind: Kind) -> Kind:
    """A list of one kind, at least one long, as a tuple."""

    def read(node: Node, label: str, report: Report) -> tuple[Any, ...]:
        if not isinstance(node, Seq) or not node.items:
            expected("a list", node, label, report)
            return ()
        return tuple(kind(item, f"{label}[{i}]", report) for i, item in enumerate(node.items))

    return read


def mapping(node: Node, label: str, report: Report) -> Map:
    """Any mapping; an empty one where there is none."""
    if isinstance(node, Map):
        return node
    expected("a mapping", node, label, report)
    return Map((), node.line, node.column)


def section(keys: Mapping[str, Key], build: Callable[..., Any] = dict) -> Kind:
    """A mapping of known keys, made into ``build(**values)`` when nothing in it is wrong."""

    def read(node: Node, label: str, report: Report) -> Any:
        before = len(report.problems)
        values = read_keys(mapping(node, label, report), keys, label, report)
        return build(**values) if len(report.problems) == before else None

    return read


def read_keys(node: Map, keys: Mapping[str, Key], label: str, report: Report) -> dict[str, Any]:
    """The values of a mapping's keys; unknown and missing keys are reported."""
    prefix = f"{label}." if label else ""
    values: dict[str, Any] = {}
    for key, value in node.entries:
        if key.text in keys:
            values[key.text] = keys[key.text].kind(value, prefix + key.text, report)
        else:
            _unknown(key, keys, label, report)
    for missing in [k for k, key in keys.items() if key.required and node.get(k) is None]:
        report.add(node, f"{prefix}{missing}: is missing")
    return values


def _unknown(key: Scalar, keys: Mapping[str, Key], label: str, report: Report) -> None:
    hint = did_you_mean(key.text, keys) or f"; known: {', '.join(sorted(keys))}"
    report.add(
        key, f"{label}: unknown key {key.text!r}{hint}" if label else f"unknown key {key.text!r}{hint}"
    )


def table(low: int, kind: Kind) -> Kind:
    """A mapping from integers of at least ``low``, in the order of the numbers; at least one entry."""
    read_key = integer(low)

    def read(node: Node, label: str, report: Report) -> dict[int, Any]:
        entries = mapping(node, label, report).entries
        if isinstance(node, Map) and not entries:
            report.add(node, f"{label}: needs at least one entry")
        values: dict[int, Any] = {}
        for key, value in entries:
            number_ = read_key(key, f"{label}: key", report)
            made = kind(value, f"{label}.{key.text}", report)
            if key.integer is None or key.integer < low:
                continue  # refused: ``number_`` is only a stand-in for it
            if number_ in values:
                report.add(key, f"{label}: {number_} is here twice")
            values[number_] = made
        return dict(sorted(values.items()))

    return read

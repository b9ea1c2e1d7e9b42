"""What a row of the fact tables is, and the values that rows read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Facts = Mapping[str, Any]
Found = re.Match[str]
Value = Callable[[Found, Facts], Any]

WITHOUT_DRAFTER = ("ngram", "ngram_gpu", "suffix")


class Row(NamedTuple):
    """A literal of the line, its pattern, and the facts it states; a fact that is None changes nothing."""

    needs: str
    pattern: re.Pattern[str]
    read: Callable[[Found, Facts], Mapping[str, Any]]


def row(needs: str, pattern: str, **values: Value) -> Row:
    """A row that states one fact a keyword."""
    return Row(
        needs,
        re.compile(pattern),
        lambda found, facts: {name: value(found, facts) for name, value in values.items()},
    )


def text(group: int = 1) -> Value:
    """The group as it stands."""
    return lambda found, _: found[group]


def number(group: int = 1) -> Value:
    """The group as a float, without thousands commas."""
    return lambda found, _: float(found[group].replace(",", "")) if found[group] else None


def count(group: int = 1) -> Value:
    """The group as an int, without thousands commas."""
    return lambda found, _: int(found[group].replace(",", "")) if found[group] else None


def constant(value: Any) -> Value:
    return lambda _found, _facts: value


def weak(name: str, value: Value) -> Value:
    """A value that yields to one that stands already: the target's line comes before the drafter's."""
    return lambda found, facts: None if name in facts else value(found, facts)


def largest(name: str) -> Value:
    """The larger figure, when target and drafter each state one."""
    return lambda found, facts: max(float(found[1]), facts.get(name, 0.0))


def has_drafter(facts: Facts) -> bool:
    """Whether speculation runs a model of its own, which then logs lines like the target's."""
    method = facts.get("spec_method")
    if method is None:
        return "draft_model" in facts
    return method not in WITHOUT_DRAFTER


def second(name: str, value: Value) -> Value:
    """The drafter's: a value other than the target's, said while a drafter is known of."""

    def read(found: Found, facts: Facts) -> Any:
        made, first = value(found, facts), facts.get(name)
        return made if first not in (None, made) and has_drafter(facts) else None

    return read

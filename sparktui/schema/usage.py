"""Where answers' token counts come from, over a while: the poorest kind stands."""

from __future__ import annotations

from collections.abc import Iterable

from sparktui.schema.records import Usage

USAGE_S = 5.0  # a line of totals tells of the answers of so many seconds

_POORER: dict[Usage, int] = {"": 0, "continuous": 1, "final": 2, "none": 3}


def poorest(kinds: Iterable[Usage]) -> Usage:
    """The one that says least; empty where none told."""
    return max(kinds, key=_POORER.__getitem__, default="")

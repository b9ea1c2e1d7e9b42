"""A published figure, what it allows, and the table of all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

SET = " (set)"


@dataclass(frozen=True, slots=True)
class Theirs:
    """What was published: ``low`` to ``high``, or one figure.

    ``tolerance``: relative, 0.01 = 1 %; None: not judged. ``text``: how a range is shown.
    """

    low: float
    high: float
    tolerance: float | None
    text: str

    def holds(self, ours: float) -> bool | None:
        if self.tolerance is None:
            return None
        return self.low * (1.0 - self.tolerance) <= ours <= self.high * (1.0 + self.tolerance)


@dataclass(frozen=True, slots=True)
class Claim:
    """One published figure and how the stand-in's own is measured. ``digits``: decimals shown."""

    source: str
    row: str
    theirs: Theirs
    measure: Callable[[], float]
    digits: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``tolerance``: relative; None, with ``within``, where nothing is judged.

    A ``row`` that ends in SET compares a value that the model file states with what comes out again.
    """

    source: str
    row: str
    theirs: float | str
    ours: float
    tolerance: float | None
    within: bool | None


def as_json(table: list[Row]) -> str:
    """A JSON array of the rows."""
    names = ("source", "row", "theirs", "ours", "tolerance", "within")
    return json.dumps([{name: getattr(row, name) for name in names} for row in table], indent=1) + "\n"


def as_text(table: list[Row]) -> str:
    """An aligned table in ASCII; the last lines count the rows within, and those that show little."""
    head = ("source", "row", "theirs", "ours", "tolerance", "within")
    cells = [head, *(_cells(row) for row in table)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    judged = [row for row in table if row.within is not None]
    within = sum(row.within is True for row in judged)
    rest = f", {len(table) - len(judged)} not judged" if len(judged) < len(table) else ""
    lines.append(f"{within} of {len(judged)} rows within their tolerance{rest}")
    if stated := sum(row.row.endswith(SET) for row in judged):
        lines.append(f"(set): the model file states it; so for {stated} of those {len(judged)}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    tolerance = "none" if row.tolerance is None else f"{100 * row.tolerance:g} %"
    within = "not judged" if row.within is None else "yes" if row.within else "NO"
    theirs = row.theirs if isinstance(row.theirs, str) else f"{row.theirs:g}"
    return row.source, row.row, theirs, f"{row.ours:g}", tolerance, within


def judge(claim: Claim) -> Row:
    """Measure it."""
    ours, theirs = claim.measure(), claim.theirs
    shown: float | str = theirs.text or theirs.low
    return Row(
        claim.source, claim.row, shown, round(ours, claim.digits), theirs.tolerance, theirs.holds(ours)
    )


def point(value: float, tolerance: float | None) -> Theirs:
    """One figure, within a share of it."""
    return Theirs(value, value, tolerance, "")


def between(low: float, high: float, tolerance: float | None) -> Theirs:
    """A range, widened by a share of its ends."""
    return Theirs(low, high, tolerance, f"{low:g}-{high:g}")


def above(low: float) -> Theirs:
    return Theirs(low, float("inf"), 0.0, f"> {low:g}")

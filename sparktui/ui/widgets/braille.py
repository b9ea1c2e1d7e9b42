"""Curves as text: two samples a cell, four dots a row, zero at the bottom.

Braille cells (U+2800) number their dots by column: 1 2 3 7 on the left, 4 5 6 8 on the right, top to bottom.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeGuard

GHOST = "┄"
MARK = "╎"
COLUMNS = 2  # dots a cell, across
DOTS = 4  # dots a cell, down
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_CELLS = {bits: chr(0x2800 + bits) if bits else " " for bits in range(256)}


def nice_top(values: Iterable[float | None]) -> float:
    """The smallest 1, 2 or 5 times a power of ten that no value exceeds; 1 when nothing is above zero."""
    highest = max((value for value in values if is_known(value)), default=0.0)
    if not 1e-12 < highest < 1e300:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(
        (step * power for step in (1, 2, 5) if highest <= step * power * (1 + 1e-9)),
        10 * power,
    )


def row_of(value: float, height: int, top: float) -> int:
    """The cell row, 0 at the top, that holds ``value``."""
    return height - 1 - _dot(value, height, top) // DOTS


def draw(
    values: Sequence[float | None],
    width: int,
    height: int,
    top: float,
    *,
    ghost: float | None = None,
    marks: Sequence[tuple[int, str]] = (),
    flags: Sequence[tuple[int, str]] = (),
) -> list[str]:
    """``height`` rows of ``width`` cells over 0..``top``, the newest value at the right edge.

    None and NaN are gaps. ``ghost`` is a level, drawn as dashes; ``marks`` are (samples back from the newest,
    label), drawn as uprights. Both leave the curve whole; only a label, on the top row, is drawn over it.
    ``flags`` are (samples back, sign): the sign stands in the lowest free row, the first of a cell's counts.
    """
    if width <= 0 or height <= 0:
        return []
    cells = [list(row.decode("latin-1").translate(_CELLS)) for row in _curve(values, width, height, top)]
    places = [(width - 1 - back // COLUMNS, label) for back, label in marks if back >= 0]
    places = [(cell, label) for cell, label in places if cell >= 0]
    for cell, _ in places:
        for row in cells:
            if row[cell] == " ":
                row[cell] = MARK
    _label(cells[0], places)
    _flag(cells, [(width - 1 - back // COLUMNS, sign) for back, sign in flags])
    if is_known(ghost):
        row = cells[row_of(ghost, height, top)]
        row[:] = [GHOST if char == " " else char for char in row]
    return ["".join(row) for row in cells]


def is_known(value: float | None) -> TypeGuard[float]:
    """Neither None nor NaN nor infinite."""
    return value is not None and math.isfinite(value)


def _dot(value: float, height: int, top: float) -> int:
    """The dot row, 0 at the bottom, nearest to ``value``."""
    last = height * DOTS - 1
    return round(min(1.0, max(0.0, value / top)) * last)


def _curve(values: Sequence[float | None], width: int, height: int, top: float) -> list[bytearray]:
    """Each cell's dots as bits, in rows from the top."""
    shown = values[-width * COLUMNS :]
    dots = [_dot(value, height, top) if is_known(value) else None for value in shown]
    places = [divmod(down, DOTS) for down in range(height * DOTS - 1, -1, -1)]
    grid = [bytearray(width) for _ in range(height)]
    before: int | None = None
    for x, dot in enumerate(dots, width * COLUMNS - len(dots)):
        if dot is not None:
            cell, bits = x // COLUMNS, _BITS[x % COLUMNS]
            for row, down in places[_stroke(before, dot)]:
                grid[row][cell] |= bits[down]
        before = dot
    return grid


def _stroke(before: int | None, dot: int) -> slice:
    """The dots of one column: its own, and those that join it to the column before."""
    if before is None or before == dot:
        return slice(dot, dot + 1)
    return slice(before + 1, dot + 1) if dot > before else slice(dot, before)


def _flag(cells: list[list[str]], places: list[tuple[int, str]]) -> None:
    """Write each sign into the lowest row of its cell that shows no curve."""
    taken: set[int] = set()
    for cell, sign in places:
        if 0 <= cell < len(cells[0]) and cell not in taken:
            free = next((row for row in reversed(cells) if row[cell] in (" ", MARK)), None)
            if free is not None:
                free[cell] = sign
                taken.add(cell)


def _label(row: list[str], places: list[tuple[int, str]]) -> None:
    """Write each label right of its mark, else left of it; one that has room on neither side stays out."""
    taken = {cell for cell, _ in places}
    for cell, label in sorted(places, reverse=True):
        for start in (cell + 1, cell - len(label)):
            span = range(start, start + len(label))
            if start >= 0 and span.stop <= len(row) and taken.isdisjoint(span):
                row[start : span.stop] = label
                taken.update(span)
                break

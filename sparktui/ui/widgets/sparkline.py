"""One row of bars, a sample a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sparktui.ui.widgets.braille import is_known

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], width: int, top: float | None = None) -> str:
    """``width`` cells, the newest value at the right edge, over 0..``top`` (default: the highest shown).

    None and NaN are spaces, so that a gap is never taken for the lowest bar, which is 0.
    """
    if width <= 0:
        return ""
    shown = values[-width:]
    highest = top if top is not None else max((v for v in shown if is_known(v)), default=0.0)
    return "".join(_bar(value, highest) for value in shown).rjust(width)


def _bar(value: float | None, top: float) -> str:
    if not is_known(value):
        return " "
    if top <= 0 or value <= 0:
        return BARS[0]
    return BARS[min(len(BARS), math.ceil(min(1.0, value / top) * len(BARS))) - 1]

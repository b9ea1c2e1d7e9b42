"""A curve over time with an axis."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len

from sparktui.ui.widgets.braille import GHOST, draw, is_known, nice_top, row_of
from sparktui.ui.widgets.rows import BORDER_ENDS, NOT_KNOWN, Row, RowWidget, Texts, plain, texts

_AXIS = "┤"
_LEAST_PLOT = 4  # cells; a chart too narrow for an axis and these goes without the axis
_LEAST_GUTTER = 4
_RUNS = re.compile("(?P<curve>[ \u2800-\u28ff]+)|(?P<ghost>┄+)|(?P<mark>[^ ┄\u2800-\u28ff]+)")


class Chart(RowWidget):
    """One figure over time: zero-based, the newest sample at the right edge, two samples a cell."""

    PREFIX = "chart"
    ALLOW_MAXIMIZE = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {"chart--curve", "chart--axis", "chart--ghost", "chart--mark"}
    DEFAULT_CSS = """
    Chart {
        width: 1fr;
        height: 1fr;
        min-height: 3;
        border: round $border-blurred;
        border-title-color: $foreground;
        border-subtitle-color: $text-muted;
        & > .chart--curve { color: $accent; }
        & > .chart--axis { color: $text-muted; }
        & > .chart--ghost { color: $text-muted; }
        & > .chart--mark { color: $warning; }
    }
    """

    def __init__(self, label: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._label = label
        self._values: tuple[float | None, ...] = ()
        self._ghost: float | None = None
        self._marks: tuple[tuple[int, str], ...] = ()
        self._flags: tuple[tuple[int, str], ...] = ()
        self._titles = (label, "")
        self._notes: tuple[str, ...] = ()
        self.title(label)

    def show(
        self,
        values: Sequence[float | None],
        *,
        unit: str,
        ghost: float | None = None,
        ghost_label: str = "",
        marks: Sequence[tuple[int, str]] = (),
        flags: Sequence[tuple[int, str]] = (),
        note: Texts = "",
    ) -> None:
        """Draw ``values``, oldest first, None where nothing was measured.

        ``ghost`` is a level to compare with; ``marks`` are (samples back from the newest, text) and ``flags``
        (samples back, one sign); ``note`` stands on the lower border, the first of its lengths that fits.
        """
        new = (tuple(values), ghost, tuple((back, plain(text)) for back, text in marks), tuple(flags))
        self._titles = chart_titles(self._label, new[0], unit, ghost, ghost_label)
        self._notes = texts(note)
        self._show_titles()
        if new != (self._values, self._ghost, self._marks, self._flags):
            self._values, self._ghost, self._marks, self._flags = new
            self.redraw()

    def on_resize(self) -> None:
        self._show_titles()

    def _show_titles(self) -> None:
        title, subtitle = self._titles
        room = self.size.width - BORDER_ENDS - (cell_len(subtitle) + 3 if subtitle else 0)
        note = next((note for note in self._notes if cell_len(note) <= room), "")
        self.title(title, " · ".join(text for text in (subtitle, note) if text))

    def rows(self, width: int, height: int) -> list[Row]:
        return chart_rows(
            self._values, width, height, ghost=self._ghost, marks=self._marks, flags=self._flags
        )


def figure(value: float | None) -> str:
    """A number in about four digits; a dash when it isn't known."""
    if not is_known(value):
        return NOT_KNOWN
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def chart_titles(
    label: str, values: Sequence[float | None], unit: str, ghost: float | None, ghost_label: str
) -> tuple[str, str]:
    """The border's texts: label and newest value, and what the dashes are."""
    newest = values[-1] if values else None
    now = f"{figure(newest)} {unit}" if is_known(newest) else NOT_KNOWN
    subtitle = f"{GHOST} {ghost_label} {figure(ghost)}".replace("  ", " ") if is_known(ghost) else ""
    return f"{label} {now}".rstrip(), subtitle


def chart_rows(
    values: Sequence[float | None],
    width: int,
    height: int,
    *,
    ghost: float | None = None,
    marks: Sequence[tuple[int, str]] = (),
    flags: Sequence[tuple[int, str]] = (),
) -> list[Row]:
    """Axis and curve for ``width`` × ``height`` cells."""
    if width <= 0 or height <= 0:
        return []
    if not is_known(ghost) and not any(is_known(value) for value in values):
        return [[("no data yet", "axis")]]
    top = nice_top([*values[-2 * width :], ghost])
    axis = axis_labels(top, height)
    if width < len(axis[0]) + _LEAST_PLOT:
        axis = [""] * height
    lines = draw(values, width - len(axis[0]), height, top, ghost=ghost, marks=marks, flags=flags)
    return [
        ([(label, "axis")] if label else []) + _runs(line) for label, line in zip(axis, lines, strict=True)
    ]


def axis_labels(top: float, height: int) -> list[str]:
    """The axis of ``height`` rows, equally wide: top, 0, and the middle where it has a row of its own."""
    texts = {row_of(value, height, top): short(value) for value in (top / 2, 0.0, top)}
    width = max(_LEAST_GUTTER - 1, *(len(text) for text in texts.values()))
    return [f"{texts.get(row, ''):>{width}}{_AXIS}" for row in range(height)]


def short(value: float) -> str:
    """A round number in at most five characters; empty where it takes more."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= limit:
            text = f"{value / (1e3 if unit == 'k' else limit):g}{unit}"
            break
    else:
        text = f"{value:g}"
    return text if len(text) <= 5 else ""


def _runs(line: str) -> Row:
    return [(match[0], match.lastgroup or "") for match in _RUNS.finditer(line)]

"""One figure now, with its recent past under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from rich.cells import cell_len

from sparktui.ui.widgets.braille import is_known
from sparktui.ui.widgets.rows import NOT_KNOWN, Row, RowWidget, plain
from sparktui.ui.widgets.sparkline import sparkline

Level = Literal["normal", "warning", "stale"]


class Tile(RowWidget):
    """A labelled value over a sparkline or a detail; with the class ``compact`` one row without border."""

    PREFIX = "tile"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "tile--value",
        "tile--warning",
        "tile--unknown",
        "tile--detail",
        "tile--history",
    }
    DEFAULT_CSS = """
    Tile {
        width: 1fr;
        height: 4;
        border: round $border-blurred;
        border-title-color: $text-muted;
        & > .tile--value { text-style: bold; }
        & > .tile--warning { color: $warning; text-style: bold; }
        & > .tile--unknown { color: $text-muted; text-style: dim; }
        & > .tile--detail { color: $text-muted; }
        & > .tile--history { color: $accent; }
    }
    Tile.compact { height: 1; border: none; }
    """

    def __init__(self, label: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._label = plain(label)
        self._shown: tuple[str, str, tuple[float | None, ...], Level] = (NOT_KNOWN, "", (), "normal")
        self._note = ""
        self.title(label)

    def show(
        self,
        value: str,
        detail: str = "",
        history: Sequence[float | None] = (),
        *,
        level: Level = "normal",
        note: str = "",
    ) -> None:
        """``value`` with its unit, or — when it isn't known; ``history`` oldest first, None for gaps.

        ``warning`` adds ▲, ``stale`` dims; both put the detail, which says why, in the history's place.
        ``note``: a word on the border, such as where the value comes from.
        """
        if note != self._note:
            self._note = note
            self.title(self._label, note)
        new = (plain(value), plain(detail), tuple(history), level)
        if new != self._shown:
            self._shown = new
            self.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        value, detail, history, level = self._shown
        if height > 1:
            return tile_rows(value, detail, history, level, width)
        head: Row = [(f"{self._label} ", "detail")] if self.has_class("compact") else []
        row = head + _value(value, level)
        return [row + _beside(detail, width - _length(row))]


def tile_rows(
    value: str, detail: str, history: Sequence[float | None], level: Level, width: int
) -> list[Row]:
    """The value, then the history with the detail beside the value if there is room, else the detail."""
    first = _value(value, level)
    explained = level != "normal" and detail
    if explained or not any(is_known(sample) for sample in history):
        return [first, [(detail, "detail")]]
    return [
        first + _beside(detail, width - _length(first)),
        [(sparkline(history, width), "history")],
    ]


def _value(value: str, level: Level) -> Row:
    if level == "stale" or value == NOT_KNOWN:
        return [(value, "unknown")]
    return [(f"▲ {value}", "warning")] if level == "warning" else [(value, "value")]


def _beside(detail: str, room: int) -> Row:
    return [(f" {detail}", "detail")] if detail and cell_len(detail) < room else []


def _length(row: Row) -> int:
    return sum(cell_len(text) for text, _ in row)

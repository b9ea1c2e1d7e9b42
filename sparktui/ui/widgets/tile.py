"""One figure now, with its recent past under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from rich.cells import cell_len

from sparktui.ui.widgets.braille import is_known
from sparktui.ui.widgets.rows import BORDER_ENDS, NOT_KNOWN, Row, RowWidget, Texts, plain, texts
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
        self._shown: tuple[str, tuple[str, ...], tuple[float | None, ...], Level, bool] = (
            NOT_KNOWN, (), (), "normal", False,
        )  # fmt: skip
        self._notes: tuple[str, ...] = ()
        self.title(label)

    def show(
        self,
        value: str,
        detail: Texts = "",
        history: Sequence[float | None] = (),
        *,
        level: Level = "normal",
        note: Texts = "",
        insist: bool = False,
    ) -> None:
        """``value`` with its unit, or — when it isn't known; ``history`` oldest first, None for gaps.

        ``detail`` and ``note`` (a word on the border, such as where the value comes from) may be given at
        several lengths, the longest first: the first that fits is shown. ``warning`` adds ▲, ``stale`` dims;
        both put the detail, which says why, in the history's place. ``insist`` does so where it doesn't fit
        beside the value.
        """
        self._notes = texts(note)
        self._show_note()
        new = (plain(value), texts(detail), tuple(history), level, insist)
        if new != self._shown:
            self._shown = new
            self.redraw()

    def on_resize(self) -> None:
        self._show_note()

    def _show_note(self) -> None:
        room = self.size.width - BORDER_ENDS
        self.title(self._label, next((note for note in self._notes if cell_len(note) <= room), ""))

    def rows(self, width: int, height: int) -> list[Row]:
        value, details, history, level, insist = self._shown
        if height > 1:
            return tile_rows(value, details, history, level, width, insist=insist)
        head: Row = [(f"{self._label} ", "detail")] if self.has_class("compact") else []
        row = head + _value(value, level)
        return [row + _beside(details, width - _length(row))]


def tile_rows(
    value: str,
    detail: Texts,
    history: Sequence[float | None],
    level: Level,
    width: int,
    *,
    insist: bool = False,
) -> list[Row]:
    """The value, then the history with the detail beside the value if there is room, else the detail."""
    details, first = texts(detail), _value(value, level)
    beside = _beside(details, width - _length(first))
    explained = details and (level != "normal" or (insist and not beside))
    if explained or not any(is_known(sample) for sample in history):
        return [first, [(_fitting(details, width), "detail")]]
    return [first + beside, [(sparkline(history, width), "history")]]


def _fitting(given: Sequence[str], width: int) -> str:
    """The first that fits, or what there is room for of the last."""
    return next((text for text in given if cell_len(text) <= width), given[-1] if given else "")


def _value(value: str, level: Level) -> Row:
    if level == "stale" or value == NOT_KNOWN:
        return [(value, "unknown")]
    return [(f"▲ {value}", "warning")] if level == "warning" else [(value, "value")]


def _beside(details: Sequence[str], room: int) -> Row:
    return next(([(f" {detail}", "detail")] for detail in details if cell_len(detail) < room), [])


def _length(row: Row) -> int:
    return sum(cell_len(text) for text, _ in row)

"""Sections of figures in as many columns as fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.geometry import Size

from sparktui.ui.screens.text import Section
from sparktui.ui.widgets.rows import NOT_KNOWN, Row, RowWidget, plain

_COLUMN = 38  # cells at least
_GAP = 2
_MARKS = ("▲", "▼", "✖")


class FigureTable(RowWidget):
    """As high as its rows; whoever holds it scrolls."""

    PREFIX = "figures"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"figures--{part}" for part in ("title", "label", "value", "unknown", "warning")),
    }
    DEFAULT_CSS = """
    FigureTable {
        height: auto;
        & > .figures--title { text-style: bold underline; }
        & > .figures--label { color: $text-muted; }
        & > .figures--value { color: $foreground; }
        & > .figures--unknown { color: $text-muted; text-style: dim; }
        & > .figures--warning { color: $warning; text-style: bold; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._sections: tuple[Section, ...] = ()

    def show(self, sections: Sequence[Section]) -> None:
        """Draw them; the layout changes only when the number of rows does."""
        before = len(table_rows(self._sections, self.size.width))
        self._sections = tuple(sections)
        if len(table_rows(self._sections, self.size.width)) != before:
            self.refresh(layout=True)
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(table_rows(self._sections, width))

    def rows(self, width: int, height: int) -> list[Row]:
        return table_rows(self._sections, width)


def table_rows(sections: Sequence[Section], width: int) -> list[Row]:
    """Sections one below the other, in columns of about the same height, in order."""
    if width <= 0 or not sections:
        return []
    count = max(1, min(len(sections), (width + _GAP) // (_COLUMN + _GAP)))
    room = (width - _GAP * (count - 1)) // count
    columns = [
        [row for section in part for row in _section(section, room)] for part in _parted(sections, count)
    ]
    return [
        [run for i, part in enumerate(parts) for run in _padded(part or [], room, last=i == count - 1)]
        for parts in zip_longest(*columns)
    ]


def _parted(sections: Sequence[Section], count: int) -> list[list[Section]]:
    """``count`` runs of sections, none higher than it must be."""
    heights = [len(section.rows) + 2 for section in sections]
    limit = max(max(heights), -(-sum(heights) // count))
    while len(parts := _filled(sections, heights, limit)) > count:
        limit += 1
    return parts + [[] for _ in range(count - len(parts))]


def _filled(sections: Sequence[Section], heights: Sequence[int], limit: int) -> list[list[Section]]:
    parts: list[list[Section]] = [[]]
    used = 0
    for section, height in zip(sections, heights, strict=True):
        if used + height > limit and parts[-1]:
            parts.append([])
            used = 0
        parts[-1].append(section)
        used += height
    return parts


def _section(section: Section, width: int) -> list[Row]:
    widest = max((cell_len(label) for label, _ in section.rows), default=0)
    label_width = min(widest, width // 2)
    rows: list[Row] = [[(plain(section.title), "title")]]
    for label, text in section.rows:
        value = plain(text)
        part = "unknown" if value == NOT_KNOWN else "warning" if value.startswith(_MARKS) else "value"
        shown = _cut(value, width - label_width - 2) if label else _cut(value, width)
        head: Row = [(set_cell_size(plain(label), label_width) + "  ", "label")] if label else []
        rows.append([*head, (shown, part)])
    return [*rows, []]


def _padded(row: Row, width: int, *, last: bool) -> Row:
    used = sum(cell_len(text) for text, _ in row)
    return row if last else [*row, (" " * (width - used + _GAP), "")]


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "…"

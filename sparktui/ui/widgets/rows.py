"""The base of the widgets that draw their own rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

Row = list[tuple[str, str]]
"""Runs of text, each with the last part of its component class ("" for the widget's own style)."""

NOT_KNOWN = "—"
BORDER_ENDS = 4
"""Cells between the corners of a border that its text can't have: a line and a space at either end."""

Texts = str | Sequence[str]
"""One text, or the same at several lengths, the longest first."""


def plain(text: str) -> str:
    """``text`` on one line and without control codes, for places that draw it as it is."""
    return "".join(char if char.isprintable() else " " if char in "\t\n" else "" for char in text)


def texts(given: Texts) -> tuple[str, ...]:
    """Each of them plain, without the empty ones."""
    each = (given,) if isinstance(given, str) else given
    return tuple(plain(text) for text in each if text)


class RowWidget(Widget):
    """Draws rows that are computed once a change, and repaints only those that differ.

    Subclasses give ``rows`` and name their component classes ``PREFIX--part``.
    """

    ALLOW_SELECT = False
    PREFIX: ClassVar[str]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rows: list[Row] = []
        self._strips: list[Strip] = []
        self._drawn_at: Size | None = None
        self._part_styles: dict[str, Style] = {}
        self._border_texts = ("", "")
        self._repaint_only: Region | None = None

    def rows(self, width: int, height: int) -> list[Row]:
        """The content for this size; longer rows are cut, missing ones blank."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Compute the rows anew."""
        if self._drawn_at is None or self._drawn_at != self.size:
            self._drawn_at = None
            self.refresh()
        elif changed := self._draw():
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def title(self, title: str, subtitle: str = "") -> None:
        """Set the border's texts, as they are."""
        texts = (plain(title), plain(subtitle))
        rows = (-self.gutter.top, self.size.height + self.gutter.bottom - 1)
        for name, text, before, y in zip(
            ("border_title", "border_subtitle"), texts, self._border_texts, rows, strict=True
        ):
            if text != before:
                self._repaint_only = Region(-self.gutter.left, y, self.outer_size.width, 1)
                setattr(self, name, Content(text) if text.strip() else None)
                self._repaint_only = None
        self._border_texts = texts

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        if self._repaint_only is not None:  # setting a border text asks for the whole widget
            regions = (self._repaint_only,)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._part_styles = {}
        self._drawn_at = None

    def render_line(self, y: int) -> Strip:
        if self._drawn_at is None or self._drawn_at != self.size:
            self._rows = []
            self._draw()
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self._style(""))

    def _draw(self) -> list[int]:
        """Bring rows and strips up to date; the numbers of those that changed."""
        width, height = self._drawn_at = self.size
        rows = self.rows(width, height)[:height]
        rows += [[] for _ in range(height - len(rows))]
        before, self._rows = self._rows, rows
        changed = [y for y, row in enumerate(rows) if y >= len(before) or row != before[y]]
        self._strips = self._strips[: len(before)] + [Strip([])] * (height - len(before))
        for y in changed:
            self._strips[y] = self._strip(rows[y], width)
        return changed

    def _strip(self, row: Row, width: int) -> Strip:
        strip = Strip(Segment(text, self._style(part)) for text, part in row)
        return strip.adjust_cell_length(width, self._style(""))

    def _style(self, part: str) -> Style:
        if part not in self._part_styles:
            found = self.get_component_rich_style(f"{self.PREFIX}--{part}") if part else self.rich_style
            self._part_styles[part] = found
        return self._part_styles[part]

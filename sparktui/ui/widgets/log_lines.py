"""The rows of a log that are on screen: level colours, findings, matches, selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from sparktui.schema.live import Finding, Severity
from sparktui.ui.widgets.log_store import LogStore
from sparktui.ui.widgets.log_text import LogLine, spans

MARKS: dict[Severity, str] = {
    "boot fails": "✖",
    "wrong results possible": "▲",
    "costs speed": "▲",
    "costs memory": "▲",
    "note": "·",
    "harmless": " ",
}
GUTTER = 2  # cells: the finding's mark, then › on the line of the cursor
_LEVEL_CLASSES = {
    "WARNING": "warning",
    "ERROR": "error",
    "CRITICAL": "error",
    "DEBUG": "quiet",
    "TRACE": "quiet",
}


def gutter(finding: Finding | None, at_cursor: bool) -> str:
    """What stands left of a line."""
    mark = MARKS[finding.severity] if finding is not None else " "
    return mark + ("›" if at_cursor else " ")


class LogLines(ScrollView, can_focus=False):
    """Draws the rows of a LogStore that are on screen; its owner tells it what changed."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"log-lines--{name}" for name in ("plain", "quiet", "warning", "error", "costs", "fails")),
        *(f"log-lines--{name}" for name in ("cursor", "match")),
    }
    DEFAULT_CSS = """
    LogLines {
        height: 1fr; overflow-x: auto; overflow-y: scroll; scrollbar-size: 0 1; background: $surface;
        & .log-lines--plain { color: $foreground; }
        & .log-lines--quiet { color: $text-muted; }
        & .log-lines--warning { color: $text-warning; }
        & .log-lines--error { color: $text-error; text-style: bold; }
        & .log-lines--costs { background: $warning; color: $background; text-style: bold; }
        & .log-lines--fails { background: $error; color: $background; text-style: bold; }
        & .log-lines--cursor { text-style: bold underline; }
        & .log-lines--match { background: $accent; color: $background; }
    }
    """

    @dataclass
    class Pointed(Message):
        """The user clicked on a line.

        Attributes:
            number: the line, from 1.
        """

        number: int

    @dataclass
    class FollowEnded(Message):
        """The user scrolled up."""

    def __init__(self, store: LogStore) -> None:
        super().__init__()
        self.store = store
        self.follow = True
        self.cursor: int | None = None
        self.sought = ""
        self.partial = ""
        self._steering = False

    @property
    def allow_select(self) -> bool:
        return True

    @property
    def rows_on_screen(self) -> Sequence[LogLine]:
        """The lines that are in view."""
        top = self.scroll_offset.y
        return self.store.rows[top : top + self.size.height]

    def sync(self, dropped: int = 0) -> None:
        """The store changed; ``dropped`` rows fell off the top. One repaint, no layout, however much came."""
        height = len(self.store.rows) + bool(self.partial)
        self.set_reactive(Widget.virtual_size, Size(self.store.width + GUTTER, height))
        if self.is_mounted:
            self.vertical_scrollbar.window_virtual_size = height
            self.steer(self.max_scroll_y if self.follow else self.scroll_offset.y - dropped)
        self.refresh()

    def steer(self, y: int) -> None:
        """Scroll there without taking it for the user's doing."""
        self._steering = True
        self.scroll_to(y=max(0, min(y, self.max_scroll_y)), animate=False)
        self._steering = False

    def centre(self, number: int) -> None:
        """Bring this line into view, in the middle unless it is in view."""
        row, top, height = self.store.row_of(number), self.scroll_offset.y, self.size.height
        if not top <= row < top + height:
            self.steer(row - height // 2)
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self.follow and not self._steering and new_value < min(old_value, self.max_scroll_y):
            self.follow = False
            self.post_message(self.FollowEnded())

    def on_resize(self) -> None:
        self.sync()

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y
        if row < len(self.store.rows):
            self.post_message(self.Pointed(self.store.rows[row].number))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text. Offsets are line numbers, so that a selection outlives rows that fall off."""
        parts = []
        for line in self.store.rows:
            if (span := selection.get_span(line.number)) is not None:
                start, end = span
                parts.append(self.store.shown(line)[start : None if end == -1 else end])
        return "\n".join(parts), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        row, rows, width = top + y, self.store.rows, self.size.width
        if row < len(rows):
            return self._draw(rows[row], left, width)
        if row == len(rows) and self.partial:
            style = self._style("quiet")
            return Strip([Segment(" " * GUTTER + self.partial, style)]).adjust_cell_length(width, style)
        return Strip.blank(width, self._style("plain"))

    def _draw(self, line: LogLine, left: int, width: int) -> Strip:
        finding, at_cursor = self.store.finding(line.number), line.number == self.cursor
        style = self._line_style(line, finding)
        head = Strip([Segment(gutter(finding, at_cursor), style)], GUTTER)
        if at_cursor:
            style += self._style("cursor", partial=True)
        strip = self._body(line, style, left, max(0, width - GUTTER)).apply_offsets(left, line.number)
        return Strip.join([head, strip])

    def _body(self, line: LogLine, style: Style, left: int, width: int) -> Strip:
        """The cells of a line from ``left`` on; of ASCII, a cell a character, only those are touched."""
        whole = self.store.shown(line)
        start = left if whole.isascii() else 0
        text = Text(whole[start : start + width] if whole.isascii() else whole, style, end="")
        for begin, end in spans(whole, self.sought):
            text.stylize(self._style("match", partial=True), max(0, begin - start), max(0, end - start))
        if (selection := self.text_selection) and (span := selection.get_span(line.number)):
            end = len(whole) if span[1] == -1 else span[1]
            chosen = self.screen.get_component_rich_style("screen--selection")
            text.stylize(chosen, max(0, span[0] - start), max(0, end - start))
        strip = Strip(Segment.apply_style(text.render(self.app.console), style))  # render alone forgets it
        return strip.crop_extend(left - start, left - start + width, style)

    def _line_style(self, line: LogLine, finding: Finding | None) -> Style:
        if finding is not None and finding.severity not in ("note", "harmless"):
            return self._style("fails" if finding.severity == "boot fails" else "costs")
        if line.access or self.store.harmless(line.number):
            return self._style("quiet")
        return self._style(_LEVEL_CLASSES.get(line.level, "plain"))

    def _style(self, name: str, partial: bool = False) -> Style:
        return self.get_component_rich_style(f"log-lines--{name}", partial=partial)

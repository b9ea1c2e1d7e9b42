"""The server's log: virtual, coloured by level, its costly lines impossible to overlook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from sparktui.schema.live import Finding
from sparktui.ui.widgets.log_keys import LOG_KEYS, subtitle
from sparktui.ui.widgets.log_lines import LogLines
from sparktui.ui.widgets.log_store import LogStore
from sparktui.ui.widgets.log_text import plain


class LogView(Vertical, can_focus=True):
    """The log with its keys and its find line."""

    BINDINGS: ClassVar[list[BindingType]] = LOG_KEYS
    DEFAULT_CSS = """
    LogView {
        border: round $border-blurred; height: 1fr; background: $surface;
        &:focus, &:focus-within { border: round $border; }
        & > Horizontal { display: none; height: 1; background: $boost; }
        & > Horizontal > Static { width: 2; color: $accent; }
        &.-finding > Horizontal { display: block; }
    }
    """

    @dataclass
    class FindingSelected(Message):
        """The cursor went to the line of a finding.

        Attributes:
            finding: the gravest one of that line.
        """

        finding: Finding

    @dataclass
    class FindingOpened(Message):
        """The user wants the whole record.

        Attributes:
            finding: of the line with the cursor.
        """

        finding: Finding

    @dataclass
    class RecordOpened(Message):
        """The user wants the whole record of a line that no rule knows.

        Attributes:
            first: number of its first line, from 1.
            lines: as the server wrote them.
        """

        first: int
        lines: list[str]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.border_title = "Boot & server log"
        self.store = LogStore()
        self.lines = LogLines(self.store)
        self._input = Input(placeholder="plain text; enter keeps it for n and N, esc ends", compact=True)
        self._subtitle = ""
        self._tell()

    def compose(self) -> ComposeResult:
        yield self.lines
        with Horizontal():
            yield Static("/ ", markup=False)
            yield self._input

    def extend(self, first: int, lines: Sequence[str]) -> None:
        """Lines of server.log, the first of them numbered ``first``; known ones are skipped."""
        last = self.store.last
        dropped = self.store.extend(first, lines)
        if self.store.last != last:
            self._changed(dropped)

    def mark(self, findings: Sequence[Finding]) -> None:
        """All findings of this log so far."""
        if self.store.mark(findings):
            self._changed()

    def show_partial(self, text: str) -> None:
        """A progress bar that is being rewritten, below the last line; empty when there is none."""
        text = plain(text)
        if text != self.lines.partial:
            self.lines.partial = text
            self.lines.sync()

    def clear(self) -> None:
        """Another run's log follows."""
        self.store.clear()
        self.lines.cursor, self.lines.partial, self.lines.follow = None, "", True
        self._changed()

    def reveal(self, number: int) -> None:
        """Put the cursor on a line and bring it into view; ends following. A line not shown moves nothing."""
        if self.store.line(number) is None:
            return
        self.lines.follow = False
        self.lines.cursor = number
        self.lines.centre(number)
        self._tell()

    def copy_text(self) -> str:
        """The selected text, or else the lines on screen."""
        selection = self.lines.text_selection
        if selection is not None and (chosen := self.lines.get_selection(selection)):
            return chosen[0]
        return "\n".join(self.store.shown(line) for line in self.lines.rows_on_screen)

    def action_find(self) -> None:
        """Open the find line."""
        self.add_class("-finding")
        self._input.focus()

    def action_close_find(self) -> None:
        """Forget the query and close the find line."""
        self._input.value = ""
        self._seek("")
        self._leave_input()

    def action_match(self, step: int) -> None:
        """Go to the next or previous match."""
        number = self.store.step_match(self.lines.sought, self._here(step), step)
        if number is not None:
            self.reveal(number)

    def action_finding(self, step: int) -> None:
        """Go to the next or previous finding and tell which."""
        finding = self.store.step_finding(self._here(step), step)
        if finding is not None:
            self.reveal(finding.line)
            self.post_message(self.FindingSelected(finding))

    def action_open(self) -> None:
        """Ask for the record under the cursor: a finding's, else as its lines tell."""
        finding, cursor = self.store.finding_around(self.lines.cursor), self.lines.cursor
        if finding is not None:
            self.post_message(self.FindingOpened(finding))
        elif cursor is not None:
            first, lines = self.store.record(cursor)
            if lines:
                self.post_message(self.RecordOpened(first, lines))

    def action_warnings(self) -> None:
        """Show warnings only, or all again."""
        here = self._here(1)
        self.store.warnings_only = not self.store.warnings_only
        self._refiltered(here)

    def action_access(self) -> None:
        """Show or fold access lines."""
        here = self._here(1)
        self.store.show_access = not self.store.show_access
        self._refiltered(here)

    def action_whole(self) -> None:
        """Show lines whole or brief."""
        self.store.whole = not self.store.whole
        self.lines.scroll_to(x=0, animate=False)
        self._changed()

    def action_follow(self) -> None:
        """Follow, or stop following."""
        self.lines.follow = not self.lines.follow
        self._changed()

    def action_top(self) -> None:
        """First line."""
        self.lines.follow = False
        self.lines.steer(0)
        self._tell()

    def action_bottom(self) -> None:
        """Last line; follows again."""
        self.lines.follow = True
        self._changed()

    def action_scroll(self, step: int) -> None:
        """A line up or down."""
        self.lines.scroll_relative(y=step, animate=False)

    def action_page(self, step: int) -> None:
        """A page up or down."""
        self.lines.scroll_relative(y=step * max(1, self.lines.size.height - 1), animate=False)

    def action_sideways(self, step: int) -> None:
        """Half a width to the side."""
        self.lines.scroll_relative(x=step * max(1, self.lines.size.width // 2), animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the screen's unless a search is on."""
        return action != "close_find" or bool(self.lines.sought) or self.has_class("-finding")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._seek(event.value)

    @on(Input.Submitted)
    def _keep_query(self, event: Input.Submitted) -> None:
        event.stop()
        self._leave_input()

    @on(LogLines.Pointed)
    def _point(self, event: LogLines.Pointed) -> None:
        event.stop()
        self.reveal(event.number)
        finding = self.store.finding_around(event.number)
        if finding is not None and finding.severity != "harmless":
            self.post_message(self.FindingSelected(finding))

    @on(LogLines.FollowEnded)
    def _follow_ended(self, event: LogLines.FollowEnded) -> None:
        event.stop()
        self._tell()

    def _seek(self, query: str) -> None:
        self.lines.sought = query
        number = self.store.step_match(query, self._here(1) - 1, 1) if query else None
        if number is not None:
            self.reveal(number)
        self.lines.refresh()
        self._tell()

    def _leave_input(self) -> None:
        if self._input.has_focus:
            self.focus()
        self.remove_class("-finding")

    def _here(self, step: int) -> int:
        """Where the user is: the cursor if in view, else just outside the view, on the side searched from."""
        rows = self.lines.rows_on_screen
        if not rows:
            return 0
        first, last = rows[0].number, rows[-1].number
        cursor = self.lines.cursor
        if cursor is not None and first <= cursor <= last:
            return cursor
        return first - 1 if step > 0 else last + 1

    def _refiltered(self, here: int) -> None:
        self._changed()
        if not self.lines.follow:
            self.lines.centre(here)

    def _changed(self, dropped: int = 0) -> None:
        self.lines.sync(dropped)
        self._tell()

    def _tell(self) -> None:
        told = subtitle(self.store, self.lines.follow, self.lines.sought, self.lines.cursor)
        if told != self._subtitle:
            self._subtitle = told
            self.border_subtitle = Content(told)

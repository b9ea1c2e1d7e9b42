"""What the boot log says that matters, the gravest first, and what the selected line means."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from sparktui.schema.live import Expectation, Finding
from sparktui.ui.widgets.finding_text import (
    because,
    expected_rows,
    explanation,
    finding_row,
    heading,
    line_number,
    sorted_findings,
)
from sparktui.ui.widgets.log_lines import MARKS

NOTHING_FOUND = "nothing found in the log so far"
_ROWS_KEPT = 3  # rows that the list keeps when the explanation is long
_WIDE = 60  # cells from which the severities stand in a column
_EXPECTED_STYLE = {True: "met", False: "fails", None: "note"}


def _key(key: str, action: str, label: str, name: str, tooltip: str, show: bool = False) -> Binding:
    return Binding(key, action, label, show=show, id=f"findings.{name}", tooltip=tooltip)


class FindingsPane(Widget, can_focus=True):
    """A list of findings, the selected one explained below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        _key("left_square_bracket,up", "select(-1)", "Previous", "previous", "Previous finding"),
        _key("right_square_bracket,down", "select(1)", "Next", "next", "Next finding"),
        _key("d", "dismiss", "Dismiss", "dismiss", "Hide this finding from now on", show=True),
        _key("u", "restore", "Undismiss", "restore", "Show dismissed findings again"),
        _key("enter", "open", "Record", "open", "The whole record with its rule", show=True),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"findings-pane--{name}" for name in ("fails", "costs", "note", "met", "selected", "detail")),
    }
    DEFAULT_CSS = """
    FindingsPane {
        border: round $border-blurred; height: 1fr; background: $surface; border-title-color: $warning;
        &:focus { border: round $border; }
        & .findings-pane--fails { color: $text-error; text-style: bold; }
        & .findings-pane--costs { color: $text-warning; }
        & .findings-pane--note { color: $text-muted; }
        & .findings-pane--met { color: $text-success; }
        & .findings-pane--selected { text-style: bold reverse; }
        & .findings-pane--detail { color: $foreground; }
    }
    """

    @dataclass
    class Selected(Message):
        """The user went to another finding.

        Attributes:
            finding: the selected one.
        """

        finding: Finding

    @dataclass
    class Dismissed(Message):
        """The user knows and doesn't want to see it again.

        Attributes:
            finding: its id is what to keep.
        """

        finding: Finding

    @dataclass
    class Opened(Message):
        """The user wants the whole record.

        Attributes:
            finding: the selected one.
        """

        finding: Finding

    @dataclass
    class Restored(Message):
        """The user wants to see the dismissed ones again."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._findings: tuple[Finding, ...] = ()
        self._known: Sequence[Finding] = ()  # the dismissed ones too: they may be causes
        self._expected: tuple[Expectation, ...] = ()
        self._index = 0
        self._chosen = False  # by the user; until then the most expensive one is selected
        self._heading = ""
        self._rows: tuple[Size, list[Strip]] | None = None  # the size they were made for
        self._top = 0  # index of the first finding in view
        self._tell(0)

    @property
    def selected(self) -> Finding | None:
        """The finding that is explained, if there is any."""
        return self._findings[self._index] if self._findings else None

    def show(
        self,
        findings: Sequence[Finding],
        dismissed: Collection[str] = (),
        expected: Sequence[Expectation] = (),
    ) -> None:
        """All findings so far, the ids of those not to be shown, and what the profile expects in the log.

        The most expensive one is selected until the user selects another, which then stays so.
        """
        self._known = findings
        shown, wanted = sorted_findings(findings, dismissed), tuple(expected)
        if (shown, wanted) != (self._findings, self._expected):
            chosen = self.selected if self._chosen else None
            gone = chosen is not None and chosen.id in dismissed
            self._findings, self._expected = shown, wanted
            self._index = self._place(chosen, gone)
            self._redraw(layout=True)
        self._tell(sum(f.severity != "harmless" and f.id in dismissed for f in findings))

    def _place(self, chosen: Finding | None, gone: bool) -> int:
        """Where the user's choice is now; of one just dismissed the next, of another boot's the first."""
        if chosen is None:
            self._chosen = False
            return 0
        same = (i for i, f in enumerate(self._findings) if (f.id, f.line) == (chosen.id, chosen.line))
        found = next(same, None)
        if found is not None:
            return found
        self._chosen = gone
        return max(0, min(self._index, len(self._findings) - 1)) if gone else 0

    def select(self, finding: Finding) -> None:
        """Go to this finding without telling so: somebody else selected it."""
        for index, known in enumerate(self._findings):
            if (known.id, known.line) == (finding.id, finding.line):
                self._go(index)
                return

    def action_select(self, step: int) -> None:
        """The next or previous finding."""
        self._choose(self._index + step)

    def action_dismiss(self) -> None:
        """Ask that the selected finding be hidden."""
        if self.selected is not None:
            self.post_message(self.Dismissed(self.selected))

    def action_restore(self) -> None:
        """Ask for the dismissed ones."""
        self.post_message(self.Restored())

    def action_open(self) -> None:
        """Ask for the whole record."""
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    def on_click(self, event: events.Click) -> None:
        row = event.y - self.gutter.top - len(expected_rows(self._expected, self.size.width))
        if 0 <= row < self._list_height(self.size):
            self._choose(self._top + row)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(expected_rows(self._expected, width)) + max(
            1, len(self._findings) + len(self._detail(width))
        )

    def render_line(self, y: int) -> Strip:
        if self._rows is None or self._rows[0] != self.size:
            self._rows = self.size, self._drawn(self.size)
        rows = self._rows[1]
        return rows[y] if y < len(rows) else Strip.blank(self.size.width, self.rich_style)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._rows = None

    def _choose(self, index: int) -> None:
        if 0 <= index < len(self._findings) and index != self._index:
            self._go(index)
            self.post_message(self.Selected(self._findings[index]))

    def _go(self, index: int) -> None:
        self._chosen = True
        if index != self._index:
            self._index = index
            self._redraw(layout=True)

    def _redraw(self, layout: bool) -> None:
        self._rows = None
        self.refresh(layout=layout and self.styles.is_auto_height)

    def _tell(self, dismissed: int) -> None:
        told = heading(self._findings, dismissed)
        if told != self._heading:
            self._heading = told
            self.border_title = Content(told)

    def _detail(self, width: int) -> list[str]:
        chosen = self.selected
        if chosen is None:
            return []
        reason = because(chosen, self._known)
        return [f"  {line}" for line in explanation(chosen, width - 2, reason)]

    def _list_height(self, size: Size) -> int:
        """Rows of the list: all where there is room, else what the explanation leaves, else a few."""
        left = max(0, size.height - len(expected_rows(self._expected, size.width)))
        room = max(left - len(self._detail(size.width)), min(_ROWS_KEPT, left))
        return min(len(self._findings), room)

    def _drawn(self, size: Size) -> list[Strip]:
        width = size.width
        top = [
            self._strip(text, width, _EXPECTED_STYLE[met])
            for text, met in expected_rows(self._expected, width)
        ]
        if not self._findings:
            return [*top, self._strip(NOTHING_FOUND, width, "note")]
        rows = [*top, *self._listed(size)]
        detail = self._detail(width)[: max(0, size.height - len(rows))]
        return rows + [self._strip(line, width, "detail") for line in detail]

    def _listed(self, size: Size) -> list[Strip]:
        width, height = size.width, self._list_height(size)
        self._top = max(0, min(self._top, self._index), self._index - height + 1)
        wide = width >= _WIDE
        line_width = max(len(line_number(f)) for f in self._findings)
        word_width = max(len(f.severity) for f in self._findings) if wide else 0
        rows = []
        for index, finding in enumerate(self._findings[self._top : self._top + height], self._top):
            selected = index == self._index
            reason = because(finding, self._known) if wide else ""
            text = finding_row(
                finding, width, selected=selected, line_width=line_width, word_width=word_width, reason=reason
            )
            rows.append(self._strip(text, width, _style_name(finding), *["selected"] * selected))
        return rows

    def _strip(self, text: str, width: int, name: str, *over: str) -> Strip:
        style = self.get_component_rich_style(f"findings-pane--{name}")
        for other in over:
            style += self.get_component_rich_style(f"findings-pane--{other}", partial=True)
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)


def _style_name(finding: Finding) -> str:
    mark = MARKS[finding.severity]
    return {"✖": "fails", "▲": "costs"}.get(mark, "note")

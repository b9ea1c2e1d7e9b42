"""What the boot log says that matters, the gravest first, and what the selected line means."""

from __future__ import annotations

import textwrap
from collections import Counter
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

from sparktui.schema.live import Finding
from sparktui.ui.widgets.log_lines import MARKS
from sparktui.ui.widgets.log_store import SEVERITIES, plain

NOTHING = "nothing found in the log so far"
_ROWS_KEPT = 3  # rows that the list keeps when the explanation is long
_WIDE = 64  # cells from which the severities stand in a column


def sorted_findings(findings: Sequence[Finding], dismissed: Collection[str]) -> tuple[Finding, ...]:
    """Those above harmless that are not dismissed (by id): by severity, CUDA graphs first, by line."""
    kept = [f for f in findings if f.severity != "harmless" and f.id not in dismissed]

    def weight(f: Finding) -> tuple[int, bool, int]:
        return SEVERITIES.index(f.severity), not f.id.startswith("cg-"), f.line

    return tuple(sorted(kept, key=weight))


def heading(findings: Sequence[Finding], dismissed: int) -> str:
    """``Findings  2 ▲ 1 ·``: how many of each mark."""
    counts = Counter(MARKS[f.severity] for f in findings)
    parts = [f"{counts[mark]} {mark}" for mark in dict.fromkeys(MARKS.values()) if counts[mark]]
    told = "  ".join(["Findings", " ".join(parts)] if parts else ["Findings"])
    return f"{told}  ({dismissed} dismissed)" if dismissed else told


def shortened(text: str, width: int) -> str:
    """Head and tail of a long text: vLLM says what is wrong first and what it does about it last."""
    if len(text) <= width:
        return text
    if width < 8:
        return text[: max(0, width - 1)] + "…"[: max(0, width)]
    head = (width - 1) // 3
    return f"{text[:head].rstrip()}…{text[len(text) - (width - 1 - head) :]}"


def finding_row(finding: Finding, width: int, line_width: int = 1, word_width: int = 0) -> str:
    """``▲ 144 costs speed  CUDAGraphMode…cudagraph_mode=PIECEWISE``, at most ``width`` characters."""
    head = f"{MARKS[finding.severity]} {finding.line:>{line_width}} {finding.severity:<{word_width}}  "
    return head[:width] + shortened(plain(finding.text), max(0, width - len(head)))


def explanation(finding: Finding, width: int) -> list[str]:
    """Meaning, cost and remedy, wrapped."""
    told = (("", finding.meaning), ("Costs: ", finding.cost), ("Do: ", finding.remedy))
    return [line for label, text in told if text for line in _wrapped(label + plain(text), width)]


def finding_text(finding: Finding, width: int) -> list[str]:
    """The whole record as plain lines of at most ``width`` characters."""
    lines = _wrapped(f"{MARKS[finding.severity]} {finding.severity}, log line {finding.line}".strip(), width)
    told = (
        ("", finding.text),
        ("Meaning", finding.meaning),
        ("Costs", finding.cost),
        ("Do", finding.remedy),
        ("Flag", finding.flag),
        ("Rule", finding.id),
    )
    for label, text in told:
        if text:
            lines += ["", *([label] if label else []), *_wrapped(plain(text), width)]
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(1, width), break_on_hyphens=False)


def _key(key: str, action: str, label: str, name: str, tooltip: str, show: bool = False) -> Binding:
    return Binding(key, action, label, show=show, id=f"findings.{name}", tooltip=tooltip)


class FindingsPane(Widget, can_focus=True):
    """A list of findings, the selected one explained below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        _key("left_square_bracket,up", "select(-1)", "Previous", "previous", "Previous finding"),
        _key("right_square_bracket,down", "select(1)", "Next", "next", "Next finding"),
        _key("d", "dismiss", "Dismiss", "dismiss", "Hide this finding from now on", show=True),
        _key("enter", "open", "Open", "open", "The whole record with its rule", show=True),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"findings-pane--{name}" for name in ("fails", "costs", "note", "selected", "detail")),
    }
    DEFAULT_CSS = """
    FindingsPane {
        border: round $border-blurred; height: 1fr; background: $surface; border-title-color: $warning;
        &:focus { border: round $border; }
        & .findings-pane--fails { color: $text-error; text-style: bold; }
        & .findings-pane--costs { color: $text-warning; }
        & .findings-pane--note { color: $text-muted; }
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

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._findings: tuple[Finding, ...] = ()
        self._index = 0
        self._heading = ""
        self._rows: tuple[Size, list[Strip]] | None = None  # the size they were made for
        self._top = 0  # index of the first finding in view
        self._tell(0)

    @property
    def selected(self) -> Finding | None:
        """The finding that is explained, if there is any."""
        return self._findings[self._index] if self._findings else None

    def show(self, findings: Sequence[Finding], dismissed: Collection[str] = ()) -> None:
        """All findings so far and the ids of those not to be shown; the selection stays on its finding."""
        shown = sorted_findings(findings, dismissed)
        if shown != self._findings:
            chosen = self.selected
            self._findings = shown
            self._index = next(
                (i for i, f in enumerate(shown) if chosen and (f.id, f.line) == (chosen.id, chosen.line)),
                max(0, min(self._index, len(shown) - 1)),
            )
            self._redraw(layout=True)
        self._tell(sum(f.severity != "harmless" and f.id in dismissed for f in findings))

    def select(self, finding: Finding) -> None:
        """Go to this finding without telling so: somebody else selected it."""
        if finding in self._findings:
            self._go(self._findings.index(finding))

    def action_select(self, step: int) -> None:
        """The next or previous finding."""
        self._choose(self._index + step)

    def action_dismiss(self) -> None:
        """Ask that the selected finding be hidden."""
        if self.selected is not None:
            self.post_message(self.Dismissed(self.selected))

    def action_open(self) -> None:
        """Ask for the whole record."""
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    def on_click(self, event: events.Click) -> None:
        row = event.y - self.gutter.top
        if 0 <= row < self._list_height(self.size):
            self._choose(self._top + row)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, len(self._findings) + len(self._detail(width)))

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
        if self.selected is None:
            return []
        return [f"  {line}" for line in explanation(self.selected, width - 2)]

    def _list_height(self, size: Size) -> int:
        """Rows of the list: all where there is room, else what the explanation leaves, else a few."""
        count = len(self._findings)
        room = max(size.height - len(self._detail(size.width)), min(_ROWS_KEPT, size.height))
        return min(count, room)

    def _drawn(self, size: Size) -> list[Strip]:
        width, height = size.width, self._list_height(size)
        if not self._findings:
            return [self._strip(NOTHING, width, "note")]
        self._top = max(0, min(self._top, self._index), self._index - height + 1)
        line_width = max(len(str(f.line)) for f in self._findings)
        word_width = max(len(f.severity) for f in self._findings) if width >= _WIDE else 0
        rows = []
        for index, finding in enumerate(self._findings[self._top : self._top + height], self._top):
            text = finding_row(finding, width, line_width, word_width)
            chosen = ["selected"] if index == self._index else []
            rows.append(self._strip(text, width, _style_name(finding), *chosen))
        detail = self._detail(width)[: size.height - height]
        return rows + [self._strip(line, width, "detail") for line in detail]

    def _strip(self, text: str, width: int, name: str, *over: str) -> Strip:
        style = self.get_component_rich_style(f"findings-pane--{name}")
        for other in over:
            style += self.get_component_rich_style(f"findings-pane--{other}", partial=True)
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)


def _style_name(finding: Finding) -> str:
    mark = MARKS[finding.severity]
    return {"✖": "fails", "▲": "costs"}.get(mark, "note")

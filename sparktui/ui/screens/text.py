"""Longer text on top of a screen: help, the whole record of a finding, the facts of a boot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static


@dataclass(frozen=True, slots=True)
class Section:
    """A heading over rows of label and text; the texts wrap beside their labels, however narrow it is."""

    title: str
    rows: Sequence[tuple[str, str]]


class TextScreen(ModalScreen[None]):
    """Scrolls; ``esc``, ``q``, ``?`` or enter go back."""

    BINDINGS = [Binding("escape,q,question_mark,enter", "dismiss", "Back", id="text.back")]
    DEFAULT_CSS = """
    TextScreen { align: center middle; }
    TextScreen > VerticalScroll { width: 100; max-width: 95%; height: auto; max-height: 90%;
        border: round $accent; background: $surface; padding: 0 2; }
    TextScreen Static { width: 1fr; height: auto; }
    """

    def __init__(self, title: str, text: str | Sequence[Section]) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = "esc back"
            yield Static(self._text if isinstance(self._text, str) else in_columns(self._text), markup=False)


def in_columns(sections: Sequence[Section]) -> RenderableType:
    """Sections one below the other, each with its own width of labels."""
    parts: list[RenderableType] = []
    for section in sections:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        for label, text in section.rows:
            grid.add_row(Text(label, "bold"), Text(text))
        parts += [Text(section.title, "bold underline"), grid, Text("")]
    return Group(*parts[:-1])

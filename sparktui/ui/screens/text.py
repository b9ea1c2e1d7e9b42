"""Longer text on top of a screen: help, the whole record of a finding."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static


class TextScreen(ModalScreen[None]):
    """Scrolls; ``esc``, ``q``, ``?`` or enter go back."""

    BINDINGS = [Binding("escape,q,question_mark,enter", "dismiss", "Back", id="text.back")]
    DEFAULT_CSS = """
    TextScreen { align: center middle; }
    TextScreen > VerticalScroll { width: 100; max-width: 95%; height: auto; max-height: 90%;
        border: round $accent; background: $surface; padding: 0 2; }
    TextScreen Static { width: 1fr; height: auto; }
    """

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = self._title
            box.border_subtitle = "esc back"
            yield Static(self._text, markup=False)

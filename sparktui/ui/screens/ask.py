"""A question with named answers. Enter takes none: only the letter that stands there does anything."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

Answer = tuple[str, str, str]  # key, value, text


class AskScreen(ModalScreen[str]):
    """Gives the value of the answer, "" for escape or any other key."""

    DEFAULT_CSS = """
    AskScreen { align: center middle; }
    AskScreen > Vertical { width: 64; max-width: 95%; height: auto; border: thick $warning;
        background: $surface; padding: 1 2; }
    AskScreen Static { width: 1fr; height: auto; }
    """

    def __init__(self, title: str, question: str, answers: Sequence[Answer]) -> None:
        super().__init__()
        self._title = title
        self._question = question
        self._answers = {key: (value, text) for key, value, text in answers}

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(self._title)
            grid = Table.grid(padding=(0, 2))
            grid.add_column(no_wrap=True)
            grid.add_column(ratio=1)
            for key, (_, text) in self._answers.items():
                grid.add_row(Text(f"  {key}"), Text(text))
            back = Text("  any other key: go back")
            yield Static(Group(Text(self._question), Text(), grid, back), markup=False)

    def on_key(self, event: events.Key) -> None:
        """One of the letters, or nothing."""
        event.stop()
        event.prevent_default()
        self.dismiss(self._answers.get(event.key, ("", ""))[0])

"""The sheet before a restart: what stops, who else is there, how long, what serves after."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

START_AFTER_S = 5
TICK_S = 1.0


@dataclass(frozen=True, slots=True)
class Sheet:
    """The text of a sheet, and whether it may start by itself."""

    title: str
    lines: tuple[str, ...]
    starts_itself: bool
    why_not: str = ""  # why it waits for y


class SheetScreen(ModalScreen[bool]):
    """``y`` starts at once, any other key cancels; by itself after five seconds where the sheet may."""

    DEFAULT_CSS = """
    SheetScreen { align: center middle; }
    SheetScreen > Vertical { width: 72; max-width: 95%; height: auto; max-height: 90%;
        border: thick $accent; background: $surface; padding: 1 2; }
    SheetScreen Static { width: 1fr; height: auto; }
    SheetScreen #sheet-count { margin-top: 1; text-style: bold; }
    """

    def __init__(self, sheet: Sheet) -> None:
        super().__init__()
        self._sheet = sheet
        self._left = START_AFTER_S

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(self._sheet.title)
            yield Static("\n".join(self._sheet.lines), markup=False)
            yield Static(self._prompt(), markup=False, id="sheet-count")

    def on_mount(self) -> None:
        if self._sheet.starts_itself:
            self.set_interval(TICK_S, self.tick)

    def tick(self) -> None:
        """One second less."""
        self._left -= 1
        if self._left <= 0:
            self.dismiss(True)
            return
        self.query_one("#sheet-count", Static).update(self._prompt())

    def _prompt(self) -> str:
        if self._sheet.starts_itself:
            return f"Starts in {self._left} s.   y now   any other key cancels"
        return f"{self._sheet.why_not}   y starts   any other key cancels"

    def on_key(self, event: events.Key) -> None:
        """Everything but ``y`` is a no."""
        event.stop()
        event.prevent_default()
        self.dismiss(event.key == "y")

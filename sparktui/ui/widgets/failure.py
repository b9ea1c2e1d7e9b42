"""Why a run failed, where nobody can overlook it, and what to do next."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from sparktui.schema.messages import Finished

_MOST = 440  # characters: six rows of 76


class FailureBox(Static):
    """Hidden unless the run has ended."""

    DEFAULT_CSS = """
    FailureBox { height: auto; max-height: 8; border: round $error; padding: 0 1; display: none; }
    FailureBox.quiet { border: round $border-blurred; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def show(self, finished: Finished | None) -> None:
        """The reason and the ways on; nothing while the run lives."""
        self.display = finished is not None
        if finished is None:
            return
        failed = finished.state == "failed"
        self.set_class(not failed, "quiet")
        self.border_title = "Failed" if failed else "Over"
        text = Text()
        if failed:
            text.append("✖ ", "bold red")
            text.append(_cut(finished.reason) or "for an unknown reason")
        else:
            text.append(
                f"The run is over: {finished.state}" + (f", {finished.reason}" if finished.reason else "")
            )
        self.border_subtitle = "r relaunches · 4 findings · R other runs and profiles · q quits"
        self.update(text)


def _cut(reason: str) -> str:
    """What fits on a small screen; the finding has the whole text."""
    return reason if len(reason) <= _MOST else f"{reason[: _MOST - 1].rstrip()}…"

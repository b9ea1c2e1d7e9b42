"""One widget in an app: what it tells and what stands on the screen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from rich.style import Style
from textual.app import App, ComposeResult
from textual.events import MouseScrollDown, MouseScrollUp
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget

from sparktui.bootlog.lines import Line, LineSplitter
from sparktui.schema.live import Finding, Severity

W1 = "0.24.0-h200/boot_fi_ngram.log"  # CUDA graphs degraded to PIECEWISE, on line 34
_LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
FOREIGN = ("[/x] y", "[red]no[/red]", "[EngineCore] in", "\x1b[31mESC\x1b[0m \x07bell", "[/]")


class One(App[None]):
    """An app with this widget and nothing else."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self._widget = widget

    def compose(self) -> ComposeResult:
        yield self._widget


@dataclass
class Look:
    """Hands and eyes on a running app."""

    pilot: Pilot[None]
    heard: list[Message] = field(default_factory=list)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def wheel(self, widget: Widget, up: bool) -> None:
        """One notch over the widget."""
        event = MouseScrollUp if up else MouseScrollDown
        widget.post_message(event(widget, 5, 0, 0, 0, 0, False, False, False))
        await self.pilot.pause()

    def told(self) -> list[Message]:
        """Messages of the project's own widgets since the last time asked, once each."""
        own = [
            m
            for m in self.heard
            if type(m).__module__.startswith("sparktui") and "Lines" not in repr(type(m))
        ]
        self.heard.clear()
        return [m for i, m in enumerate(own) if all(m is not other for other in own[:i])]

    def rows(self) -> list[str]:
        """The screen, a string a row."""
        return ["".join(text for text, _ in row) for row in self.cells()]

    def cells(self) -> list[list[tuple[str, Style]]]:
        """The screen's pieces with their styles."""
        rows = self.pilot.app.screen._compositor.render_strips()
        return [[(text, style or Style()) for text, style, _ in row] for row in rows]

    def row_with(self, text: str) -> str:
        """The only row that has this text."""
        (found,) = [row for row in self.rows() if text in row]
        return found

    def styles_of(self, text: str) -> list[Style]:
        """Styles of the pieces of the only row that has this text, the border left out."""
        (found,) = [row for row in self.cells() if text in "".join(piece for piece, _ in row)]
        return [style for piece, style in found if piece.strip("│╭╮╰╯─")]


@asynccontextmanager
async def looking(widget: Widget, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Look]:
    """The widget, running and focused."""
    heard: list[Message] = []
    async with One(widget).run_test(size=size, message_hook=heard.append) as pilot:
        widget.focus()
        await pilot.pause()
        heard.clear()
        yield Look(pilot, heard)


def log_lines(name: str) -> list[Line]:
    """A recorded log, cleaned."""
    splitter = LineSplitter()
    return splitter.feed((_LOGS / name).read_bytes()) + splitter.flush()


@cache
def w1_lines() -> tuple[str, ...]:
    return tuple(line.text for line in log_lines(W1))


@cache
def w1_findings() -> tuple[Finding, ...]:
    """What the log's reader finds there, in its words; fixed here, so that its rules may change."""
    return tuple(_found(*each) for each in _FOUND)


def _found(
    id: str, severity: Severity, line: int, meaning: str, cost: str = "", remedy: str = "", flag: str = "",
    source: str = "",
) -> Finding:  # fmt: skip
    text = w1_lines()[line - 1].partition("] ")[2]
    return Finding(id, severity, line, text, meaning, cost, remedy, flag, source)


def w1_finding() -> Finding:
    """The line that W1's author read past twice."""
    (found,) = [f for f in w1_findings() if f.text.endswith("setting cudagraph_mode=PIECEWISE")]
    return found


_FOUND: tuple[tuple[str, Severity, int, *tuple[str, ...]], ...] = (
    ("ulimit", "harmless", 8, "The limit on open files stays as it is."),
    (
        "async-off", "costs speed", 12,
        "This way of speculating switches asynchronous scheduling off; the GPU waits for the scheduler.",
        "About 5 to 15 % with many streams, next to nothing with one.",
        "Speculate with mtp, eagle or a draft model that keeps it.",
    ),
    ("v2-runner", "note", 15, "The older model runner is used."),
    ("min-p", "note", 22, "Requests can't use min_p and logit_bias."),
    (
        "cg-spec-piecewise", "costs speed", 34,
        "With speculation each decode step checks 1+k tokens, and this attention backend can capture only "
        "one-token steps. Decode and verify lose their full CUDA graph.",
        "Every decode step, whatever k is; reports range from -16 % to -47 % tok/s.",
        "Try --attention-backend FLASH_ATTN or TRITON_ATTN, or compare with speculation off.",
        "--attention-backend", "several reports",
    ),
    ("sampling", "note", 54, "The model brings its own sampling parameters."),
    ("jit", "note", 91, "A kernel was compiled while a request waited."),
    ("jit", "note", 92, "A kernel was compiled while a request waited."),
)  # fmt: skip

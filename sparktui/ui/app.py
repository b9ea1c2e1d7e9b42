"""The app: which screen is up, quitting, the palette. Work is the backend's."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections import deque
from collections.abc import Iterable
from time import monotonic

from textual import events, work
from textual.app import App, SuspendNotSupported, SystemCommand
from textual.binding import Binding
from textual.screen import Screen

from sparktui.rundir import RunDir
from sparktui.schema.messages import StopRun
from sparktui.ui.backend import Backend, CannotDo
from sparktui.ui.follower import Follower
from sparktui.ui.help import help_sections
from sparktui.ui.screens.ask import AskScreen
from sparktui.ui.screens.live import LiveScreen
from sparktui.ui.screens.live_commands import live_commands
from sparktui.ui.screens.ordering import Connect
from sparktui.ui.screens.picker import PickerScreen
from sparktui.ui.screens.text import TextScreen

_TYPING_S = 1.0  # a letter so soon after another is typing, not a command


class SparkApp(App[int]):
    """``return_code`` is the exit code."""

    TITLE = "sparktui"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS = [
        Binding("question_mark", "help", "Help", id="app.help", tooltip="Keys and definitions"),
        Binding("colon,ctrl+p", "command_palette", "Palette", show=False, id="app.palette"),
        Binding("q", "ask_quit", "Quit", id="app.quit", tooltip="Asks what becomes of the server"),
        Binding("ctrl+q", "ask_quit", "Quit", show=False, id="app.quit_too"),
    ]

    def __init__(self, backend: Backend, run: RunDir | None = None, connect: Connect = Follower) -> None:
        super().__init__()
        self.backend = backend
        self._connect = connect
        self._first = run
        self._letters: deque[float] = deque(maxlen=2)
        self._last_key: events.Key | None = None
        if os.environ.get("SSH_CONNECTION") or os.environ.get("TMUX"):
            self.animation_level = "basic"

    def on_mount(self) -> None:
        self.push_screen(PickerScreen())
        if self._first is not None:
            self.show_run(self._first)

    async def on_event(self, event: events.Event) -> None:
        """Note when letters come, to tell typing from commands."""
        if isinstance(event, events.Key) and event.is_printable and event is not self._last_key:
            self._last_key = event  # the same one comes again when it bubbles up
            self._letters.append(monotonic())
        await super().on_event(event)

    @property
    def typed_before(self) -> bool:
        """Whether the last letter came right after another one."""
        return len(self._letters) == 2 and self._letters[1] - self._letters[0] < _TYPING_S

    def show_run(self, run: RunDir) -> None:
        """The live screen of a run on top of the picker."""
        while len(self.screen_stack) > 2:
            self.pop_screen()
        self.push_screen(LiveScreen(run, self._connect))

    def action_picker(self) -> None:
        """Back to runs and profiles; the run goes on."""
        while len(self.screen_stack) > 2:
            self.pop_screen()

    @work(thread=True, exclusive=True, exit_on_error=False, group="relaunch")
    def relaunch(self, run: RunDir) -> None:
        """A new run of the same plan."""
        try:
            new = self.backend.relaunch(run)
        except CannotDo as exc:
            self.call_from_thread(self.notify, str(exc), severity="error", markup=False)
            return
        self.call_from_thread(self.show_run, new)

    def edit(self, path: str) -> None:
        """The user's own editor on a file, the app out of the way meanwhile."""
        editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        try:
            with self.suspend():
                subprocess.run([*editor, path], check=False)
        except (OSError, SuspendNotSupported) as exc:
            self.notify(f"{editor[0]}: {exc or 'cannot be run from here'}", severity="error", markup=False)
            return
        self.notify("the profile counts at the next launch", markup=False)

    def action_help(self) -> None:
        self.push_screen(TextScreen("Help", help_sections()))

    async def action_quit(self) -> None:
        """The palette's Quit goes the same way as the key."""
        self.action_ask_quit()

    def action_ask_quit(self) -> None:
        """Leave running, stop, or stay. Without a living run there is nothing to ask."""
        live = next((s for s in self.screen_stack if isinstance(s, LiveScreen)), None)
        if live is None or live.model.finished is not None:
            self.exit(0)
            return
        question = AskScreen(
            "Quit?",
            f"{live.run.id} runs in its own host.",
            [("l", "leave", "leave it running"), ("s", "stop", "stop the server, then quit")],
        )

        def answered(value: str | None) -> None:
            if value == "leave":
                self.exit(0, message=f"{live.run.id} goes on; `sparktui` finds it again")
            elif value == "stop":
                live.quit_when_over = True
                self.run_worker(live.follower.send(StopRun()), exit_on_error=False)

        self.push_screen(question, answered)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Textual's own, and what the screen can do now."""
        yield from super().get_system_commands(screen)
        if isinstance(screen, LiveScreen):
            yield from live_commands(screen)
            yield SystemCommand("Runs and profiles", "The picker", self.action_picker)

"""Hands on a loaded live screen, and patience."""

from __future__ import annotations

from collections.abc import Callable

from textual.pilot import Pilot

from sparktui.ui.app import SparkApp
from tests.ui.conftest import follower, live
from tests.ui.screen_text import screen_text


async def until(pilot: Pilot[int], condition: Callable[[], bool]) -> None:
    """Let the app work until this is so."""
    for _ in range(1000):
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError("not within 20 s")


class Hands:
    """Presses keys on a loaded live screen."""

    def __init__(self, app: SparkApp, pilot: Pilot[int]) -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def after_debounce(self) -> None:
        """Until the slider's rest of 0.15 s is over and its intent has gone."""
        await self.pilot.pause(0.3)

    @property
    def sent(self) -> list[object]:
        return follower(self.app).sent

    @property
    def top(self) -> object:
        """The screen on top."""
        return self.app.screen

    @property
    def on_live(self) -> bool:
        """Whether nothing lies on top of the live screen."""
        return self.app.screen is live(self.app)

    @property
    def text(self) -> str:
        return screen_text(self.app)

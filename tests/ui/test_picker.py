"""The picker: choosing, filtering, opening, and what cannot be opened."""

from __future__ import annotations

from sparktui.rundir import RunDir
from sparktui.ui.app import SparkApp
from sparktui.ui.backend import Card
from tests.ui.canned import FakeBackend
from tests.ui.conftest import live
from tests.ui.hands import until
from tests.ui.screen_text import screen_text


async def test_picker_keys(picker_app: SparkApp, backend: FakeBackend) -> None:
    async with picker_app.run_test(size=(120, 40)) as pilot:
        await picker_app.workers.wait_for_complete()
        await pilot.pause()
        text = screen_text(picker_app)
        assert "[/x] someone's model" in text
        await pilot.press("slash", *"nemotron", "enter")
        await pilot.pause()
        assert "someone's" not in screen_text(picker_app)
        await pilot.press("down", "v", "3")
        await until(pilot, lambda: len(picker_app.screen_stack) == 3)
        assert backend.opened == [("p/nemotron.yaml", "k2")]
        assert live(picker_app)


async def test_a_broken_profile_is_said_and_the_rest_stays_usable(
    picker_app: SparkApp, backend: FakeBackend
) -> None:
    async with picker_app.run_test(size=(120, 40)) as pilot:
        await picker_app.workers.wait_for_complete()
        await pilot.press(*["down"] * 6, "enter")
        await until(pilot, lambda: bool(picker_app._notifications))
        assert any("[/x] broken" in note.message for note in picker_app._notifications)
        await pilot.press(*["up"] * 6, "enter")
        await until(pilot, lambda: len(picker_app.screen_stack) == 3)
        assert live(picker_app)


async def test_opening_says_so_at_once(picker_app: SparkApp, backend: FakeBackend) -> None:
    said = []
    open_run = backend.open

    def opening(card: Card, variant: str | None) -> RunDir:
        said.append(screen_text(picker_app).splitlines()[0].strip())
        return open_run(card, variant)

    async with picker_app.run_test(size=(80, 24)) as pilot:
        await picker_app.workers.wait_for_complete()
        backend.open = opening  # type: ignore[method-assign]
        await pilot.press("enter")
        await until(pilot, lambda: len(picker_app.screen_stack) == 3)
    assert said == ["sparktui   attaching to nemotron-1130-2033-ab12 …"]

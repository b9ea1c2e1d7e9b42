"""The app on a real host with the stand-in: life, load, a verdict by one key, detach and re-attach."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from sparktui.commands.app import AppBackend, launch
from sparktui.rundir import RunDir
from sparktui.ui.app import SparkApp
from tests.support import Home
from tests.ui.conftest import live
from tests.ui.screen_text import screen_text


@pytest.fixture
def _here(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "SPARKTUI_TEST_HOME"):
        monkeypatch.setenv(name, home.env[name])
    monkeypatch.chdir(home.path)


async def until(pilot: Pilot[int], condition: Callable[[], bool], seconds: float = 60) -> None:
    """Let the app work until this is so."""
    for _ in range(int(seconds / 0.1)):
        if condition():
            return
        await pilot.pause(0.1)
    raise AssertionError(f"not within {seconds:g} s:\n{screen_text(pilot.app)}")


@pytest.mark.usefixtures("_here")
async def test_from_launch_to_verdict_and_back(home: Home, tmp_path: Path) -> None:
    run = launch(f"{home.profile(boot=1.0, window=1.6)}:on", (1,))
    app = SparkApp(AppBackend(), run)
    async with app.run_test(size=(120, 40)) as pilot:
        await _sees_life_and_moves_the_load(app, pilot)
        await pilot.pause(1.2)  # or the next letter would look like typing
        await pilot.press("a")
        await until(pilot, lambda: "Starts in" in screen_text(app))
        await pilot.press("y")
        await until(pilot, lambda: live(app).model.cells != [], 60)
        await until(pilot, lambda: live(app).model.report is not None, 90)
        report = live(app).model.report
        assert report is not None
        assert [cell.variant for arm in report.arms for cell in arm.cells] == ["off", "on"]
        assert report.after.startswith("Serving: on")
        await until(pilot, lambda: "1v1, provisional" in screen_text(app))
        await until(pilot, lambda: "READY" in screen_text(app))
        await pilot.press("q", "l")
    assert app.return_code == 0
    assert home.servers(), "left running"
    await _comes_back(run)
    assert home.run("stop", run.id)[0] == 0
    assert not home.servers()


async def _sees_life_and_moves_the_load(app: SparkApp, pilot: Pilot[int]) -> None:
    await until(pilot, lambda: "BOOTING" in screen_text(app), 20)
    await until(pilot, lambda: "cudagraph_mode=PIECEWISE" in screen_text(app), 20)
    await until(pilot, lambda: "READY" in screen_text(app), 20)
    await until(pilot, lambda: "1 asked · 1 in flight · 1 running" in screen_text(app), 20)
    await pilot.press("l")
    await until(pilot, lambda: "2 asked · 2 in flight · 2 running" in screen_text(app), 4)
    await pilot.press("h")
    await until(pilot, lambda: "1 asked" in screen_text(app), 4)
    await until(pilot, lambda: "accept" in screen_text(app).lower() and "%" in screen_text(app), 10)


async def _comes_back(run: RunDir) -> None:
    """Another terminal later: it sees what happened meanwhile, the verdict too."""
    again = SparkApp(AppBackend(), run)
    async with again.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: live(again).model.report is not None, 20)
        await until(pilot, lambda: "Verdict" in screen_text(again), 10)


@pytest.mark.usefixtures("_here")
async def test_two_terminals_one_driver(home: Home) -> None:
    run = launch(f"{home.profile(boot=0.5)}:off", (1,))
    one, two = SparkApp(AppBackend(), run), SparkApp(AppBackend(), run)
    async with one.run_test(size=(120, 30)) as first:
        await until(first, lambda: "1 running" in screen_text(one), 30)
        async with two.run_test(size=(120, 30)) as second:
            await until(second, lambda: "driven from" in screen_text(two), 20)
            await second.press("l")
            await second.pause(0.5)
            shown = live(two).model.snapshot
            assert shown is not None
            assert shown.load.asked == 1
            await second.press("D")
            await until(second, lambda: "Take over?" in screen_text(two), 10)
            await second.press("y")
            await until(first, lambda: "driven from" in screen_text(one), 10)
            await until(second, lambda: "driven from" not in screen_text(two), 10)
            await second.press("l")
            await until(second, lambda: "2 asked" in screen_text(two), 10)
        await until(first, lambda: "driven from" not in screen_text(one), 10)
    assert home.run("stop", "--all")[0] == 0


@pytest.mark.usefixtures("_here")
async def test_a_boot_that_fails_shows_why(home: Home) -> None:
    run = launch(f"{home.profile(boot=0.5, args='sim-fail: engine-oom')}:off")
    app = SparkApp(AppBackend(), run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "r relaunches" in screen_text(app), 30)
        assert "OutOfMemoryError: CUDA out of memory" in screen_text(app)
    assert not home.servers()

"""An app on a canned run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sparktui.rundir import RunDir
from sparktui.ui.app import SparkApp
from sparktui.ui.messages import EventsArrived, LogArrived, SnapshotArrived
from sparktui.ui.screens.live import LiveScreen
from tests.ui.canned import PLAN, FakeBackend, FakeFollower, events, log_lines, snapshot


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine is no silent host."""
    monkeypatch.setattr("sparktui.ui.screens.live.SILENT_HOST_S", 3600.0)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return RunDir.create("run", PLAN)


@pytest.fixture
def backend(run: RunDir) -> FakeBackend:
    return FakeBackend(run)


@pytest.fixture
def app(run: RunDir, backend: FakeBackend) -> SparkApp:
    """On the live screen of the canned run, nothing arrived yet."""
    return SparkApp(backend, run, FakeFollower)


@pytest.fixture
def picker_app(backend: FakeBackend) -> SparkApp:
    return SparkApp(backend, None, FakeFollower)


def live(app: SparkApp) -> LiveScreen:
    """The live screen, below whatever is on top."""
    return next(screen for screen in app.screen_stack if isinstance(screen, LiveScreen))


def follower(app: SparkApp) -> FakeFollower:
    found = live(app).follower
    assert isinstance(found, FakeFollower)
    return found


def arrive(app: SparkApp, *, samples: int = 6, log: bool = True, **changes: object) -> None:
    """A boot's events and log, then snapshots."""
    screen = live(app)
    screen.post_message(EventsArrived(events()))
    if log:
        screen.post_message(LogArrived(1, log_lines()[:60]))
    for seq in range(1, samples + 1):
        screen.on_snapshot_arrived(SnapshotArrived(snapshot(seq, **changes)))


@pytest.fixture
async def hands(app: SparkApp):  # type: ignore[no-untyped-def]
    """Hands on a loaded live screen."""
    from tests.ui.hands import Hands

    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        arrive(app)
        await pilot.pause()
        yield Hands(app, pilot)

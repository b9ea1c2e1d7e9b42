"""Golden screens at three sizes: what a user sees in each state of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from sparktui.schema.codec import to_plain
from sparktui.schema.live import BootPhase, Event, LoadView, ServerView
from sparktui.schema.messages import Finished
from sparktui.ui.app import SparkApp
from sparktui.ui.messages import EventsArrived, RunFinished, SnapshotArrived
from tests.ui.canned import (
    EXPECTED,
    IDLE,
    LOADED,
    OFF_CELL,
    PHASES,
    QUIET,
    STEPS,
    T0,
    events,
    experiment,
    report,
    snapshot,
)
from tests.ui.conftest import arrive, live
from tests.ui.screen_text import check_golden, screen_text
from tests.ui.states import FIGURE_STATES, TROUBLE

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 50)], ids=lambda s: f"{s[0]}x{s[1]}")
BOOTING = ServerView("booting", "on", True, "http://127.0.0.1:8000", 4127, T0)


def booting(app: SparkApp) -> None:
    arrive(app, samples=1, server=BOOTING, load=LoadView(), figures=IDLE, phases=PHASES[:3], gpus=())


def silent(app: SparkApp) -> None:
    """The boot with W1's downgrade, compiling without a word; the capture's bar stands there."""
    phases = (*PHASES[:4], BootPhase("compile", 34.0))
    bar = "Capturing CUDA graphs (PIECEWISE):  45%|████▌     | [/x]"
    arrive(app, samples=1, server=BOOTING, load=LoadView(), figures=IDLE, phases=phases, gpus=(),
           silence=QUIET, log_partial=bar)  # fmt: skip


def expecting(app: SparkApp) -> None:
    """One expected line is there, one is not; the figures come from the log."""
    figures = dataclasses.replace(LOADED, server_source="log", scrape_age_s=None)
    arrive(app, samples=10, expected=EXPECTED, graph_steps=STEPS, repeats={"jit": 12}, figures=figures)


def failed(app: SparkApp) -> None:
    booting(app)
    reason = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate [/x] 2.00 GiB"
    view = ServerView("failed", "on", True, "http://127.0.0.1:8000", None, T0, reason=reason)
    live(app).on_snapshot_arrived(SnapshotArrived(snapshot(2, server=view, phases=PHASES[:3])))
    live(app).post_message(RunFinished(Finished("failed", reason)))


def idle(app: SparkApp) -> None:
    arrive(app, load=LoadView(), figures=IDLE)


def loaded(app: SparkApp) -> None:
    arrive(app, samples=40)


def b_booting(app: SparkApp) -> None:
    screen = live(app)
    screen.post_message(EventsArrived((
        Event(1, T0, "experiment", "info", "A/B", {"begun": ["off", "on"]}),
        Event(2, T0, "server", "info", "off: started", {"started": "off"}),
        Event(3, T0, "experiment", "info", "cell", {"cell": to_plain(OFF_CELL)}),
        *events("on"),
    )))  # fmt: skip
    arrive(app, samples=1, server=BOOTING, load=LoadView(), figures=IDLE, phases=PHASES[:4],
           experiment=experiment("boot", "on", 2, None))  # fmt: skip


def verdict(app: SparkApp) -> None:
    arrive(app, samples=10)
    live(app).post_message(EventsArrived((
        Event(50, T0, "verdict", "info", "verdict", {"report": to_plain(report())}),)))  # fmt: skip


def no_gpu(app: SparkApp) -> None:
    arrive(app, samples=10, gpus=())


STATES: dict[str, Callable[[SparkApp], None]] = {
    "booting": booting,
    "silent": silent,
    "expecting": expecting,
    "failed_boot": failed,
    "ready_idle": idle,
    "loaded": loaded,
    "b_booting": b_booting,
    "verdict": verdict,
    "no_gpu": no_gpu,
    **TROUBLE,
}


async def settled(pilot: Pilot[int]) -> None:
    """Until all is drawn, and earlier boots are known."""
    await pilot.pause()
    if looking := [worker for worker in pilot.app.workers if worker.group == "look back"]:
        await pilot.app.workers.wait_for_complete(looking)
    await pilot.pause()


@SIZES
@pytest.mark.parametrize("state", list(STATES))
async def test_live(app: SparkApp, size: tuple[int, int], state: str) -> None:
    async with app.run_test(size=size, notifications=False) as pilot:
        await settled(pilot)
        STATES[state](app)
        await settled(pilot)
        app._notifications.clear()
        check_golden(f"{state}_{size[0]}x{size[1]}", screen_text(app))


@SIZES
@pytest.mark.parametrize("state", list(FIGURE_STATES))
async def test_all_figures(app: SparkApp, size: tuple[int, int], state: str) -> None:
    async with app.run_test(size=size, notifications=False) as pilot:
        await settled(pilot)
        FIGURE_STATES[state](app)
        await pilot.press("1")
        await settled(pilot)
        check_golden(f"figures_{state}_{size[0]}x{size[1]}", screen_text(app))


@SIZES
async def test_sheet(app: SparkApp, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparktui.ui.screens.sheet.TICK_S", 3600.0)  # its first second, however slow
    async with app.run_test(size=size) as pilot:
        loaded(app)
        await settled(pilot)
        await pilot.press("a")
        await settled(pilot)
        check_golden(f"sheet_{size[0]}x{size[1]}", screen_text(app))


@SIZES
async def test_picker(picker_app: SparkApp, size: tuple[int, int]) -> None:
    async with picker_app.run_test(size=size) as pilot:
        await picker_app.workers.wait_for_complete()
        await settled(pilot)
        check_golden(f"picker_{size[0]}x{size[1]}", screen_text(picker_app))

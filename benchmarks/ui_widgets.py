"""CPU cost of one refresh of the dashboard's drawn widgets, in a headless app.

Run ``python benchmarks/ui_widgets.py [refreshes]``. The last column is the share of a core at two refreshes a
second, after taking off what the app costs when nothing changes. A loop of a million steps, timed beside,
tells how fast the machine was.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
import time
from collections.abc import Callable

from textual.app import App, ComposeResult
from textual.containers import Grid, Horizontal

from sparktui.schema.live import BootPhase
from sparktui.ui.widgets.acceptance import AcceptanceBars
from sparktui.ui.widgets.chart import Chart
from sparktui.ui.widgets.phases import Phases
from sparktui.ui.widgets.tile import Tile

HZ = 2
SAMPLES = 320
Refresh = Callable[["Bench", int], None]


class Bench(App[None]):
    CSS = """
    #tiles, #more { height: 4; }
    #charts { grid-size: 2 2; height: 1fr; }
    AcceptanceBars { height: 8; }
    """

    def __init__(self) -> None:
        super().__init__()
        rng = random.Random(1)
        self.series = [300 + 60 * math.sin(i / 20) + 20 * rng.random() for i in range(4 * SAMPLES)]

    def compose(self) -> ComposeResult:
        yield Phases()
        with Horizontal(id="tiles"):
            yield from (Tile(f"tile {n}") for n in range(6))
        with Horizontal(id="more"):
            yield from (Tile(f"tile {n}") for n in range(6, 8))
        with Grid(id="charts"):
            yield from (Chart(f"chart {n}") for n in range(4))
        yield AcceptanceBars()

    def window(self, tick: int) -> list[float]:
        start = tick % (3 * SAMPLES)
        return self.series[start : start + SAMPLES]


def nothing(app: Bench, tick: int) -> None:
    """The app's own cost of one turn."""


def same(app: Bench, tick: int) -> None:
    all_of_it(app, 0)


def charts(app: Bench, tick: int) -> None:
    for chart in app.query(Chart):
        chart.show(app.window(tick), unit="tok/s", ghost=77.1, ghost_label="off", marks=[(tick % 200, "8")])


def tiles(app: Bench, tick: int) -> None:
    values = app.window(tick)
    for tile in list(app.query(Tile))[:6]:
        tile.show(f"{values[-1]:.1f}", "tok/s", values)


def dashboard(app: Bench, tick: int) -> None:
    charts(app, tick)
    values = app.window(tick)
    for tile in app.query(Tile):
        tile.show(f"{values[-1]:.1f}", "tok/s", values)


def all_of_it(app: Bench, tick: int) -> None:
    dashboard(app, tick)
    shares = [0.83 - tick % 10 / 100, 0.68, 0.55]
    app.query_one(AcceptanceBars).show(shares, mean_length=2.61 + tick % 7 / 100, k=3)
    phases = [BootPhase("launch", 0, 5.1), BootPhase("weights", 5.1, None, 0.5)]
    app.query_one(Phases).show(phases, state="booting", now_s=6.0 + tick / HZ)


CASES: tuple[tuple[str, Refresh], ...] = (
    ("nothing", nothing),
    ("the same again", same),
    ("4 charts", charts),
    ("6 tiles", tiles),
    ("4 charts + 8 tiles", dashboard),
    ("and bars and phases", all_of_it),
)


async def measure(size: tuple[int, int], refresh: Refresh, refreshes: int) -> float:
    """CPU milliseconds per refresh, painted."""
    app = Bench()
    async with app.run_test(size=size) as pilot:
        for tick in range(5):
            refresh(app, tick)
            await pilot.pause()
        started = time.process_time()
        for tick in range(5, refreshes + 5):
            with app.batch_update():
                refresh(app, tick)
            await pilot.pause()
        return (time.process_time() - started) / refreshes * 1000


def loop_ms() -> float:
    started = time.process_time()
    for _ in range(1_000_000):
        pass
    return (time.process_time() - started) * 1000


def main(refreshes: int) -> None:
    print(f"{'':20} {'size':>8} {'ms CPU':>8} {'% core':>8}")
    for size in ((80, 24), (160, 50)):
        idle = 0.0
        for name, refresh in CASES:
            cost = asyncio.run(measure(size, refresh, refreshes))
            idle = idle or cost
            share = (cost - idle) * HZ / 10
            print(f"{name:20} {f'{size[0]}x{size[1]}':>8} {cost:8.1f} {share:8.1f}")
    print(f"a loop of 1e6 steps: {loop_ms():.0f} ms CPU")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)

"""CPU time of the log pane: µs a line for 10,000 lines, ms a repaint. Run: python benchmarks/log_view.py"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from textual.app import App, ComposeResult

from sparktui.schema.live import Finding
from sparktui.ui.widgets.log_store import LogStore
from sparktui.ui.widgets.log_view import LogView

LINES = 10_000
SIZE = (160, 50)
TEXTS = [
    f"(EngineCore pid=1095) {'WARNING' if n % 50 == 0 else 'INFO'} 11-30 18:17:11 [loggers.py:273] "
    f"Engine 000: Avg prompt throughput: {n}.3 tokens/s, "
    f"Avg generation throughput: 132.2 tokens/s, Running: 8 reqs"
    for n in range(LINES)
]


class Pane(App[None]):
    """The log pane, alone."""

    def compose(self) -> ComposeResult:
        yield LogView()


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def report(what: str, seconds: float, count: int, unit: str = "µs a line") -> None:
    scale = 1e6 if unit.startswith("µs") else 1e3
    print(f"{what:48} {seconds / count * scale:9.1f} {unit}")


def add(store: LogStore | LogView, batch: int) -> None:
    for start in range(0, LINES, batch):
        store.extend(start + 1, TEXTS[start : start + batch])


async def painted(batch: int) -> None:
    """Lines in batches, the screen painted after each."""
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        view = app.query_one(LogView)
        view.mark([Finding("x", "costs speed", 34, "t", "m")])
        await pilot.pause()
        start = time.process_time()
        for first in range(0, LINES, batch):
            view.extend(first + 1, TEXTS[first : first + batch])
            await pilot.pause()
        spent = time.process_time() - start
        report(f"pane, painted every {batch:,} lines", spent, LINES)
        report("", spent, LINES // batch, "ms a batch and repaint")


async def keys() -> None:
    """What the keys cost on a full ring."""
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        view = app.query_one(LogView)
        add(view, LINES)
        await pilot.pause()
        report("w, filter 10,000 lines", cpu(view.action_warnings), 1, "ms")
        report("w again", cpu(view.action_warnings), 1, "ms")
        report("find in 10,000 lines", cpu(lambda: view.store.matches("throughput: 99")), 1, "ms")


def main() -> None:
    """Print all of it."""
    report("store alone, one batch", cpu(lambda: add(LogStore(), LINES)), LINES)
    report("store alone, batches of 20", cpu(lambda: add(LogStore(), 20)), LINES)
    for batch in (LINES, 1_000, 100):
        asyncio.run(painted(batch))
    asyncio.run(keys())


if __name__ == "__main__":
    main()

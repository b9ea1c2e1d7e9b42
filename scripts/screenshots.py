"""Draw the README's pictures from canned snapshots: python scripts/screenshots.py [FOLDER, default docs].

The same input gives the same bytes, so a changed picture in a diff is a changed screen.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sparktui.rundir import RunDir
from sparktui.ui.app import SparkApp
from tests.ui import test_golden as states
from tests.ui.canned import PLAN, FakeBackend, FakeFollower

PICTURES = {"booting": states.booting, "live": states.loaded, "verdict": states.verdict}
SIZE = (120, 40)


async def draw(folder: Path) -> None:
    """One SVG a state."""
    for name, reach in PICTURES.items():
        run = RunDir.create("run", PLAN)
        app = SparkApp(FakeBackend(run), run, FakeFollower)
        async with app.run_test(size=SIZE) as pilot:
            await states.settled(pilot)
            reach(app)
            await states.settled(pilot)
            (folder / f"{name}.svg").write_text(app.export_screenshot(title="sparktui"), "utf-8")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    folder.mkdir(exist_ok=True)
    os.environ["TZ"] = "UTC"
    time.tzset()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        asyncio.run(draw(folder))


if __name__ == "__main__":
    main()

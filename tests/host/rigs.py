"""A rig on a server that runs already, with a desk to give it orders."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from sparktui.host.desk import Desk
from sparktui.host.journal import Journal
from sparktui.host.rig import Rig
from sparktui.rundir import RunDir
from sparktui.schema.codec import SCHEMA_VERSION, from_plain
from sparktui.schema.launch import LaunchSpec, LoadSpec, MeasureSpec, Plan
from sparktui.schema.records import PrefixProbe
from sparktui.server import ready
from tests.standin import MODEL

LONG = LoadSpec(input_tokens=64, output_tokens=8000)
SHORT = LoadSpec(input_tokens=64, output_tokens=32)


@dataclass
class Bench:
    """``desk`` takes orders for ``rig``; ``run`` has what was written."""

    run: RunDir
    journal: Journal
    rig: Rig
    desk: Desk

    def probes(self) -> list[PrefixProbe]:
        """What was told of the prefix cache."""
        told = [event.data["prefix_probe"] for event in self.journal.events if "prefix_probe" in event.data]
        return [from_plain(PrefixProbe, value) for value in told]

    async def streams(self, count: int) -> None:
        """So many, and all of them in flight."""
        await self.rig.drive(count)
        await eventually(lambda: self.in_flight == count, f"{count} in flight")

    @property
    def in_flight(self) -> int:
        totals = self.rig.loader.totals
        return totals.in_flight if totals else 0


async def eventually(condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Until it is true; fails with ``what`` when the time is up."""
    give_up = monotonic() + seconds
    while not condition():
        assert monotonic() < give_up, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def bench(
    path: Path, port: int, load: LoadSpec, patch: pytest.MonkeyPatch, env_file: Path | None = None
) -> AsyncIterator[Bench]:
    """Nothing has been booted yet; ``rig.boot(0)`` attaches to the server at ``port``."""
    patch.setenv("XDG_STATE_HOME", str(path / "state"))
    spec = LaunchSpec(
        "there", "off", "attach", (), "127.0.0.1", port, MODEL, False,
        env_file=str(env_file) if env_file else None,
    )  # fmt: skip
    plan = Plan(SCHEMA_VERSION, "there", "there.yaml", (spec,), load, MeasureSpec())
    run = RunDir.create("run", plan)
    journal = Journal(run.events)
    async with ready.client() as http:
        rig = Rig(run, plan, journal, http)
        try:
            yield Bench(run, journal, rig, Desk(plan, rig, journal))
        finally:
            await rig.stop()
            await rig.close()
            journal.close()

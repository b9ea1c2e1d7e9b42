"""What clients ask for: who drives, the load, orders for the host. Refusals are plain ValueErrors."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable
from typing import Any

from sparktui.compare.prefix import judge
from sparktui.host.ab import AbRun
from sparktui.host.journal import Journal, Level
from sparktui.host.probe import useless_cache
from sparktui.host.rig import Rig
from sparktui.schema.codec import to_plain
from sparktui.schema.launch import Plan
from sparktui.schema.live import Driver
from sparktui.schema.messages import (
    CancelExperiment,
    Drive,
    ProbePrefixCache,
    SetLoad,
    SetWindow,
    SetWorkload,
    StartExperiment,
    StopRun,
    SwitchArm,
)
from sparktui.schema.records import PrefixProbe
from sparktui.schema.workloads import WORKLOADS

MAX_STREAMS = 4096
WINDOWS = (5, 15, 60)


class Desk:
    """One a run. ``orders`` are for the host's loop; the rest is answered at once."""

    def __init__(self, plan: Plan, rig: Rig, journal: Journal) -> None:
        self._plan = plan
        self._rig = rig
        self._journal = journal
        self._load = plan.loads[0] if plan.loads else 0
        self._answers: dict[type, Callable[[Any], Awaitable[None]]] = {
            SetLoad: self._set_load,
            SwitchArm: self._switch,
            StartExperiment: self._start,
            CancelExperiment: self._cancel,
            SetWindow: self._set_window,
            SetWorkload: self._set_workload,
            ProbePrefixCache: self._probe,
        }
        self.orders: asyncio.Queue[StartExperiment | SwitchArm] = asyncio.Queue()
        self.stopping = asyncio.Event()
        self.stop_reason = ""
        self.driver: Driver | None = None
        self.experiment: AbRun | None = None
        self._probing: asyncio.Task[None] | None = None

    async def take(self, client: int, intent: Any) -> None:
        """One intent of a client. Raises ValueError when it can't be."""
        if isinstance(intent, StopRun):  # `sparktui stop` is no driver, and always right
            self.stop_reason = intent.reason
            self.stopping.set()
            if self.experiment is not None:
                self.experiment.cancel()
        elif isinstance(intent, Drive):
            self.driver = Driver(client, intent.label[:40], time.time())
            self._journal.pulse.beat()
        elif type(intent) in self._answers:
            if self.driver is not None and self.driver.client != client:
                raise ValueError(f"driven from {self.driver.label}: take over first")
            await self._answers[type(intent)](intent)
        else:
            raise ValueError(f"{type(intent).__name__} is not for a run")

    def left(self, client: int) -> None:
        """A client has gone; a run without a driver takes orders from anyone."""
        if self.driver is not None and self.driver.client == client:
            self.driver = None

    async def restore_load(self) -> None:
        """The load that the user had set, on a server that has just come up."""
        await self._rig.drive(self._load)

    async def _set_load(self, intent: SetLoad) -> None:
        if self.experiment is not None or self._probing is not None:
            raise ValueError("the load is locked while something is measured")
        if not 0 <= intent.concurrency <= MAX_STREAMS:
            raise ValueError(f"load must be 0 to {MAX_STREAMS}, not {intent.concurrency}")
        self._load = intent.concurrency
        self._journal.add(
            "load", f"load set to {intent.concurrency}", data={"concurrency": intent.concurrency}
        )
        await self._rig.drive(intent.concurrency, cut=intent.cut)

    async def _set_workload(self, intent: SetWorkload) -> None:
        if self.experiment is not None or self._probing is not None:
            raise ValueError("the load is locked while something is measured")
        name = intent.workload
        if name not in WORKLOADS and name != self._plan.load.workload:
            raise ValueError(f"no workload {name}: it is one of {', '.join(WORKLOADS)}")
        own = self._plan.load
        if name != own.workload:
            own = dataclasses.replace(own, workload=name, input_tokens=None, output_tokens=None)
        await self._rig.set_workload(own)
        self._journal.add("load", f"workload {name}", data={"workload": name})
        await self.restore_load()

    async def _probe(self, intent: ProbePrefixCache) -> None:
        self._must_serve()
        if self.experiment is not None or self._probing is not None:
            raise ValueError("something else is being measured")
        self._probing = asyncio.create_task(self._probe_prefix_cache())

    async def _probe_prefix_cache(self) -> None:
        """Our own load pauses meanwhile: it would be in the counters."""
        try:
            found = await self._probed()
            level: Level = "warning" if found.call == "useless" else "info"
            self._journal.add("note", found.text, level, {"prefix_probe": to_plain(found)})
            if found.call == "useless":
                self._journal.add_finding(useless_cache(found))
        finally:
            self._probing = None
            if not self.stopping.is_set():
                await self.restore_load()

    async def _probed(self) -> PrefixProbe:
        """Whatever goes wrong is an answer, too: who asked waits for one."""
        try:
            if not await self._rig.drain():
                return judge((), "our own requests did not end")
            return await self._rig.probe_prefix_cache()
        except Exception as exc:
            return judge((), f"{exc}" or type(exc).__name__)

    async def _switch(self, intent: SwitchArm) -> None:
        self._must_be_free()
        self._must_be_arms(intent.arm)
        await self.orders.put(intent)

    async def _start(self, intent: StartExperiment) -> None:
        self._must_be_free()
        self._must_be_arms(*intent.arms)
        if len(set(intent.arms)) != 2:
            raise ValueError("an A/B compares two different arms")
        if not intent.loads or not all(1 <= load <= MAX_STREAMS for load in intent.loads):
            raise ValueError(f"loads must be 1 to {MAX_STREAMS}")
        if not 1 <= intent.rounds <= 20:
            raise ValueError("rounds must be 1 to 20")
        await self.orders.put(intent)

    async def _cancel(self, intent: CancelExperiment) -> None:
        if self.experiment is None:
            raise ValueError("nothing is being measured")
        self.experiment.cancel()

    async def _set_window(self, intent: SetWindow) -> None:
        if intent.seconds not in WINDOWS:
            raise ValueError(f"the window is one of {', '.join(map(str, WINDOWS))} s")
        self._rig.live.window_s = float(intent.seconds)

    def _must_be_free(self) -> None:
        if self.experiment is not None or not self.orders.empty():
            raise ValueError("an A/B is under way: cancel it first")
        if self._probing is not None:
            raise ValueError("the prefix cache is being probed: a moment")
        if self._rig.owner.foreign:
            raise ValueError("sparktui did not start this server and will not stop it: restart it yourself")
        self._must_serve()

    def _must_serve(self) -> None:
        if self._rig.owner.view.state != "ready":
            raise ValueError(f"the server is {self._rig.owner.view.state}")

    def _must_be_arms(self, *arms: int) -> None:
        for arm in arms:
            if not 0 <= arm < len(self._plan.arms):
                raise ValueError(f"this run has arms 0 to {len(self._plan.arms) - 1}, not {arm}")

"""The host of one run: owns the server, drives experiments, answers the socket, keeps the record."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import Coroutine
from typing import Any, BinaryIO

from sparktui.compare.report import decided
from sparktui.host import experiment as ex
from sparktui.host.ab import AbRun, left_over
from sparktui.host.desk import Desk
from sparktui.host.experiment import DIED_UNWATCHED
from sparktui.host.feed import Feed
from sparktui.host.journal import Journal
from sparktui.host.owner import BootFailed
from sparktui.host.rig import Rig
from sparktui.host.stall import StallWatch
from sparktui.host.view import Viewer
from sparktui.host.watch import GpuWatch
from sparktui.rundir import RunDir
from sparktui.schema.codec import dumps
from sparktui.schema.launch import Plan
from sparktui.schema.live import Snapshot
from sparktui.schema.messages import Finished, StartExperiment, SwitchArm
from sparktui.schema.records import Report, RunRecord, RunState, ServerRecord
from sparktui.server.process import living, reference
from sparktui.server.ready import client

_SAMPLE_S, _IDLE_SAMPLE_S = 1.0, 30.0


class Host:
    """``await Host(run).run()`` lives as long as there is something to own."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._plan: Plan = run.plan()
        self._journal = Journal(run.events)
        self._http = client()
        self._rig = Rig(run, self._plan, self._journal, self._http)
        self._desk = Desk(self._plan, self._rig, self._journal)
        self._viewer = Viewer(run.id, self._rig, self._journal, self._desk)
        self._feed = Feed(run, self._journal, self._rig.owner.ring, self._viewer.snapshot, self._desk)

    async def run(self) -> None:
        """Until the run has ended, and its end is on record."""
        record = self._run.record()
        self._run.write(dataclasses.replace(record, host=reference(os.getpid()), state="running"))
        await self._feed.open()
        sampling = asyncio.create_task(self._sample())
        try:
            state, reason, report = await self._work(record, self._left_server(record))
        except Exception as exc:  # whatever it was, the server must not be left unowned
            self._journal.add("host", f"internal error: {type(exc).__name__}: {exc}", "error")
            await self._rig.stop()
            await self._end("failed", f"internal error: {exc}", None)
            raise
        finally:
            sampling.cancel()
        await self._end(state, reason, report)

    @staticmethod
    def _left_server(record: RunRecord) -> ServerRecord | None:
        server = record.server if record.server and record.server.ended is None else None
        return server if server and living(server.process, server.tree) else None

    async def _work(
        self, record: RunRecord, left: ServerRecord | None
    ) -> tuple[RunState, str, Report | None]:
        plan = self._plan
        state = left_over(self._run)
        report: Report | None = None
        if left is None and record.server is not None and record.server.ended is None:
            if state is None:
                return "failed", DIED_UNWATCHED, None
            state = ex.failed(state, DIED_UNWATCHED)
        if state is not None:
            report = await self._experiment(state, resume=True, left=left)
        elif record.kind == "ab":
            arms = range(len(plan.arms))
            report = await self._experiment(ex.begin(arms, plan.loads, plan.rounds, plan.after))
        if report is not None and not self._rig.owner.lives:
            return _ab_state(report), report.outcome, report
        if report is None and (failure := await self._first_boot(left)):
            await self._rig.stop()
            return "failed", failure, None
        failure = await self._serve()
        await self._rig.stop()
        if failure:
            return "failed", failure, report
        return ("stopped" if report is None else _ab_state(report)), self._desk.stop_reason, report

    async def _first_boot(self, left: ServerRecord | None) -> str:
        """Why it doesn't serve; empty when it does, or when the user didn't want to wait."""
        plan = self._plan
        begin = self._rig.boot(plan.first) if left is None else self._rig.adopt(left)
        failure = await self._boot(begin)
        if not failure and not self._desk.stopping.is_set():
            await self._desk.restore_load()
        return failure

    async def _boot(self, begin: Coroutine[Any, Any, object]) -> str:
        """Wait for a boot or for the order to stop."""
        boot = asyncio.create_task(begin)
        stop = asyncio.create_task(self._desk.stopping.wait())
        await asyncio.wait({boot, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not boot.done():
            boot.cancel()
            return ""
        try:
            boot.result()
        except BootFailed as exc:
            return str(exc)
        return ""

    async def _serve(self) -> str:
        """Until told to stop (empty) or the server has died (why); experiments and switches meanwhile."""
        while not self._desk.stopping.is_set():
            order = await self._next_order()
            if order is None:
                break
            if isinstance(order, StartExperiment):
                serving = self._rig.owner.arm
                serial = 1 + sum("begun" in event.data for event in self._journal.events)
                begun = ex.begin(order.arms, order.loads, order.rounds, order.after, serving, serial)
                await self._experiment(begun)
                if not self._rig.owner.lives:
                    return "" if order.after == "stop" else self._rig.owner.view.reason or "nothing serves"
                await self._desk.restore_load()
            elif isinstance(order, SwitchArm) and (failure := await self._switch(order.arm)):
                return failure
        return self._rig.owner.view.reason if self._rig.owner.died.is_set() else ""

    async def _next_order(self) -> StartExperiment | SwitchArm | None:
        waits = [
            asyncio.create_task(self._desk.orders.get()),
            asyncio.create_task(self._desk.stopping.wait()),
            asyncio.create_task(self._rig.owner.died.wait()),
        ]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        order = waits[0].result() if waits[0].done() else None
        for wait in waits:
            wait.cancel()
        return order if isinstance(order, StartExperiment | SwitchArm) else None

    async def _switch(self, arm: int) -> str:
        self._journal.add("server", f"switching to {self._plan.arms[arm].variant}")
        await self._rig.drain()
        await self._rig.stop()
        failure = await self._boot(self._rig.boot(arm))
        if not failure:
            await self._desk.restore_load()
        return failure

    async def _experiment(
        self, state: ex.Experiment, *, resume: bool = False, left: ServerRecord | None = None
    ) -> Report:
        ab = AbRun(self._run, self._plan, self._rig, self._journal, state)
        self._desk.experiment = ab
        if self._desk.stopping.is_set():
            ab.cancel()
        try:
            return await (ab.resume(left) if resume else ab.run())
        finally:
            self._desk.experiment = None

    async def _sample(self) -> None:
        """A line a second under load, two a minute without: an idle server may stand for weeks."""
        due = 0.0
        watch = GpuWatch(self._journal.add_finding, lambda text: self._journal.add("note", text))
        stall = StallWatch(lambda text, level: self._journal.add("server", text, level))
        with self._run.samples.open("ab") as file:
            while True:
                snapshot = self._viewer.snapshot()
                figures = snapshot.figures
                watch.look(
                    snapshot.gpus, time.monotonic(), running=figures.running, tok_s=figures.output_tok_s
                )
                stall.look(snapshot.server.stalled_s, figures.running)
                if snapshot.load.in_flight or figures.running or snapshot.t >= due:
                    due = snapshot.t + _IDLE_SAMPLE_S
                    _write_sample(file, snapshot)
                await asyncio.sleep(_SAMPLE_S)

    async def _end(self, state: RunState, reason: str, report: Report | None) -> None:
        record = self._run.record()
        self._run.write(dataclasses.replace(record, state=state, reason=reason, ended=time.time(), host=None))
        await self._feed.close(Finished(state, reason, report))
        await self._rig.close()
        await self._http.aclose()
        self._journal.close()


def _write_sample(file: BinaryIO, snapshot: Snapshot) -> None:
    sample = {name: getattr(snapshot, name) for name in ("t", "load", "figures", "gpus")}
    file.write(dumps(sample) + b"\n")
    file.flush()


def _ab_state(report: Report) -> RunState:
    if report.outcome == "cancelled":
        return "cancelled"
    return "done" if decided(report) and report.outcome == "done" else "failed"

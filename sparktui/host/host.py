"""The host of one run: owns the server, drives the experiment, answers the socket, keeps the record."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from typing import Any, BinaryIO

from sparktui.compare.report import decided
from sparktui.host.ab import AbRun
from sparktui.host.feed import Feed
from sparktui.host.journal import Journal
from sparktui.host.owner import BootFailed
from sparktui.host.rig import Rig
from sparktui.host.view import Viewer
from sparktui.rundir import RunDir
from sparktui.schema.codec import dumps
from sparktui.schema.launch import Plan
from sparktui.schema.messages import CancelExperiment, Finished, SetLoad, StopRun
from sparktui.schema.records import Report, RunState, ServerRecord
from sparktui.server.process import living, reference
from sparktui.server.ready import client

MAX_STREAMS = 4096
_SAMPLE_S = 1.0


class Host:
    """``await Host(run).run()`` lives as long as there is something to own."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._plan: Plan = run.plan()
        self._journal = Journal(run.events)
        self._http = client()
        self._rig = Rig(run, self._plan, self._journal, self._http)
        self._viewer = Viewer(run.id, self._rig, self._journal)
        self._feed = Feed(run, self._journal, self._rig.owner.ring, self._viewer.snapshot, self._intent)
        self._stop = asyncio.Event()
        self._stop_reason = ""
        self._ab: AbRun | None = None

    async def run(self) -> None:
        """Until the run has ended, and its end is on record."""
        record = self._run.record()
        self._run.write(dataclasses.replace(record, host=reference(os.getpid()), state="running"))
        await self._feed.open()
        sampling = asyncio.create_task(self._sample())
        left = record.server if record.server and record.server.ended is None else None
        if left is not None and not living(left.process, left.tree):
            left = None
        try:
            state, reason, report = await self._work(record.kind, left)
        except Exception as exc:  # whatever it was, the server must not be left unowned
            self._journal.add("host", f"internal error: {type(exc).__name__}: {exc}", "error")
            await self._rig.stop()
            await self._end("failed", f"internal error: {exc}", None)
            raise
        finally:
            sampling.cancel()
        await self._end(state, reason, report)

    async def _work(self, kind: str, left: ServerRecord | None) -> tuple[RunState, str, Report | None]:
        if kind == "ab":
            self._ab = self._viewer.experiment = AbRun(self._run, self._plan, self._rig, self._journal)
            report = await self._ab.run(left)
            if self._rig.owner.lives:
                await self._serve_on(report)
            return _ab_state(report), report.outcome, report
        return (*await self._watch(left), None)

    async def _watch(self, left: ServerRecord | None) -> tuple[RunState, str]:
        """A run without an experiment: boot (or adopt), then serve until told to stop or the server dies."""
        task = asyncio.create_task(self._boot(left))
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        failure = ""
        if task.done():
            failure = task.result()
        else:
            task.cancel()
        if not failure:
            failure = await self._until_over(stop)
        stop.cancel()
        await self._rig.stop()
        return ("failed", failure) if failure else ("stopped", self._stop_reason)

    async def _boot(self, left: ServerRecord | None) -> str:
        try:
            if left is None:
                await self._rig.boot(0)
            else:
                await self._rig.adopt(left)
        except BootFailed as exc:
            return str(exc)
        for concurrency in self._plan.loads[:1]:
            await self._rig.drive(concurrency)
        return ""

    async def _until_over(self, stop: asyncio.Task[bool]) -> str:
        died = asyncio.create_task(self._rig.owner.died.wait())
        await asyncio.wait({stop, died}, return_when=asyncio.FIRST_COMPLETED)
        died.cancel()
        return self._rig.owner.view.reason if self._rig.owner.died.is_set() else ""

    async def _serve_on(self, report: Report) -> None:
        """The A/B is over and ``--after`` leaves a server up: the host stays with it."""
        await self._rig.drive(0)
        self._journal.add("experiment", report.after, data={"report": True})
        stop = asyncio.create_task(self._stop.wait())
        await self._until_over(stop)
        stop.cancel()
        await self._rig.stop()

    async def _intent(self, intent: Any) -> None:
        if isinstance(intent, StopRun):
            self._stop_reason = intent.reason
            self._stop.set()
            if self._ab is not None:
                self._ab.cancel()
        elif isinstance(intent, CancelExperiment) and self._ab is not None:
            self._ab.cancel()
        elif isinstance(intent, SetLoad):
            await self._set_load(intent.concurrency)
        else:
            raise ValueError(f"{type(intent).__name__} is not for this run")

    async def _set_load(self, concurrency: int) -> None:
        if self._ab is not None and self._ab.state.stage != "end":
            raise ValueError("the load is locked while an A/B measures")
        if not 0 <= concurrency <= MAX_STREAMS:
            raise ValueError(f"load must be 0 to {MAX_STREAMS}, not {concurrency}")
        self._journal.add("load", f"load set to {concurrency}")
        await self._rig.drive(concurrency)

    async def _sample(self) -> None:
        with self._run.samples.open("ab") as file:
            while True:
                self._write_sample(file)
                await asyncio.sleep(_SAMPLE_S)

    def _write_sample(self, file: BinaryIO) -> None:
        snapshot = self._viewer.snapshot()
        file.write(
            dumps({name: getattr(snapshot, name) for name in ("t", "load", "figures", "gpus")}) + b"\n"
        )
        file.flush()

    async def _end(self, state: RunState, reason: str, report: Report | None) -> None:
        record = self._run.record()
        self._run.write(dataclasses.replace(record, state=state, reason=reason, ended=time.time(), host=None))
        await self._feed.close(Finished(state, reason, report))
        await self._rig.close()
        await self._http.aclose()
        self._journal.close()


def _ab_state(report: Report) -> RunState:
    if report.outcome == "cancelled":
        return "cancelled"
    return "done" if decided(report) and report.outcome == "done" else "failed"

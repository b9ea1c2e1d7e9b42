"""Performing the experiment: each stage of the state machine on the rig, persisted before it begins."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Coroutine
from time import monotonic
from typing import Any

from sparktui.compare import report as reporting
from sparktui.host import cell as cells
from sparktui.host import experiment as ex
from sparktui.host.experiment import Experiment
from sparktui.host.journal import Journal
from sparktui.host.loader import LoadGone
from sparktui.host.measure import Bench, Unmeasurable, Void
from sparktui.host.owner import BootFailed
from sparktui.host.rig import Rig
from sparktui.rundir import RunDir, write_atomically
from sparktui.schema.codec import SchemaError, dumps, loads, to_plain
from sparktui.schema.launch import Plan
from sparktui.schema.live import ExperimentView
from sparktui.schema.records import ArmReport, Cell, Report, ServerRecord

_LAST_WORDS_S = 10.0  # a vLLM whose engine was killed takes 5 s until it ends itself


class AbRun:
    """One experiment of a run, new or resumed. ``cancel`` ends it with what it has."""

    def __init__(self, run: RunDir, plan: Plan, rig: Rig, journal: Journal, state: Experiment) -> None:
        self._run = run
        self._plan = plan
        self._rig = rig
        self._journal = journal
        self._cancelled = asyncio.Event()
        self._bench: Bench | None = None
        self._created = time.time()
        self.state = state

    def cancel(self) -> None:
        self._cancelled.set()

    async def resume(self, server: ServerRecord | None) -> Report:
        """Go on with what an earlier host left; ``server`` is its server, where that lives."""
        self._journal.add("host", "a new host goes on with the A/B")
        self.state = ex.resumed(self.state, server is not None)
        if server is not None:
            await self._step(self._adopt(server))
        return await self._to_the_end()

    async def run(self) -> Report:
        """From the beginning. When A serves already it is measured as it is, without another boot."""
        names = [self._plan.arms[arm].variant for arm in self.state.arms]
        loads = ", ".join(f"c={load}" for load in self.state.loads)
        self._journal.add("experiment", f"A/B: {' against '.join(names)} at {loads}", data={"begun": names})
        if self.state.stage == "boot" and self._rig.serves(self.state.arm):
            self.state = ex.booted(self.state, self._rig.boot_record(self.state.arm))
        return await self._to_the_end()

    async def _to_the_end(self) -> Report:
        stages = {
            "boot": self._boot,
            "warm-up": self._warm_up,
            "settle": self._settle,
            "window": self._window,
            "stop": self._stop,
        }
        while self.state.stage != "end":
            await self._step(stages[self.state.stage]())
        return await self._conclude()

    async def _step(self, stage: Coroutine[Any, Any, Experiment]) -> None:
        self._save()
        self.state = await self._guarded(stage)
        self._save()

    async def _guarded(self, work: Coroutine[Any, Any, Experiment]) -> Experiment:
        """The stage's result, unless the user cancels or the server dies first."""
        if self.state.stage == "stop":
            return await work
        task = asyncio.create_task(work)
        cancel = asyncio.create_task(self._cancelled.wait())
        died = asyncio.create_task(self._rig.owner.died.wait())
        watched = {task, cancel} if self.state.stage == "boot" else {task, cancel, died}
        try:
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
            if cancel.done():
                self._journal.add("experiment", "cancelled: stopping in order", "warning")
                return ex.cancelled(self.state)
            return ex.failed(self.state, self._rig.owner.view.reason)
        except (Unmeasurable, LoadGone) as exc:
            self._journal.add("experiment", str(exc), "error")
            return ex.failed(self.state, await self._death_or(str(exc)))
        except (Void, cells.Foreign) as exc:
            self._journal.add("experiment", f"window void: {exc}", "warning")
            return ex.voided(self.state, str(exc))
        finally:
            for pending in (task, cancel, died):
                pending.cancel()
            await asyncio.gather(task, cancel, died, return_exceptions=True)

    async def _death_or(self, reason: str) -> str:
        """Failing requests are often a dying server's first sign: its own last words say more."""
        try:
            await asyncio.wait_for(self._rig.owner.died.wait(), _LAST_WORDS_S)
        except TimeoutError:
            return reason
        return self._rig.owner.view.reason

    async def _boot(self) -> Experiment:
        arm = self.state.arm
        name = self._plan.arms[arm].variant
        self._say(f"boot {self.state.start + 1} of {len(self.state.order)}: {name}")
        if self._rig.owner.lives:  # a third arm served
            await self._rig.drain()
            await self._rig.stop()
        try:
            boot = await self._rig.boot(arm)
        except BootFailed as exc:
            return ex.boot_failed(self.state, self._rig.boot_record(arm, failure=str(exc)))
        return ex.booted(self.state, boot)

    async def _adopt(self, server: ServerRecord) -> Experiment:
        stage = self.state.stage
        if stage in ("stop", "end"):
            self._rig.owner.read_old_log(server.log_offset)
            self._rig.owner.adopt(self._plan.arms[server.arm], server)
            return self.state
        try:
            boot = await self._rig.adopt(server)
        except BootFailed as exc:
            return ex.boot_failed(self.state, self._rig.boot_record(server.arm, failure=str(exc)))
        return ex.booted(self.state, boot) if stage == "boot" else self.state

    async def _warm_up(self) -> Experiment:
        self._say(f"c={self.state.concurrency}: warm-up")
        bench = self._new_bench()
        e = self.state
        await bench.warm_up(e.concurrency, self._rig.load.ignore_eos, e.first_prompt)
        for note in bench.notes:
            self._journal.add("note", note, "warning")
        return ex.warmed_up(self.state)

    async def _settle(self) -> Experiment:
        self._say(f"c={self.state.concurrency}: settling")
        steady = await self._new_bench().settle()
        if not steady:
            self._say("the rate has not settled: measured anyway")
        return ex.settled(self.state, steady)

    async def _window(self) -> Experiment:
        e = self.state
        self._say(f"c={e.concurrency}: measuring")
        bench = self._new_bench()
        meter = self._rig.gpu.measure()
        try:
            measured = await bench.window(e.concurrency)
        finally:
            self._rig.gpu.release(meter)
        if measured.errors and not await self._rig.still_serves():
            raise Unmeasurable("the server's engine was lost")
        variant = self._plan.arms[e.arm].variant
        place = cells.Place(e.arm, variant, e.start, e.concurrency, e.steady, self._rig.load.workload)
        cell = cells.cell(measured, place, cells.Energy(meter.mean_w, meter.joules_over(measured.seconds)))
        self._journal.add("experiment", _told(cell), data={"cell": to_plain(cell)})
        return ex.measured(e, cell)

    async def _stop(self) -> Experiment:
        e = self._with_late_findings(self.state)
        self._bench = None
        over = bool(e.ending) or e.last_start
        if over and self._serves_after(e) == e.arm and self._rig.serves(e.arm):
            await self._rig.drain()
            return ex.kept_serving(e)
        if self._rig.owner.lives:
            self._say("drain and stop")
            if not self._rig.owner.died.is_set() and self._rig.owner.view.state == "ready":
                await self._rig.drain()
        await self._rig.stop()
        return ex.stopped(e)

    def _with_late_findings(self, e: Experiment) -> Experiment:
        """The last boot with what its log has said since it was ready."""
        if not e.boots or self._rig.owner.tail is None:
            return e
        last = e.boots[-1]
        fresh = dataclasses.replace(last, findings=self._rig.owner.tail.findings)
        return dataclasses.replace(e, boots=(*e.boots[:-1], fresh))

    async def _conclude(self) -> Report:
        report = self._report(self.state)
        arm = self._serves_after(self.state)
        if arm is not None and not self._rig.owner.lives:
            self._say(f"back to {self._plan.arms[arm].variant}")
            try:
                await self._rig.boot(arm)
            except BootFailed as exc:
                report = dataclasses.replace(
                    report, after=f"{self._plan.arms[arm].variant} would not boot: {exc}"
                )
                arm = None
        if not report.after:
            spec = None if arm is None else self._plan.arms[arm]
            serving = f"Serving: {spec.variant} at {spec.url}." if spec else "Nothing is left running."
            report = dataclasses.replace(report, after=serving)
        self._run.write_report(report)
        headline = next((v.text for v in report.verdicts if v.headline), f"No verdict: {report.outcome}.")
        self._journal.add("verdict", headline, data={"report": to_plain(report)})
        return report

    def _serves_after(self, e: Experiment) -> int | None:
        verdict = next((v for v in self._report(e).verdicts if v.headline), None)
        ratio = verdict.ratio if verdict else None
        return ex.serves_after(e, None if ratio is None else e.arms[1] if ratio > 1 else e.arms[0])

    def _report(self, e: Experiment) -> Report:
        arms = [self._arm(i, e) for i in e.arms]
        return reporting.build(
            profile=self._plan.profile,
            created=self._created,
            run_id=self._run.id,
            workload=self._rig.load.workload,
            arms=[arm for arm in arms if arm is not None],
            outcome=e.outcome,
        )

    def _arm(self, arm: int, e: Experiment) -> ArmReport | None:
        """None for an arm that never booted; boot facts are those of its first start."""
        boots = [boot for boot in e.boots if boot.arm == arm]
        if not boots:
            return None
        spec, first = self._plan.arms[arm], boots[0]
        failure = next((boot.failure for boot in boots if boot.failure), "")
        if e.ending and arm == e.arm and not failure:
            failure = e.ending
        return ArmReport(
            name=spec.variant,
            speculating=spec.speculating,
            argv=spec.argv,
            vllm_version=first.version,
            boot_s=first.seconds,
            findings=first.findings,
            facts=first.facts,
            cells=tuple(cell for cell in e.cells if cell.arm == arm),
            phases=first.phases,
            failure=failure,
        )

    def view(self) -> ExperimentView:
        """Where it stands, for the snapshot."""
        e = self.state
        ends_at = self._bench.ends_at if self._bench else None
        spec = self._plan.measure
        ends_by = "precision" if e.stage == "window" and spec.max_window_s > spec.min_window_s else "time"
        return ExperimentView(
            stage=e.stage,
            arm=self._plan.arms[e.arm].variant,
            concurrency=e.concurrency if e.stage in ("warm-up", "settle", "window") else None,
            remaining_s=None if ends_at is None else max(0.0, ends_at - monotonic()),
            ends_by="event" if ends_at is None else ends_by,  # type: ignore[arg-type]
            step=e.start * len(e.loads) + e.load + 1,
            steps=len(e.order) * len(e.loads),
        )

    def _new_bench(self) -> Bench:
        self._bench = self._rig.bench()
        return self._bench

    def _say(self, text: str) -> None:
        self._journal.add("experiment", text)

    def _save(self) -> None:
        write_atomically(self._run.experiment, dumps(self.state))


def left_over(run: RunDir) -> Experiment | None:
    """The experiment that an earlier host didn't bring to its end."""
    try:
        state = loads(Experiment, run.experiment.read_bytes())
    except (OSError, SchemaError):
        return None
    return None if state.stage == "end" else state


def _told(cell: Cell) -> str:
    parts = [f"{cell.variant} c={cell.concurrency}:"]
    if cell.decode_tok_s is not None:
        parts.append(f"{cell.decode_tok_s:.1f} tok/s per stream,")
    if cell.output_tok_s is not None:
        parts.append(f"{cell.output_tok_s:.1f} output tok/s")
    if cell.acceptance_rate is not None:
        parts.append(f"({cell.acceptance_rate:.1%} accepted)")
    if cell.flags:
        parts.append("— " + ", ".join(cell.flags))
    return " ".join(parts)

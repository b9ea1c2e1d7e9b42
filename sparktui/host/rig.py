"""A server with everything around it that watches and drives it: scraper, load process, GPU sampler."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from time import monotonic

import httpx

from sparktui.gpu.memory import host_memory
from sparktui.gpu.sampler import GpuSampler
from sparktui.gpu.standin import StandIn
from sparktui.host.asker import Asker
from sparktui.host.experiment import Boot
from sparktui.host.journal import Journal
from sparktui.host.keys import load_keys
from sparktui.host.live import Live
from sparktui.host.loader import Loader, LoadGone
from sparktui.host.measure import Bench
from sparktui.host.owner import BootFailed, Owner
from sparktui.host.probe import probe
from sparktui.host.relaunch import Relaunch
from sparktui.rundir import RunDir
from sparktui.schema.codec import dumps
from sparktui.schema.launch import LaunchSpec, LoadSpec, Plan
from sparktui.schema.messages import LoadConfig, LoadTarget, LoadTotals
from sparktui.schema.records import PrefixProbe, RequestRow, ServerRecord
from sparktui.server.ready import api_key, healthy

_DRAIN_S, _CUT_S = 10.0, 3.0
_HEALTH_S = 3.0
_MEMORY_BACK_S = 60.0
_MEMORY_SLACK_MIB = 1024.0


class Rig:
    """One at a time: boot or adopt, drive, stop. Raises owner.BootFailed."""

    def __init__(self, run: RunDir, plan: Plan, journal: Journal, http: httpx.AsyncClient) -> None:
        self._run = run
        self._plan = plan
        self._journal = journal
        self._http = http
        self._rows = run.rows.open("ab")
        self._scraper: asyncio.Task[None] | None = None
        self._memory_before: float | None = None
        self._relaunch = Relaunch()
        self.load = plan.load
        self._seen: tuple[str, ...] = ()  # empty: this server has had no request of ours
        self.live = Live(self._on_problem, plan.roof)
        self.loader = Loader(self._on_row, self._on_totals)
        self._load_note = ""
        self.owner = Owner(run, journal, http)
        self._asker = Asker()
        self.owner.helpers = lambda: tuple(pid for pid in (self.loader.pid, self._asker.pid) if pid)
        first = plan.arms[0]
        self.gpu = GpuSampler(make=lambda: StandIn(first.url)) if first.runner == "sim" else GpuSampler()
        self.gpu.start()
        self.owner.on_stats = lambda stats: self.live.log.take(stats, monotonic())
        self.owner.gpu_name = lambda: next((gpu.name for gpu in self.gpu.latest if gpu.name), "")

    @property
    def spec(self) -> LaunchSpec | None:
        return self.owner.spec

    def serves(self, arm: int) -> bool:
        """Whether this arm is up and ready."""
        return self.owner.lives and self.owner.view.state == "ready" and self.owner.arm == arm

    async def boot(self, arm: int) -> Boot:
        """Start an arm and wait until it serves. One that has failed twice in the same way is not started."""
        variant = self._plan.arms[arm].variant
        blocked = self._relaunch.blocked(variant)
        if blocked is not None:
            self._journal.add("server", f"not started: {blocked}", "error")
            raise BootFailed(blocked)
        if self._memory_before is None:
            self._memory_before = self._memory_used()
        self._seen = ()
        await self.owner.launch(self._plan.arms[arm], arm)  # a port that is taken is not the variant's fault
        try:
            boot = await self._serve(arm)
        except BootFailed as exc:
            tail = self.owner.tail
            self._relaunch.failed(variant, str(exc), tail.reader.remedy if tail else "")
            raise
        self._relaunch.ready(variant)
        return boot

    async def adopt(self, record: ServerRecord) -> Boot:
        """Take over a living server of an earlier host, booting or ready."""
        self.owner.read_old_log(record.log_offset)
        self.owner.adopt(self._plan.arms[record.arm], record)
        self._seen = (str(round(time.time())),)
        return await self._serve(record.arm)

    async def _serve(self, arm: int) -> Boot:
        answer = await self.owner.wait_ready()
        spec = self._plan.arms[arm]
        self.live.reset()
        self._scraper = asyncio.create_task(self.live.scraping(self._http, spec.url))
        await self._start_load(spec)
        return self.boot_record(arm, version=answer.version)

    async def _start_load(self, spec: LaunchSpec) -> None:
        """The same nonce in every boot, and another one for the next load process in it: a prompt seen
        before is a prefix hit."""
        load = self.load
        key, own = load_keys(spec, load.url)
        config = LoadConfig(
            url=load.url or spec.url,
            model=spec.model,
            spec=load,
            nonce=":".join((self._run.id, *self._seen)),
            stall_s=self._plan.measure.stall_s,
            tokenize_url=spec.url,
        )
        await self.loader.start(config, key, own)
        self._seen = (str(round(time.time())),)

    async def set_workload(self, load: LoadSpec) -> None:
        """Other requests from now on, the streams of before are cut; where nothing serves yet, from its first
        request on."""
        self.load = load
        self._run.write_plan(dataclasses.replace(self._run.plan(), load=load))
        if self.spec is not None and self.owner.lives and self.owner.view.state == "ready":
            await self._start_load(self.spec)
            self.live.forget_load()

    def boot_record(self, arm: int, version: str | None = None, failure: str = "") -> Boot:
        """What the log has said so far."""
        tail, view = self.owner.tail, self.owner.view
        return Boot(
            arm=arm,
            seconds=view.boot_s,
            version=version or view.version,
            findings=tail.findings if tail else (),
            facts=tail.reader.facts if tail else {},
            phases=tail.reader.phases if tail else (),
            failure=failure,
        )

    def bench(self) -> Bench:
        """For one measurement of the server that serves now."""
        spec = self.owner.spec
        return Bench(
            loader=self.loader,
            live=self.live,
            spec=self._plan.measure,
            max_num_seqs=spec.max_num_seqs if spec else None,
            jit_lines=lambda: self.owner.tail.reader.jit_lines if self.owner.tail else 0,
        )

    async def probe_prefix_cache(self) -> PrefixProbe:
        """The same request three times. Our own load must be off."""
        assert self.spec is not None
        spec = self.spec
        return await probe(self._http, spec.url, spec.model, key=api_key(spec), asker=self._asker)

    async def drive(self, concurrency: int, *, cut: bool = False) -> None:
        """So many streams from now on; fewer drain, or are cut."""
        await self.loader.aim(LoadTarget(concurrency, cut=cut))

    async def still_serves(self) -> bool:
        """Whether /health stays good for a while: it says 200 for a second after the engine's death."""
        until = monotonic() + _HEALTH_S
        while self.spec is not None and await healthy(self._http, self.spec.url):
            if monotonic() > until:
                return True
            await asyncio.sleep(0.3)
        return False

    async def drain(self) -> bool:
        """No new requests; those in flight get a while to end, then they are cut. Whether none is left."""
        await self.drive(0)
        if await self._idle_within(_DRAIN_S):
            return True
        await self.drive(0, cut=True)
        return await self._idle_within(_CUT_S)

    async def _idle_within(self, seconds: float) -> bool:
        """Whether all streams of ours end in this time; those of a load process or a server that is gone have
        ended."""
        try:
            async with asyncio.timeout(seconds):
                while self.loader.pid and not self.owner.died.is_set():
                    totals = await self.loader.next_totals()
                    if totals.asked == 0 and totals.in_flight == 0:
                        break
        except TimeoutError:
            return False
        except LoadGone:
            return self.loader.pid is None
        return True

    async def stop(self) -> None:
        """Load first, then the server, then wait for its memory."""
        if self._scraper is not None:
            self._scraper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._scraper
            self._scraper = None
        await self._asker.stop()
        await self.loader.stop()
        await self.owner.stop()
        self.live.reset()
        await self._memory_back()

    async def _memory_back(self) -> None:
        """Without a GPU there is nothing to wait for: the kernel gives host memory back at exit."""
        before = self._memory_before
        if not self.gpu.latest or before is None:
            return
        until = monotonic() + _MEMORY_BACK_S
        while (used := self._memory_used()) is not None and used > before + _MEMORY_SLACK_MIB:
            if monotonic() > until:
                self._journal.add(
                    "note", f"{used - before:,.0f} MiB did not come back after the stop", "warning"
                )
                return
            await asyncio.sleep(0.5)

    def _memory_used(self) -> float | None:
        """MiB in use on the GPUs; of the host where NVML has no memory figure (unified memory)."""
        gpus = self.gpu.latest
        if not gpus:
            return None
        used = [gpu.memory_used_mib for gpu in gpus]
        if any(value is None for value in used):
            memory = host_memory()
            return memory.total_mib - memory.available_mib
        return sum(value for value in used if value is not None)

    def _on_problem(self, problem: str) -> None:
        self._journal.add("note", problem, "warning")

    def _on_row(self, row: RequestRow) -> None:
        self.live.add_row(row)
        self._rows.write(dumps(row) + b"\n")
        self._rows.flush()

    def _on_totals(self, totals: LoadTotals) -> None:
        self.live.add_totals(totals)
        if totals.note and totals.note != self._load_note:
            self._journal.add("load", totals.note, "warning")
        self._load_note = totals.note or self._load_note

    async def close(self) -> None:
        """Let go of everything but the server."""
        await self._asker.stop()
        await self.loader.stop()
        self.gpu.stop()
        self._rows.close()

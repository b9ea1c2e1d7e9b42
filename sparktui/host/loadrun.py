"""One load on one server, without a run: ramp, steady window, bounded drain, figures."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from sparktui.compare.loadresult import Asked, Beside, load_result
from sparktui.compare.loadwindow import Window
from sparktui.gpu.sampler import GpuSampler, PowerMeter
from sparktui.host.clientfigures import ClientFigures, client_figures
from sparktui.host.loader import Loader, LoadGone
from sparktui.host.loadserver import PageWatch, sampler_beside
from sparktui.load.errors import BUSY, LONGEST_PAUSE_S
from sparktui.schema.launch import LoadSpec
from sparktui.schema.messages import TOKENIZE_KEY, LoadConfig, LoadTarget, LoadTotals
from sparktui.schema.records import LoadResult, RequestRow

DRAIN_S = 5.0  # for streams in flight to end
GIVE_UP_S = 3.0  # nothing but failures for so long: the server has gone
BUSY_GIVE_UP_S = LONGEST_PAUSE_S + GIVE_UP_S  # it may have asked for peace: each stream asks once more
_CUT_S = 2.0
_START_S, _SILENT_S = 60.0, 10.0  # of the load process: its start, and between two of its lines
_PREPARE_S = 30.0  # from its first line to its first request: prompts take 5 s at most
_RECENT = 25  # lines of totals, five seconds


@dataclass(frozen=True, slots=True)
class Job:
    """A load to run. ``metrics_url``: base URL of the vLLM behind ``url``, where it is another."""

    url: str
    model: str
    load: LoadSpec
    concurrency: int
    seconds: float
    metrics_url: str | None = None
    stall_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Where it stands; ``figures`` are of the last seconds."""

    elapsed_s: float
    totals: LoadTotals
    figures: ClientFigures
    draining: bool = False


async def run(
    job: Job,
    http: httpx.AsyncClient,
    stop: asyncio.Event,
    on_row: Callable[[RequestRow], None] = lambda _: None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> LoadResult:
    """Load for ``seconds``, or until ``stop`` is set; its result, partial where it ended early.
    ``on_progress`` is called with each line of totals, 5 a second. Raises LoadGone when the load process
    ended before it did anything."""
    work = _Run(job, http, stop, on_row, on_progress)
    try:
        return await work.result()
    finally:
        await work.close()


class _Run:
    def __init__(
        self,
        job: Job,
        http: httpx.AsyncClient,
        stop: asyncio.Event,
        on_row: Callable[[RequestRow], None],
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._job = job
        self._stop = stop
        self._on_row = on_row
        self._on_progress = on_progress
        self._window = Window(job.concurrency)
        self._recent: deque[LoadTotals] = deque(maxlen=_RECENT)
        self._beyond: list[LoadTotals] = []
        self._rows: list[RequestRow] = []
        self._pages = PageWatch(http, job.metrics_url or job.url, job.concurrency)
        self._gpu: GpuSampler | None = sampler_beside(job.metrics_url or job.url)
        self._meter: PowerMeter | None = None
        self._loader = Loader(self._take_row, self._take)
        self._aimed = False
        self._refused: int | None = None  # HTTP status of the last request that failed
        self._problem = ""

    async def result(self) -> LoadResult:
        job = self._job
        config = LoadConfig(
            job.url, job.model, job.load, secrets.token_hex(8), stall_s=job.stall_s,
            tokenize_url=job.metrics_url or job.url,
        )  # fmt: skip
        await self._loader.start(config, os.environ.get("VLLM_API_KEY"), os.environ.get(TOKENIZE_KEY))
        self._pages.start()
        if self._gpu is not None:
            self._gpu.start()
        await self._first()
        asked = Asked(job.url, job.model, job.load, job.concurrency, time.time())
        complete = await self._measure()
        self._window.closed = True
        power = self._power()
        await self._pages.last_one()
        if not self._problem:
            await self._drain(at_once=not complete)
        final = self._loader.totals
        assert final is not None, "the first line has come"
        return load_result(asked, self._window, self._rows, final, self._beside(power), complete)

    async def _measure(self) -> bool:
        """Until the time is up. False when it ended early."""
        self._aimed = True
        await self._loader.aim(LoadTarget(self._job.concurrency))
        prepared_by = time.monotonic() + _PREPARE_S
        while not self._stop.is_set():
            try:
                await self._next(_SILENT_S)
            except LoadGone as exc:
                if not self._window.series:
                    raise
                self._problem = str(exc)
                return False
            if not self._window.series and time.monotonic() > prepared_by:
                raise LoadGone(f"the load process sent no request for {_PREPARE_S:g} s")
            if self._window.lost and self._window.silent_s >= self._give_up_s():
                return False
            if self._window.seconds >= self._job.seconds:
                return not self._window.lost
        return False

    def _take(self, totals: LoadTotals) -> None:
        if not self._aimed:
            self._window.take(totals)
            return
        self._recent.append(totals)
        if self._window.closed:
            self._beyond.append(totals)
        if self._window.take(totals):
            self._pages.open(totals.t)
            self._meter = self._gpu.measure() if self._gpu is not None else None
        elapsed = min(self._window.seconds, self._job.seconds)
        figures = client_figures(list(self._recent))
        self._on_progress(Progress(elapsed, totals, figures, totals.asked == 0 and totals.done > 0))

    def _give_up_s(self) -> float:
        return BUSY_GIVE_UP_S if self._refused in BUSY else GIVE_UP_S

    def _take_row(self, row: RequestRow) -> None:
        if row.error:
            self._refused = row.status
        self._rows.append(row)
        self._on_row(row)

    def _power(self) -> tuple[float | None, float | None]:
        """Mean W and joules of the window that has just ended."""
        span, meter = self._window.span, self._meter
        if meter is None or self._gpu is None or len(span) < 2:
            return None, None
        self._gpu.release(meter)
        return meter.mean_w, meter.joules_over(span[-1].t - span[0].t)

    def _beside(self, power: tuple[float | None, float | None]) -> Beside:
        """What server and GPUs say of the window."""
        server, limited, flags = self._pages.close(self._window.span, self._beyond)
        if self._problem:
            flags += (f"the load process failed: {self._problem}",)
        return Beside(server, limited, *power, flags)

    async def _drain(self, at_once: bool) -> None:
        """No new requests; those in flight get a while to end, then they are cut and counted as cancelled."""
        try:
            if not at_once and await self._idle_within(DRAIN_S, cut=False):
                return
            await self._idle_within(_CUT_S, cut=True)
        except LoadGone as exc:
            self._problem = str(exc)

    async def _idle_within(self, seconds: float, *, cut: bool) -> bool:
        """Whether all streams end in this time; a ``stop`` ends the waiting for those that aren't cut."""
        await self._loader.aim(LoadTarget(0, cut=cut))
        until = time.monotonic() + seconds
        while time.monotonic() < until and (cut or not self._stop.is_set()):
            totals = await self._next(_SILENT_S)
            if totals.asked == 0 and totals.in_flight == 0:
                return True
        return False

    async def _first(self) -> None:
        """Wait until the load process is there. Raises LoadGone, also when ``stop`` is set before."""
        ready = asyncio.create_task(self._next(_START_S))
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({ready, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise LoadGone("it was interrupted before its first request")
            await ready
        finally:
            ready.cancel()
            stopped.cancel()

    async def _next(self, limit_s: float) -> LoadTotals:
        try:
            async with asyncio.timeout(limit_s):
                return await self._loader.next_totals()
        except TimeoutError:
            raise LoadGone(f"the load process said nothing for {limit_s:g} s") from None

    async def close(self) -> None:
        """End what was started."""
        try:
            await self._loader.stop()
        finally:
            await self._pages.stop()
            if self._gpu is not None:
                self._gpu.stop()

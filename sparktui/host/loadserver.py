"""What stands beside a load: the server's counters over its window, and the GPUs of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

import httpx
import psutil

from sparktui.compare.accounting import account, usage_over
from sparktui.compare.loadwindow import tokens_at
from sparktui.gpu.sampler import GpuSampler
from sparktui.gpu.standin import StandIn
from sparktui.host.clientfigures import limited
from sparktui.metrics.others import Others
from sparktui.metrics.page import Page
from sparktui.metrics.scrape import ScrapeError, scrape
from sparktui.metrics.window import Delta, difference, restarted
from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import ServerWindow

SCRAPE_S = 1.0
_SCRAPE_TIMEOUT_S, _LAST_S = 5.0, 1.0


class PageWatch:
    """Scrapes once a second; keeps the first and the last page of the window and what lies between."""

    def __init__(self, http: httpx.AsyncClient, base_url: str, concurrency: int) -> None:
        self._http = http
        self._base_url = base_url
        self._concurrency = concurrency
        self._task: asyncio.Task[None] | None = None
        self._now = asyncio.Event()
        self._since: float | None = None
        self._first: Page | None = None
        self._last: Page | None = None
        self._kv_max: float | None = None
        self._others = Others()
        self._foreign = ""
        self._restarted = False
        self._problem = ""

    def start(self) -> None:
        """Scrape until ``last_one`` or ``stop``."""
        self._task = asyncio.create_task(self._scrape())

    def open(self, t: float) -> None:
        """The window begins at ``t`` (CLOCK_MONOTONIC seconds): scrape at once."""
        self._since = t
        self._now.set()

    async def last_one(self) -> None:
        """The window has ended: scrape once more, for a moment at most."""
        await self.stop()
        await self._once(_LAST_S)

    async def stop(self) -> None:
        """End scraping."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def close(
        self, span: Sequence[LoadTotals], beyond: Sequence[LoadTotals] = ()
    ) -> tuple[ServerWindow | None, bool, tuple[str, ...]]:
        """The counters over the window of these lines, whether our client was the limit, what was wrong.
        ``beyond``: lines after the window, for the moment between its last line and the last scrape."""
        behind = limited(span)
        flags: tuple[str, ...] = (self._foreign,) if self._foreign else ()
        first, last = self._first, self._last
        if self._restarted:
            return None, behind, (*flags, "no server figures: its counters began anew in the window")
        if first is None or last is None or last.t <= first.t or not span:
            return None, behind, (*flags, self._problem or "no server figures: too few scrapes in the window")
        delta = difference(first, last)
        others = None
        series = [*span, *beyond]
        if delta.generated is not None and usage_over(series) == "continuous":
            ours = tokens_at(series, last.t) - tokens_at(series, first.t)
            told = account(delta.generated, ours, self._concurrency)
            others = told.others
            if told.foreign:
                flags += (f"other traffic: {others:.0f} of {delta.generated:.0f} tokens are not ours",)
            if told.elsewhere:
                flags += (
                    f"{-others:.0f} of our {ours:.0f} tokens aren't in its counters: another server's?",
                )
            behind = behind or (told.behind and not self._foreign)  # tokens of others explain it
        if delta.ttft_bound and delta.ttft_ms is not None:
            flags += (f"the server's TTFT is not known closer than: at most {delta.ttft_ms:g} ms",)
        return _window(delta, self._kv_max, others), behind, flags

    async def _scrape(self) -> None:
        while True:
            await self._once(_SCRAPE_TIMEOUT_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SCRAPE_S):
                    await self._now.wait()
            self._now.clear()

    async def _once(self, timeout_s: float) -> None:
        try:
            self._take(await scrape(self._http, self._base_url, timeout_s))
        except ScrapeError as exc:
            self._problem = f"no server figures: {exc}"

    def _take(self, page: Page) -> None:
        if self._since is None or page.t < self._since:
            return
        self._restarted |= self._last is not None and restarted(self._last, page)
        self._first, self._last = self._first or page, page
        if page.kv_usage is not None:
            self._kv_max = max(self._kv_max or 0.0, page.kv_usage)
        ours = self._concurrency
        if others := self._others.look(page, ours):
            self._foreign = f"other traffic: {ours + others} requests on the server, {ours} are ours"


def _window(delta: Delta, kv_max: float | None, others: float | None) -> ServerWindow:
    return ServerWindow(
        output_tok_s=delta.output_tok_s,
        ttft_ms=None if delta.ttft_bound else delta.ttft_ms,
        step_ms=delta.step_ms,
        tokens_per_step=delta.tokens_per_step,
        acceptance_rate=delta.acceptance_rate,
        acceptance_by_position=delta.acceptance_by_position,
        mean_acceptance_length=delta.mean_acceptance_length,
        prefix_hit_rate=delta.prefix_hit_rate,
        kv_usage_max=kv_max,
        preemptions=delta.preemptions,
        read_gb_s=delta.read_gb_s,
        others_tokens=None if others is None else max(0.0, others),
    )


def sampler_beside(url: str) -> GpuSampler | None:
    """Readings of the GPUs that serve ``url``: this machine's when the server is on it, the stand-in's own
    where it is the stand-in; None for a server elsewhere."""
    parts = urlsplit(url)
    if not _loopback(parts.hostname or ""):
        return None
    if _is_stand_in(parts.port):
        return GpuSampler(make=lambda: StandIn(url))
    return GpuSampler()


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_stand_in(port: int | None) -> bool:
    """By the command line of the process that listens, as far as this user may see it."""
    try:
        for connection in psutil.net_connections("tcp"):
            local: tuple[object, ...] = tuple(connection.laddr)
            if connection.status == psutil.CONN_LISTEN and local[1:2] == (port,) and connection.pid:
                words = psutil.Process(connection.pid).cmdline()
                return any("sparktui" in word for word in words) and "sim" in words
    except psutil.Error:
        pass
    return False

"""Live figures: /metrics at 1 Hz and the load process's totals, as differences over one window."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

import httpx

from sparktui.compare.stats import percentile
from sparktui.host.logfigures import LogFigures
from sparktui.metrics.page import Page
from sparktui.metrics.scrape import ScrapeError, scrape
from sparktui.metrics.window import Delta, Scrapes
from sparktui.schema.live import Figures, LoadView
from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import RequestRow

SCRAPE_S = 1.0
WINDOW_S = 5.0
STALE_S = 10.0  # a source silent for so long has no figure, only an age
_KEEP_TOTALS = 1200  # four minutes at five a second
_CPU_LIMIT, _LAG_LIMIT_MS = 0.8, 5.0


class Live:
    """What the two sources said lately. ``scrapes`` belong to one server life, totals to one load process."""

    def __init__(self, on_problem: Callable[[str], None]) -> None:
        self._on_problem = on_problem
        self._problem = ""
        self.scrapes = Scrapes(keep_s=300.0)
        self.totals: deque[LoadTotals] = deque(maxlen=_KEEP_TOTALS)
        self.rows: deque[tuple[float, RequestRow]] = deque(maxlen=20_000)
        self.window_s = WINDOW_S
        self.page_count = 0
        self.row_count = 0
        self.changed = 0.0  # CLOCK_MONOTONIC of the last load change: a window doesn't reach before it
        self.kv_max: float | None = None
        self.log = LogFigures()

    def reset(self) -> None:
        """Another server, another load process."""
        self.scrapes.clear()
        self.totals.clear()
        self.rows.clear()
        self.log = LogFigures()

    async def scraping(self, http: httpx.AsyncClient, url: str) -> None:
        """Scrape for ever. A failure is told once, until it changes."""
        while True:
            begun = monotonic()
            try:
                self._take(await scrape(http, url))
                self._problem = ""
            except ScrapeError as exc:
                if str(exc) != self._problem:
                    self._problem = str(exc)
                    self._on_problem(self._problem)
            await asyncio.sleep(max(0.05, SCRAPE_S - (monotonic() - begun)))

    def _take(self, page: Page) -> None:
        self.scrapes.add(page)
        self.page_count += 1
        if page.kv_usage is not None:
            self.kv_max = max(self.kv_max or 0.0, page.kv_usage)

    def add_row(self, row: RequestRow) -> None:
        self.rows.append((monotonic(), row))
        self.row_count += 1

    def rows_after(self, count: int) -> list[RequestRow]:
        """Rows that came after the first ``count``, as far as kept."""
        new = min(self.row_count - count, len(self.rows))
        return [row for _, row in list(self.rows)[len(self.rows) - new :]]

    def add_totals(self, totals: LoadTotals) -> None:
        if self.totals and self.totals[-1].asked != totals.asked:
            self.changed = totals.t
        self.totals.append(totals)

    def figures(self) -> Figures:
        """The window of the last seconds, shorter after a load change."""
        now = monotonic()
        page = self.scrapes.last
        age = None if page is None else now - page.t
        delta = (
            self.scrapes.window(self.window_s, self.changed) if age is not None and age < STALE_S else None
        )
        fresh = page if age is not None and age < STALE_S else None
        output, decode = self._client_rates(now)
        return Figures(
            window_s=min(self.window_s, now - self.changed),
            client_output_tok_s=output,
            decode_tok_s=decode,
            ttft_ms=self._ttft(now),
            scrape_age_s=age,
            **(self.log.figures(now) if fresh is None else _gauges(fresh) | _server_figures(delta)),
        )

    def _client_rates(self, now: float) -> tuple[float | None, float | None]:
        since = max(now - self.window_s, self.changed)
        span = [totals for totals in self.totals if totals.t >= since]
        if len(span) < 2 or now - span[-1].t > STALE_S:
            return None, None
        a, b = span[0], span[-1]
        seconds = b.stream_seconds - a.stream_seconds
        output = (b.output_tokens - a.output_tokens) / (b.t - a.t)
        decode = (b.decode_tokens - a.decode_tokens) / seconds if seconds > 0 else None
        return (output if b.asked or b.in_flight else None), decode

    def _ttft(self, now: float) -> float | None:
        recent = [row.ttft_ms for t, row in self.rows if t >= now - self.window_s and row.ttft_ms is not None]
        return percentile(recent, 0.5)

    def load_view(self) -> LoadView:
        """The newest totals."""
        if not self.totals:
            return LoadView()
        last = self.totals[-1]
        recent = [t for t in self.totals if t.t >= last.t - WINDOW_S]
        return LoadView(last.asked, last.in_flight, last.done, last.errors, last.last_error, limited(recent))


def limited(totals: list[LoadTotals]) -> bool:
    """Whether the load process itself was the limit: CPU over 80 % of a core, or p99 loop lag over 5 ms.

    A line of totals holds about ten lag samples, so its maximum is exceeded by a tenth of the lines where
    the p99 of single samples lies.
    """
    if not totals:
        return False
    lag = percentile([t.lag_ms_p99 for t in totals], 0.9) or 0.0
    cpu = percentile([t.cpu for t in totals], 0.5) or 0.0
    return cpu > _CPU_LIMIT or lag > _LAG_LIMIT_MS


def _gauges(page: Page) -> dict[str, Any]:
    return {
        "kv_usage": page.kv_usage,
        "running": None if page.running is None else int(page.running),
        "waiting": None if page.waiting is None else int(page.waiting),
    }


def _server_figures(delta: Delta | None) -> dict[str, Any]:
    if delta is None:
        return {}
    return {
        "output_tok_s": delta.output_tok_s,
        "server_ttft_ms": delta.ttft_ms,
        "step_ms": delta.step_ms,
        "tokens_per_step": delta.tokens_per_step,
        "acceptance_rate": delta.acceptance_rate,
        "acceptance_by_position": delta.acceptance_by_position,
        "mean_acceptance_length": delta.mean_acceptance_length,
        "drafted": delta.drafted,
    }

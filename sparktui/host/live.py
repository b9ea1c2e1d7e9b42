"""Live figures: /metrics at 1 Hz and the load process's totals, as differences over one window."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

import httpx

from sparktui.host.clientfigures import ClientFigures, client_figures, limited
from sparktui.host.logfigures import LogFigures
from sparktui.host.serverfigures import (
    gauges,
    in_flight_around,
    others_tok_s,
    roof_share,
    server_decode,
    server_figures,
    told_by_answers,
)
from sparktui.metrics.liveness import Liveness
from sparktui.metrics.others import Others
from sparktui.metrics.page import Page
from sparktui.metrics.scrape import ScrapeError, scrape
from sparktui.metrics.window import Scrapes
from sparktui.schema.launch import Roof
from sparktui.schema.live import Figures, LoadView
from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import RequestRow

SCRAPE_S = 1.0
WINDOW_S = 5.0
STALE_S = 10.0  # a source silent for so long has no figure, only an age
_KEEP_TOTALS = 1200  # four minutes at five a second


class Live:
    """What the two sources said lately. ``scrapes`` belong to one server life, totals to one load process."""

    def __init__(self, on_problem: Callable[[str], None], roof: Roof | None = None) -> None:
        self._on_problem = on_problem
        self._roof = roof
        self._problem = ""
        self.scrapes = Scrapes(keep_s=300.0)
        self.totals: deque[LoadTotals] = deque(maxlen=_KEEP_TOTALS)
        self.rows: deque[RequestRow] = deque(maxlen=20_000)
        self.window_s = WINDOW_S
        self.page_count = 0
        self.row_count = 0
        self.changed = 0.0  # CLOCK_MONOTONIC of the last load change: a window doesn't reach before it
        self.kv_max: float | None = None
        self._begin_life()
        self.log = LogFigures()

    def _begin_life(self) -> None:
        self.stalled_s: float | None = None  # requests run and nothing has moved for so long
        self.others_running: int | None = None
        self._liveness = Liveness()
        self._others = Others()

    def reset(self) -> None:
        """Another server, another load process."""
        self.scrapes.clear()
        self._begin_life()
        self.log = LogFigures()
        self.forget_load()

    def forget_load(self) -> None:
        """Another load process: its counts begin anew."""
        self.totals.clear()
        self.rows.clear()
        self.changed = monotonic()

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
        if self.scrapes.add(page):
            self._begin_life()
        self.page_count += 1
        self.stalled_s = self._liveness.read(page) or None  # 0.0: it moves
        self.others_running = self._others.look(page, in_flight_around(self.totals, page.t))
        if page.kv_usage is not None:
            self.kv_max = max(self.kv_max or 0.0, page.kv_usage)

    def add_row(self, row: RequestRow) -> None:
        self.rows.append(row)
        self.row_count += 1

    def rows_after(self, count: int) -> list[RequestRow]:
        """Rows that came after the first ``count``, as far as kept."""
        new = min(self.row_count - count, len(self.rows))
        return list(self.rows)[len(self.rows) - new :]

    def add_totals(self, totals: LoadTotals) -> None:
        if self.totals and self.totals[-1].asked != totals.asked:
            self.changed = totals.t
        self.totals.append(totals)

    def figures(self) -> Figures:
        """The window of the last seconds, shorter after a load change."""
        now = monotonic()
        page = self.scrapes.last
        age = None if page is None else now - page.t
        fresh = page if age is not None and age < STALE_S else None
        told = self.log.figures(now) if fresh is None else self._server(fresh)
        client = self._client(now)
        return Figures(
            window_s=min(self.window_s, now - self.changed),
            client_output_tok_s=client.output_tok_s,
            client_chunks_s=client.chunks_s,
            ttft_ms=client.ttft_ms,
            chunk_gap_ms=client.gap_ms,
            chunk_gap_p99_ms=client.gap_p99_ms,
            scrape_age_s=age,
            roof_share=roof_share(self._roof, told, told.get("running") or 0),
            **self._decode(client),
            **told,
        )

    def _server(self, page: Page) -> dict[str, Any]:
        delta = self.scrapes.window(self.window_s, self.changed)
        since = max(page.t - self.window_s, self.changed)
        told = told_by_answers(reversed(self.rows), since)
        return gauges(page) | server_figures(delta) | told | self._of_others(page)

    def _of_others(self, page: Page) -> dict[str, Any]:
        """Their tokens only while three scrapes in a row have shown requests of theirs."""
        rate = others_tok_s(self._window_pages(page), self.totals) if self.others_running else None
        return {"others_running": self.others_running, "others_tok_s": rate}

    def _window_pages(self, last: Page) -> list[Page]:
        since = max(last.t - self.window_s - 0.5, self.changed)
        return [page for page in self.scrapes.pages if page.t >= since]

    def _decode(self, client: ClientFigures) -> dict[str, Any]:
        """Ours; without a load of ours, or where the tokens of an answer are known at its end only, the
        server's."""
        if client.decode_tok_s is not None and self.totals[-1].usage != "final":
            return {"decode_tok_s": client.decode_tok_s}
        last = self.scrapes.last
        value = server_decode(self._window_pages(last)) if last else None
        return {"decode_tok_s": value, "decode_source": "server"} if value is not None else {}

    def _client(self, now: float) -> ClientFigures:
        since = max(now - self.window_s, self.changed)
        if not self.totals or now - self.totals[-1].t > STALE_S:
            return ClientFigures()
        return client_figures([totals for totals in self.totals if totals.t >= since])

    def load_view(self) -> LoadView:
        """The newest totals."""
        if not self.totals:
            return LoadView()
        last = self.totals[-1]
        recent = [t for t in self.totals if t.t >= last.t - WINDOW_S]
        return LoadView(
            asked=last.asked,
            in_flight=last.in_flight,
            done=last.done,
            errors=last.errors,
            last_error=last.last_error,
            client_limited=limited(recent),
            waiting=last.waiting,
            longest_wait_s=last.longest_wait_s,
            no_usage=last.usage == "none",
            failed_lately=last.errors - recent[0].errors,
        )

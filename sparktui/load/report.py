"""What the load process tells its host: finished requests and totals, once an interval; nothing per token."""

from __future__ import annotations

import asyncio
import gc
from time import monotonic, process_time
from typing import BinaryIO

from sparktui.load.streams import ClosedLoop
from sparktui.schema.messages import LoadRow, LoadTotals, to_line
from sparktui.schema.records import RequestRow

_LAG_TICK_S = 0.02


class Reporter:
    """Collects rows and its own loop's lag, writes both with the totals."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._rows: list[bytes] = []
        self._lags: list[float] = []
        self._cpu = process_time()
        self._wall = monotonic()

    def row(self, row: RequestRow) -> None:
        """Keep a finished request for the next line."""
        self._rows.append(to_line(LoadRow(row)))

    async def watch_lag(self) -> None:
        """Sleep and see how late it was: what a chunk waits for its turn."""
        while True:
            due = monotonic() + _LAG_TICK_S
            await asyncio.sleep(_LAG_TICK_S)
            self._lags.append(max(0.0, monotonic() - due))

    async def run(self, loop: ClosedLoop, interval_s: float) -> None:
        """Write for ever."""
        gc.freeze()
        while True:
            await asyncio.sleep(interval_s)
            self.write(loop)

    def write(self, loop: ClosedLoop) -> None:
        """One batch: the rows first, so that the totals never count a request that was not told."""
        rows, self._rows = self._rows, []
        self._out.write(b"".join(rows) + to_line(self.totals(loop)))
        self._out.flush()

    def totals(self, loop: ClosedLoop) -> LoadTotals:
        """The line of now; it takes what was collected since the one before."""
        now, cpu = monotonic(), process_time()
        lags, self._lags = sorted(self._lags) or [0.0], []
        counts, standing = loop.counts, loop.standing(now)
        ttft_ms, gaps = counts.take()
        share = (cpu - self._cpu) / max(now - self._wall, 1e-9)
        self._cpu, self._wall = cpu, now
        return LoadTotals(
            t=now,
            asked=loop.target,
            in_flight=loop.in_flight,
            done=counts.done,
            ok=counts.ok,
            errors=counts.errors,
            cancelled=counts.cancelled,
            output_tokens=counts.output_tokens,
            decode_tokens=counts.decode_tokens,
            stream_seconds=counts.stream_seconds + standing.open_gaps_s,
            lag_ms_p99=lags[min(len(lags) - 1, int(len(lags) * 0.99))] * 1000,
            cpu=share,
            last_error=counts.last_error,
            chunks=counts.chunks,
            usage=counts.usage(now),
            waiting=standing.waiting,
            longest_wait_s=standing.longest_wait_s,
            ttft_ms=ttft_ms,
            gaps=gaps,
            note=loop.note,
        )

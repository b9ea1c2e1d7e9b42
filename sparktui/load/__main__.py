"""``python -m sparktui.load``: a LoadConfig line on stdin, then LoadTarget lines; totals and rows on stdout.

Its own process, because a stream sharing the app's event loop measures the app (facts: tens of ms).
Ends when stdin ends, so it never outlives its host.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
from time import monotonic, process_time

from sparktui.load.streams import ClosedLoop
from sparktui.schema.codec import SchemaError
from sparktui.schema.messages import (
    LoadConfig,
    LoadFailed,
    LoadRow,
    LoadTarget,
    LoadTotals,
    from_line,
    to_line,
)
from sparktui.schema.records import RequestRow

_LAG_TICK_S = 0.02


class _Reporter:
    """Collects rows and lag, writes both with the totals once an interval: no write per token."""

    def __init__(self) -> None:
        self._rows: list[bytes] = []
        self._lags: list[float] = []
        self._cpu = process_time()
        self._wall = monotonic()

    def row(self, row: RequestRow) -> None:
        self._rows.append(to_line(LoadRow(row)))

    async def watch_lag(self) -> None:
        while True:
            due = monotonic() + _LAG_TICK_S
            await asyncio.sleep(_LAG_TICK_S)
            self._lags.append(max(0.0, monotonic() - due))

    def write(self, loop: ClosedLoop) -> None:
        now, cpu = monotonic(), process_time()
        lags = sorted(self._lags) or [0.0]
        counts = loop.counts
        totals = LoadTotals(
            t=now,
            asked=loop.target,
            in_flight=loop.in_flight,
            done=counts.done,
            ok=counts.ok,
            errors=counts.errors,
            cancelled=counts.cancelled,
            output_tokens=counts.output_tokens,
            decode_tokens=counts.decode_tokens,
            stream_seconds=counts.stream_seconds,
            lag_ms_p99=lags[min(len(lags) - 1, int(len(lags) * 0.99))] * 1000,
            cpu=(cpu - self._cpu) / max(now - self._wall, 1e-9),
            last_error=counts.last_error,
        )
        rows, self._rows, self._lags = self._rows, [], []
        self._cpu, self._wall = cpu, now
        sys.stdout.buffer.write(b"".join(rows) + to_line(totals))
        sys.stdout.buffer.flush()


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    return reader


async def _report(reporter: _Reporter, loop: ClosedLoop, interval_s: float) -> None:
    while True:
        await asyncio.sleep(interval_s)
        reporter.write(loop)


async def _serve() -> int:
    stdin = await _stdin()
    config = from_line(await stdin.readline())
    if not isinstance(config, LoadConfig):
        raise SchemaError("the first line must be a LoadConfig")
    reporter = _Reporter()
    async with ClosedLoop(config, reporter.row) as loop:
        tasks = [
            asyncio.create_task(reporter.watch_lag()),
            asyncio.create_task(_report(reporter, loop, config.interval_s)),
        ]
        gc.freeze()
        while line := await stdin.readline():
            target = from_line(line)
            if not isinstance(target, LoadTarget):
                raise SchemaError("expected a LoadTarget")
            await loop.aim(target)
        for task in tasks:
            task.cancel()
    return 0


def main() -> int:
    """Exit code 0 when stdin ended, 2 when what came on it was wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the host's business
    try:
        with contextlib.suppress(BrokenPipeError):
            return asyncio.run(_serve())
    except SchemaError as exc:
        sys.stdout.buffer.write(to_line(LoadFailed(str(exc))))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m sparktui.load``: a LoadConfig line on stdin, then LoadTarget lines; totals and rows on stdout.

Its own process, because a stream sharing the app's event loop measures the app (facts: tens of ms).
Ends when stdin ends, so it never outlives its host.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys

from sparktui.load.report import Reporter
from sparktui.load.streams import ClosedLoop
from sparktui.schema.codec import SchemaError
from sparktui.schema.messages import LoadConfig, LoadFailed, LoadTarget, from_line, to_line


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    return reader


async def _serve() -> int:
    stdin = await _stdin()
    config = from_line(await stdin.readline())
    if not isinstance(config, LoadConfig):
        raise SchemaError("the first line must be a LoadConfig")
    reporter = Reporter(sys.stdout.buffer)
    async with ClosedLoop(config, reporter.row) as loop:
        tasks = [
            asyncio.create_task(reporter.watch_lag()),
            asyncio.create_task(reporter.run(loop, config.interval_s)),
        ]
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

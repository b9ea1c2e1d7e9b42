"""``python -m sparktui.load``: a LoadConfig line on stdin, then LoadTarget lines; totals and rows on stdout.

Its own process, because a stream sharing the app's event loop measures the app (facts: tens of ms).
Ends when stdin ends, so it never outlives its host.
"""

from __future__ import annotations

import asyncio
import os
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
            asyncio.create_task(_orders(stdin, loop)),
            asyncio.create_task(reporter.watch_lag()),
            asyncio.create_task(reporter.run(loop, config.interval_s)),
        ]
        done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for task in done:
            task.result()  # a load that nobody hears of must not go on
    return 0


async def _orders(stdin: asyncio.StreamReader, loop: ClosedLoop) -> None:
    """Until stdin ends."""
    while line := await stdin.readline():
        target = from_line(line)
        if not isinstance(target, LoadTarget):
            raise SchemaError("expected a LoadTarget")
        await loop.aim(target)


def main() -> int:
    """Exit code 0 when stdin ended, 2 when what came on it was wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the host's business
    try:
        return _told()
    except BrokenPipeError:  # the host has died
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the flush at exit complains
        return 0


def _told() -> int:
    try:
        return asyncio.run(_serve())
    except SchemaError as exc:
        sys.stdout.buffer.write(to_line(LoadFailed(str(exc))))
        sys.stdout.buffer.flush()
        return 2


if __name__ == "__main__":
    sys.exit(main())

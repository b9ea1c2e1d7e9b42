"""A watchdog for streams: silent for too long is failed."""

from __future__ import annotations

import asyncio
from types import TracebackType

from sparktui.load.errors import StreamError


class Silence:
    """``async with Silence(120) as silence``: StreamError when ``heard`` gets older than 120 s.

    aiohttp's own ``sock_read`` sets a timer at each read; this one looks once in ``limit_s`` and comes back
    when the rest is over. ``heard``: loop time (CLOCK_MONOTONIC seconds), set by whoever reads.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self.heard = 0.0

    async def __aenter__(self) -> Silence:
        await self._timeout.__aenter__()
        self.heard = asyncio.get_running_loop().time()
        self._look()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self._timeout.__aexit__(kind, exc, trace)
        except TimeoutError:
            raise StreamError(f"no data for {self._limit_s:g} s") from None

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        due = self.heard + self._limit_s
        if loop.time() >= due:
            self._timeout.reschedule(due)
        else:
            self._timer = loop.call_at(due, self._look)

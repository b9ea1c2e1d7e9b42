"""The load process seen from the host: start it, aim it, read its totals and rows."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable

from sparktui.schema.codec import SchemaError
from sparktui.schema.messages import (
    TOKENIZE_KEY,
    LoadConfig,
    LoadFailed,
    LoadRow,
    LoadTarget,
    LoadTotals,
    from_line,
    to_line,
)
from sparktui.schema.records import RequestRow

_LINE_LIMIT = 1 << 20
_END_S = 5.0  # for it to close its streams


class LoadGone(Exception):
    """The load process ended when it should not have."""


class Loader:
    """One load process against one server. The callbacks get each finished request and each totals line."""

    def __init__(self, on_row: Callable[[RequestRow], None], on_totals: Callable[[LoadTotals], None]) -> None:
        self._on_row = on_row
        self._on_totals = on_totals
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()
        self._changing = asyncio.Lock()  # two starts at once would leave a process behind
        self._failure = ""
        self.totals: LoadTotals | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(
        self, config: LoadConfig, key: str | None = None, tokenize_key: str | None = None
    ) -> None:
        """Spawn it, idle; one that runs is stopped. API keys go by the environment, and no others of
        these names do: ``key`` is that of ``url``, ``tokenize_key`` that of ``tokenize_url``."""
        async with self._changing:
            await self._end()
            self.totals, self._failure = None, ""
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "sparktui.load",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_LINE_LIMIT,
                env=_environment({"VLLM_API_KEY": key, TOKENIZE_KEY: tokenize_key}),
                process_group=0,  # a terminal's Ctrl-C is for us: it ends with its stdin
            )  # fmt: skip
            self._reader = asyncio.create_task(self._read(self._process))
            await self._send(config)

    async def aim(self, target: LoadTarget) -> None:
        """Ask for another number of streams; a process that is gone takes no orders."""
        if self.pid is not None:
            await self._send(target)

    async def stop(self) -> None:
        """Close our own streams first: a server with one open waits for it."""
        async with self._changing:
            await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _END_S)
        except TimeoutError:
            _kill(process)
            await process.wait()
        except asyncio.CancelledError:
            _kill(process)
            raise
        if self._reader is not None:
            await self._reader

    async def next_totals(self) -> LoadTotals:
        """The next line of totals (5 a second). Raises LoadGone when there will be none."""
        async with self._news:
            before = self.totals
            await self._news.wait_for(lambda: self.totals is not before or bool(self._failure))
        if self._failure or self.totals is None:
            raise LoadGone(self._failure or "the load process was started anew")
        return self.totals

    async def _send(self, message: LoadConfig | LoadTarget) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(to_line(message))
            await self._process.stdin.drain()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                await self._take(from_line(line))
        except (SchemaError, ValueError) as exc:
            self._failure = f"the load process wrote nonsense: {exc}"
        except Exception as exc:  # of a callback, as of a full disk: whoever waits for totals must hear of it
            self._failure = f"its figures could not be taken: {exc}"
        async with self._news:
            self._failure = self._failure or "the load process ended"
            self._news.notify_all()

    async def _take(self, message: object) -> None:
        if isinstance(message, LoadRow):
            self._on_row(message.row)
            return
        async with self._news:
            if isinstance(message, LoadTotals):
                self.totals = message
                self._on_totals(message)
            elif isinstance(message, LoadFailed):
                self._failure = message.error
            self._news.notify_all()


def _environment(keys: dict[str, str | None]) -> dict[str, str]:
    """Ours, with exactly these keys: one of our environment is not for every server."""
    kept = {name: value for name, value in os.environ.items() if name not in keys}
    return kept | {name: value for name, value in keys.items() if value}


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()

"""The run's socket: any number of clients, each told what it has not seen; intents come back as lines."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from sparktui.host.journal import Journal
from sparktui.host.tail import LogRing
from sparktui.rundir import RunDir
from sparktui.schema.codec import SchemaError
from sparktui.schema.live import Snapshot
from sparktui.schema.messages import (
    EventMessage,
    Finished,
    Hello,
    LogLines,
    Problem,
    SnapshotMessage,
    Subscribe,
    from_line,
    to_line,
)

SNAPSHOT_S = 0.5
_LINE_LIMIT = 1 << 20


class Orders(Protocol):
    """Who answers intents."""

    async def take(self, client: int, intent: Any) -> None:
        """Carry it out, or raise ValueError with the reason."""

    def left(self, client: int) -> None:
        """A client has gone."""


class Feed:
    """Serves one run. ``orders`` gets every message that is no Subscribe; what it raises as ValueError goes
    back to its sender as a Problem."""

    def __init__(
        self,
        run: RunDir,
        journal: Journal,
        ring: LogRing,
        latest: Callable[[], Snapshot],
        orders: Orders,
    ) -> None:
        self._run = run
        self._journal = journal
        self._ring = ring
        self._latest = latest
        self._orders = orders
        self._numbers = itertools.count(1)
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._finished: Finished | None = None

    async def open(self) -> None:
        """Bind the socket, for this user only."""
        with self._run.socket_address() as address:
            before = os.umask(0o177)
            try:
                self._server = await asyncio.start_unix_server(self._client, address, limit=_LINE_LIMIT)
            finally:
                os.umask(before)

    async def close(self, finished: Finished) -> None:
        """Tell everyone how it ended, then shut the socket."""
        self._finished = finished
        self._journal.pulse.beat()
        if self._clients:
            await asyncio.wait(self._clients, timeout=5)
        if self._server is not None:
            self._server.close()
        self._run.remove_socket()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        number = next(self._numbers)
        intents: asyncio.Task[None] | None = None
        try:
            writer.write(to_line(Hello(self._run.id, os.getpid(), number)))
            wanted = from_line(await reader.readline())
            if not isinstance(wanted, Subscribe):
                raise SchemaError("the first line must be a Subscribe")
            intents = asyncio.create_task(self._listen(number, reader, writer))
            await self._follow(wanted, writer, intents)
        except (SchemaError, ValueError) as exc:
            writer.write(to_line(Problem(str(exc))))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._clients.discard(task)
            self._orders.left(number)
            if intents is not None:
                intents.cancel()
            writer.close()

    async def _follow(
        self, wanted: Subscribe, writer: asyncio.StreamWriter, intents: asyncio.Task[None]
    ) -> None:
        cursor = _Cursor(wanted)
        while not intents.done():
            finished = self._finished
            for line in cursor.news(self._journal, self._ring, self._latest):
                writer.write(line)
            if finished is not None:
                writer.write(to_line(finished))
            await writer.drain()
            if finished is not None:
                return
            await self._journal.pulse.wait(cursor.idle_s())

    async def _listen(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                try:
                    await self._orders.take(number, from_line(line))
                except (SchemaError, ValueError) as exc:
                    writer.write(to_line(Problem(str(exc))))


class _Cursor:
    """What one client has seen."""

    def __init__(self, wanted: Subscribe) -> None:
        self._events = wanted.events_from
        self._log = wanted.log_from
        self._snapshots = wanted.snapshots
        self._next_snapshot = monotonic()

    def news(self, journal: Journal, ring: LogRing, latest: Callable[[], Snapshot]) -> list[bytes]:
        lines = [to_line(EventMessage(event)) for event in journal.events[self._events :]]
        self._events = max(self._events, len(journal.events))
        while self._log is not None and self._log < ring.count:
            first, texts = ring.after(self._log)
            lines.append(to_line(LogLines(first, texts)))
            self._log = first - 1 + len(texts)
        if self._snapshots and monotonic() >= self._next_snapshot:
            self._next_snapshot = monotonic() + SNAPSHOT_S
            lines.append(to_line(SnapshotMessage(latest())))
        return lines

    def idle_s(self) -> float:
        until_snapshot = self._next_snapshot - monotonic() if self._snapshots else SNAPSHOT_S
        return max(0.01, min(until_snapshot, SNAPSHOT_S))

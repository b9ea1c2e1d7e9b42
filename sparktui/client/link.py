"""One connection to a run's host, and following a run across hosts."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from time import monotonic
from typing import Any

from sparktui.rundir import RunDir, read_events
from sparktui.schema.codec import SCHEMA_VERSION, SchemaError
from sparktui.schema.messages import (
    EventMessage,
    Finished,
    Hello,
    LogLines,
    Subscribe,
    from_line,
    to_line,
)

ENDED = ("done", "failed", "cancelled", "stopped")
_LINE_LIMIT = 64 << 20  # a report with every batch of a long sweep is one line
_START_S = 20.0
_MOST_HOSTS = 3


class HostGone(Exception):
    """The host ended without saying how the run ended."""


class Link:
    """Messages from a host, intents to it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.number = 0  # by which the host knows this connection

    @classmethod
    async def open(cls, run: RunDir, wanted: Subscribe) -> Link:
        """Connect to a living host. Raises HostGone, or SchemaError when it speaks another version."""
        try:
            with run.socket_address() as address:
                reader, writer = await asyncio.open_unix_connection(address, limit=_LINE_LIMIT)
        except OSError as exc:
            raise HostGone(f"no host answers for {run.id}: {exc.strerror or exc}") from None
        link = cls(reader, writer)
        hello = await link.receive()
        if not isinstance(hello, Hello) or hello.schema != SCHEMA_VERSION:
            await link.close()
            raise SchemaError(f"the host of {run.id} is of another version of sparktui")
        link.number = hello.client
        await link.send(wanted)
        return link

    async def receive(self) -> Any:
        """The next message. Raises HostGone at the end."""
        try:
            line = await self._reader.readline()
        except (ConnectionError, ValueError) as exc:
            raise HostGone(str(exc)) from None
        if not line.endswith(b"\n"):
            raise HostGone("the host has gone")
        return from_line(line)

    async def send(self, message: Any) -> None:
        """An intent. Raises HostGone."""
        try:
            self._writer.write(to_line(message))
            await self._writer.drain()
        except ConnectionError as exc:
            raise HostGone(str(exc)) from None

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


def start_host(run: RunDir) -> None:
    """A host in a session of its own; it outlives this process. Another one living makes it end at once."""
    with run.host_log.open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-P", "-m", "sparktui.host", str(run.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


async def attach(run: RunDir, wanted: Subscribe, *, start: bool = True) -> Link:
    """Connect, starting a host when the run has none (it adopts what an earlier one left).
    Raises HostGone with the end of its log when none comes up."""
    with contextlib.suppress(HostGone):
        return await Link.open(run, wanted)
    if start:
        start_host(run)
    until = monotonic() + _START_S
    while True:
        try:
            return await Link.open(run, wanted)
        except HostGone as exc:
            if monotonic() > until or run.record().state in ENDED:
                raise HostGone(f"{exc}{_last_words(run)}") from None
        await asyncio.sleep(0.05)


async def follow(run: RunDir, wanted: Subscribe) -> AsyncIterator[tuple[Link | None, Any]]:
    """Messages of a run until it has Finished, also when its host is killed: a new one is started and
    nothing is told twice. What a host that ended did not get to say comes from its files, without a link.
    Raises HostGone when hosts keep dying."""
    cursor = wanted
    for _ in range(_MOST_HOSTS):
        with contextlib.suppress(HostGone):
            link = await attach(run, cursor)
            async with contextlib.aclosing(_messages(link)) as messages:
                async for message in messages:
                    cursor = _advanced(cursor, message)
                    if not isinstance(message, Finished):
                        yield link, message
        record = run.record()
        if record.state in ENDED:
            await host_ended(run)  # "nothing left" includes it
            for event in read_events(run.events)[cursor.events_from :]:
                yield None, EventMessage(event)
            yield None, Finished(record.state, record.reason, run.report())
            return
    raise HostGone(f"the host of {run.id} keeps dying{_last_words(run)}")


async def _messages(link: Link) -> AsyncGenerator[Any, None]:
    """Until Finished, that one included. Raises HostGone."""
    try:
        while True:
            message = await link.receive()
            yield message
            if isinstance(message, Finished):
                return
    finally:
        await link.close()


async def host_ended(run: RunDir, seconds: float = 10.0) -> None:
    """Wait for the host of a finished run to be gone, so long at most."""
    until = monotonic() + seconds
    while run.has_host() and monotonic() < until:
        await asyncio.sleep(0.02)


def _advanced(cursor: Subscribe, message: Any) -> Subscribe:
    if isinstance(message, EventMessage):
        return Subscribe(message.event.seq, cursor.log_from, cursor.snapshots)
    if isinstance(message, LogLines):
        return Subscribe(cursor.events_from, message.first - 1 + len(message.lines), cursor.snapshots)
    return cursor


def _last_words(run: RunDir) -> str:
    try:
        text = run.host_log.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
    return f"; {run.host_log} ends: {text.splitlines()[-1]}" if text else ""

"""The stand-in's own clock, for whoever checks a client against it: ``--sim-clock FILE``.

One JSON object a line and answer, appended when a streamed answer has ended: ``id`` (the answer's),
``arrival`` (the last bytes of the request were read from its connection), and for each event with a choice
``t`` (just before it was handed to the connection) and ``tokens`` (in it; 0: the role). CLOCK_MONOTONIC
seconds. The answers themselves are the same with and without it.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import orjson
from aiohttp import web


@dataclass(slots=True)
class Record:
    """One answer in the making."""

    arrival: float
    t: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    _told: dict[int, int] = field(default_factory=dict)  # tokens of each choice so far

    def write(self, choice: int, generated: int) -> None:
        """An event is written now; ``generated``: tokens of this choice up to its end."""
        self.t.append(monotonic())
        self.tokens.append(generated - self._told.get(choice, 0))
        self._told[choice] = generated


class Clock:
    """Appends to a file: one write for each answer. Raises OSError."""

    def __init__(self, path: str) -> None:
        self._read: weakref.WeakKeyDictionary[asyncio.BaseTransport, float] = weakref.WeakKeyDictionary()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def protocol(self, inner: asyncio.Protocol) -> asyncio.Protocol:
        """What notes when a connection's bytes are read: until a handler sees them, the server works."""
        return _Stamped(inner, self._read)

    def begun(self, transport: asyncio.BaseTransport | None) -> Record:
        """A request whose body is complete."""
        now = monotonic()
        return Record(now if transport is None else self._read.get(transport, now))

    def ended(self, key: str, record: Record) -> None:
        """Write an answer's line; ``key``: its id."""
        line = {"id": key, "arrival": record.arrival, "t": record.t, "tokens": record.tokens}
        os.write(self._fd, orjson.dumps(line) + b"\n")


class ClockedRunner(web.AppRunner):
    """Serves an application on connections that a clock watches, where there is one."""

    def __init__(self, app: web.Application, clock: Clock | None, **more: Any) -> None:
        super().__init__(app, **more)
        self._clock = clock

    @property
    def server(self) -> Any:
        """What sites make a connection's protocol with."""
        made, clock = super().server, self._clock
        if clock is None or made is None:
            return made
        factory: Callable[[], asyncio.Protocol] = made
        return lambda: clock.protocol(factory())


class _Stamped(asyncio.Protocol):
    """Passes everything on, the time of reading noted."""

    def __init__(
        self, inner: asyncio.Protocol, read: weakref.WeakKeyDictionary[asyncio.BaseTransport, float]
    ) -> None:
        self._inner = inner
        self._read = read
        self._transport: asyncio.BaseTransport | None = None
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]
        self.eof_received = inner.eof_received  # type: ignore[method-assign]
        self.connection_lost = inner.connection_lost  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None:
            self._read[self._transport] = monotonic()
        self._inner.data_received(data)

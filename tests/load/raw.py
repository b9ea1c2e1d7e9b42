"""A server on bare sockets: it may close or reset a connection wherever a script says so."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class Asked:
    """A request that has come whole. ``connection`` and ``nth`` (request on it) count from 1."""

    connection: int
    nth: int
    body: bytes
    writer: asyncio.StreamWriter
    gone_at: float = field(default=0.0)  # CLOCK_MONOTONIC seconds at which its connection was ended


Act = Callable[[Asked], Awaitable[None]]


class RawServer:
    """Does ``act`` with each request for a completion; a connection stays until an act ends it. It has no
    /tokenize."""

    def __init__(self, act: Act) -> None:
        self.act = act
        self.asked: list[Asked] = []
        self._connections = 0
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> RawServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._open:
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, nth = 0, 0
        self._open.add(writer)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                assert length is not None
                body = await reader.readexactly(int(length[1]))
                if b"/v1/chat/completions" not in head:
                    writer.write(_NOT_FOUND)
                    break
                if not connection:
                    self._connections += 1
                    connection = self._connections
                nth += 1
                asked = Asked(connection, nth, body, writer)
                self.asked.append(asked)
                await self.act(asked)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()


def chunks(*pieces: bytes) -> bytes:
    """Chunks of an HTTP body, without its end."""
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


async def answer(asked: Asked, *pieces: bytes) -> None:
    """A whole answer of these pieces; the connection stays."""
    asked.writer.write(HEAD + chunks(*pieces) + b"0\r\n\r\n")
    await asked.writer.drain()


async def close(asked: Asked) -> None:
    """FIN, as of a server that has closed an idle connection."""
    asked.gone_at = monotonic()
    asked.writer.close()


async def reset(asked: Asked) -> None:
    """RST, as of a server that had closed it when the request came."""
    connection = asked.writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    asked.gone_at = monotonic()
    asked.writer.close()

"""A scripted server of /v1/chat/completions, and the ways in which it may answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from sparktui.schema.launch import LoadSpec
from sparktui.schema.messages import LoadConfig

SSE = Path(__file__).parent.parent / "fixtures" / "sse"
PATIENCE_S = 15.0
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def recorded(name: str) -> bytes:
    """The body of a recorded stream, without the HTTP headers before it."""
    data = (SSE / name).read_bytes()
    return data.partition(b"\r\n\r\n")[2] if data.startswith(b"HTTP/") else data


def event(tokens: int | None = None, **delta: object) -> bytes:
    """One event as vLLM sends it; ``tokens`` is the completion's count so far."""
    value: dict[str, Any] = {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    if tokens is not None:
        value["usage"] = {"prompt_tokens": 11, "total_tokens": 11 + tokens, "completion_tokens": tokens}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def events(*steps: int) -> Iterator[bytes]:
    """A role chunk, then one chunk a step with so many tokens more each time, and the end."""
    yield event(0, role="assistant", content="")
    total = 0
    for step in steps:
        total += step
        yield event(total, content="x" * step)
    yield b'data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":%d}}\n\n' % total
    yield b"data: [DONE]\n\n"


def streaming(*pieces: bytes) -> Answer:
    """Answers with these pieces, each written by itself, then ends the response."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        await response.write_eof()
        return response

    return answer


def hanging(*pieces: bytes) -> Answer:
    """As ``streaming``, but never ends."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        await asyncio.Event().wait()
        return response

    return answer


def refusing(status: int, body: str = "", kind: str = "application/json") -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, content_type=kind)

    return answer


class Backend:
    """Each request waits for a permit, then gets ``answer``. Bodies and headers are kept in order."""

    def __init__(self, answer: Answer, permits: int = 0) -> None:
        self.answer = answer
        self.bodies: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.connections: set[int] = set()  # the clients' ports
        self.inside = 0
        self.most_inside = 0
        self._permits = permits
        self._news = asyncio.Condition()
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._handle)
        self.server = TestServer(app, handler_cancellation=True)

    async def __aenter__(self) -> Backend:
        await self.server.start_server(shutdown_timeout=0.1)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.close()

    @property
    def url(self) -> str:
        return str(self.server.make_url("")).rstrip("/")

    async def allow(self, count: int = 1) -> None:
        async with self._news:
            self._permits += count
            self._news.notify_all()

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Until ``condition`` holds, looked at whenever a request comes or goes."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(condition)

    async def asked(self, count: int) -> None:
        """Until so many requests have come."""
        await self.wait(lambda: len(self.raw) >= count)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        assert request.transport is not None
        self.connections.add(request.transport.get_extra_info("peername")[1])
        async with self._news:
            self.raw.append(raw)
            self.bodies.append(json.loads(raw))
            self.headers.append(dict(request.headers))
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
            self._news.notify_all()
        try:
            async with self._news:
                await self._news.wait_for(lambda: self._permits > 0)
                self._permits -= 1
            return await self.answer(request)
        finally:
            self.inside -= 1
            async with self._news:
                self._news.notify_all()


def config(
    url: str, *, stall_s: float = 30.0, nonce: str = "n1", interval_s: float = 0.05, **spec: Any
) -> LoadConfig:
    """A load of small prompts against ``url``."""
    settings: dict[str, Any] = {"input_tokens": 64, "output_tokens": 8} | spec
    return LoadConfig(url, "served", LoadSpec(**settings), nonce, interval_s, stall_s)

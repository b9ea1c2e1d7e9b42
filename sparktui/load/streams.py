"""The closed loop: so many streams, each asking again as soon as its answer ends (aiohttp)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import aiohttp

from sparktui.load.counts import Counts, Standing, standing
from sparktui.load.errors import BUSY, PAUSE_SPREAD, RETRY_AFTER_MOST_S, StreamError, refusal
from sparktui.load.meter import StreamMeter
from sparktui.load.prompts import Prompts
from sparktui.load.silence import Silence
from sparktui.load.sse import DONE, EventSplitter
from sparktui.schema.messages import TOKENIZE_KEY, LoadConfig, LoadTarget
from sparktui.schema.records import RequestRow
from sparktui.schema.text import printable

STAGGER_S = 0.02  # streams that start in one instant measure the client's own queue
KEEPALIVE_S = 2.0  # under uvicorn's 5 s, or stale sockets fail requests
CONNECT_S = 10.0
LAST_BYTES_S = 1.0
ERROR_PAUSE_S = 0.5  # a server that refuses at once is not hammered
_READ_BYTES = 1 << 16  # asyncio's own 256 KiB is mapped and zeroed by the kernel for each read: 18 µs
_RESETS = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientConnectionResetError)


class ClosedLoop:
    """Streams against one server. ``on_row`` is called with each finished request.

    The first streams start when the prompts are made (seconds at most): who only watches a server asks it
    nothing. ``note``: what to know of their lengths, else empty.
    """

    def __init__(self, config: LoadConfig, on_row: Callable[[RequestRow], None]) -> None:
        self._config = config
        self._url = config.url.rstrip("/") + "/v1/chat/completions"
        self._prompts = Prompts(config.spec, config.model, config.nonce)
        self._on_row = on_row
        self._ignore_eos = config.spec.ignore_eos
        self._next_prompt = 0
        self._slots: dict[int, asyncio.Task[None]] = {}
        self._open: set[StreamMeter] = set()
        self._session: aiohttp.ClientSession | None = None
        self._unpooled: aiohttp.ClientSession | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._prepared = False
        self._wanted = LoadTarget(0)
        self.counts = Counts()
        self.target = 0
        self.note = ""

    async def __aenter__(self) -> ClosedLoop:
        self._session = _session(os.environ.get("VLLM_API_KEY"))
        self._unpooled = _session(None, pooled=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.gather(self._preparing, return_exceptions=True)
        await self._cut(0)
        for session in (self._session, self._unpooled):
            if session is not None:
                await session.close()

    @property
    def in_flight(self) -> int:
        """Requests that were handed out and have not ended."""
        return len(self._open)

    def standing(self, now: float) -> Standing:
        """Where those requests stand. ``now``: CLOCK_MONOTONIC seconds."""
        return standing(self._open, now)

    async def aim(self, target: LoadTarget) -> None:
        """Move to another number of streams: more start staggered, fewer drain (or are cut)."""
        if target.next_prompt is not None:
            self._next_prompt = target.next_prompt
        if target.ignore_eos is not None:
            self._ignore_eos = target.ignore_eos
        self._wanted = target
        if self._prepared or not target.concurrency:
            await self._move(target)
        elif self._preparing is None:
            self._preparing = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        url = self._config.tokenize_url or self._config.url
        key = "VLLM_API_KEY" if url == self._config.url else TOKENIZE_KEY
        try:
            async with _session(os.environ.get(key)) as session:
                self.note = await self._prompts.prepare(session, url)
        except Exception as exc:  # whatever broke: the estimates still make a load
            self.note = f"prompts were not counted: {printable(str(exc)) or type(exc).__name__}"
        self._prepared = True
        await self._move(self._wanted)

    async def _move(self, target: LoadTarget) -> None:
        self.target = target.concurrency
        if target.cut:
            await self._cut(self.target)
        started = 0
        for slot in range(self.target):
            running = self._slots.get(slot)
            if running is None or running.done():
                self._slots[slot] = asyncio.create_task(self._slot(slot, started * STAGGER_S))
                started += 1

    async def _cut(self, keep: int) -> None:
        tasks = [task for slot, task in self._slots.items() if slot >= keep and not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _slot(self, slot: int, delay: float) -> None:
        """One stream. It looks at the target before each request: lowered while it waits, it sends none."""
        await asyncio.sleep(delay)
        while slot < self.target:
            index = self._next_prompt
            self._next_prompt += 1
            if pause := await self._request(index):
                await asyncio.sleep(pause * random.uniform(1.0, PAUSE_SPREAD))

    async def _request(self, index: int) -> float:
        """Seconds to leave the server in peace afterwards."""
        body = self._prompts.body(index, ignore_eos=self._ignore_eos)
        meter = StreamMeter(index, monotonic(), self.counts)
        self._open.add(meter)
        try:
            await self._stream(body, meter)
        except asyncio.CancelledError:
            self._on_row(meter.row(monotonic(), cancelled=True))
            raise
        except StreamError as exc:
            self._on_row(meter.row(monotonic(), error=f"{exc}", status=exc.status))
            asked = exc.retry_s if exc.status in BUSY else 0.0
            return min(max(ERROR_PAUSE_S, asked), RETRY_AFTER_MOST_S)
        except Exception as exc:  # whatever broke: a stream that ends unseen would lower the load in silence
            self._on_row(meter.row(monotonic(), error=f"{exc}" or type(exc).__name__))
            return ERROR_PAUSE_S
        finally:
            self._open.discard(meter)
        self._on_row(meter.row(monotonic()))
        return 0.0

    async def _stream(self, body: bytes, meter: StreamMeter) -> None:
        async with (
            Silence(self._config.stall_s) as silence,
            await self._post(body, meter, silence) as response,
        ):
            if response.status != 200:
                said = await response.content.read(4096)
                raise refusal(response.status, said, response.headers.get("Retry-After"))
            _read_small(response)
            await _events(response, meter, silence)
            await _to_the_end(response)

    async def _post(self, body: bytes, meter: StreamMeter, silence: Silence) -> aiohttp.ClientResponse:
        """The answer's head. A server may close an idle connection in the instant in which we use it again:
        then it has not read the request, which goes out once more, on a new connection and timed anew."""
        assert self._session is not None, "use the loop as a context manager"
        assert self._unpooled is not None
        way = _Way()
        try:
            return await self._session.post(self._url, data=body, trace_request_ctx=way)
        except _RESETS as exc:
            if not way.reused or _began(exc):
                raise
        meter.start = silence.heard = monotonic()
        return await self._unpooled.post(self._url, data=body, headers=self._session.headers)


@dataclass(slots=True)
class _Way:
    """How a request went out."""

    reused: bool = False


async def _reused(_session: aiohttp.ClientSession, context: Any, _params: object) -> None:
    if context.trace_request_ctx is not None:
        context.trace_request_ctx.reused = True


def _began(exc: Exception) -> bool:
    """Whether a part of the answer's head had come: aiohttp hands it over when the connection was closed. Of
    one that was reset (RST) it doesn't tell; servers write a head in one piece."""
    return isinstance(exc, aiohttp.ServerDisconnectedError) and not isinstance(exc.message, str)


def _session(key: str | None, *, pooled: bool = True) -> aiohttp.ClientSession:
    """``pooled``: connections are used again; else each request has a new one."""
    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(_reused)
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}  # gzip holds chunks back
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return aiohttp.ClientSession(
        connector=(
            aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S)
            if pooled
            else aiohttp.TCPConnector(limit=0, force_close=True)
        ),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        headers=headers,
        trust_env=False,
        trace_configs=[trace],
    )


async def _events(response: aiohttp.ClientResponse, meter: StreamMeter, silence: Silence) -> None:
    """Count all events up to [DONE]. The clock is read before anything is parsed."""
    splitter, event, read = EventSplitter(), meter.event, response.content.readany
    feed, t = splitter.feed, monotonic()
    while data := await read():
        t = monotonic()
        if payloads := feed(data):  # else a comment: a proxy's ping is no life of the server
            silence.heard = t
        for payload in payloads:
            if payload == DONE:
                meter.end(t)
                return
            event(payload, t)
    for payload in splitter.end():
        if payload == DONE:
            meter.end(t)
            return
        if payload.endswith(b"}"):  # one that was cut off is told as what it is: a stream without its end
            event(payload, t)
    raise StreamError("the stream ended without [DONE]")


def _read_small(response: aiohttp.ClientResponse) -> None:
    """Read into small buffers, where the transport lets us say so (asyncio's own; others ignore it)."""
    transport: Any = response.connection.transport if response.connection is not None else None
    if hasattr(transport, "max_size"):
        transport.max_size = _READ_BYTES


async def _to_the_end(response: aiohttp.ClientResponse) -> None:
    """Read the last bytes after [DONE]: a response left unfinished costs its connection, and the next
    request's TTFT would hold the set-up of another."""
    with contextlib.suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(LAST_BYTES_S):
            await response.content.read()

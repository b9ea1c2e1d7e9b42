"""The closed loop: so many streams, each asking again as soon as its answer ends (aiohttp)."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from time import monotonic

import aiohttp
import orjson

from sparktui.load.meter import Counts, StreamError, StreamMeter, error_text
from sparktui.load.prompts import Prompts
from sparktui.load.sse import DONE, EventSplitter
from sparktui.schema.messages import LoadConfig, LoadTarget
from sparktui.schema.records import RequestRow

STAGGER_S = 0.02  # streams that start in one instant measure the client's own queue
KEEPALIVE_S = 2.0  # under uvicorn's 5 s, or stale sockets fail requests
LAST_BYTES_S = 1.0
ERROR_PAUSE_S = 0.5  # a server that refuses at once is not hammered


class ClosedLoop:
    """Streams against one server. ``on_row`` is called with each finished request."""

    def __init__(self, config: LoadConfig, on_row: Callable[[RequestRow], None]) -> None:
        self._config = config
        self._url = config.url.rstrip("/") + "/v1/chat/completions"
        self._prompts = Prompts(config.spec, config.model, config.nonce)
        self._on_row = on_row
        self._ignore_eos = config.spec.ignore_eos
        self._next_prompt = 0
        self._slots: dict[int, asyncio.Task[None]] = {}
        self._session: aiohttp.ClientSession | None = None
        self.counts = Counts()
        self.target = 0
        self.in_flight = 0

    async def __aenter__(self) -> ClosedLoop:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=self._config.stall_s)
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("VLLM_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S),
            timeout=timeout,
            headers=headers,
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._cut(0)
        if self._session is not None:
            await self._session.close()

    async def aim(self, target: LoadTarget) -> None:
        """Move to another number of streams: more start staggered, fewer drain (or are cut)."""
        if target.next_prompt is not None:
            self._next_prompt = target.next_prompt
        if target.ignore_eos is not None:
            self._ignore_eos = target.ignore_eos
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
        await asyncio.sleep(delay)
        while slot < self.target:
            index = self._next_prompt
            self._next_prompt += 1
            row = await self._request(index)
            self._on_row(row)
            if row.error:
                await asyncio.sleep(ERROR_PAUSE_S)

    async def _request(self, index: int) -> RequestRow:
        body = self._prompts.body(index, ignore_eos=self._ignore_eos)
        self.in_flight += 1
        meter = StreamMeter(index, monotonic(), self.counts)
        try:
            await self._stream(body, meter)
        except asyncio.CancelledError:
            self._on_row(meter.row(monotonic(), cancelled=True))
            raise
        except (StreamError, aiohttp.ClientError, TimeoutError, OSError) as exc:
            return meter.row(monotonic(), error=self._reason(exc))
        finally:
            self.in_flight -= 1
        return meter.row(monotonic())

    async def _stream(self, body: bytes, meter: StreamMeter) -> None:
        assert self._session is not None, "use the loop as a context manager"
        splitter = EventSplitter()
        async with self._session.post(self._url, data=body) as response:
            if response.status != 200:
                raise StreamError(await _refusal(response))
            async for data in response.content.iter_any():
                t = monotonic()
                for payload in splitter.feed(data):
                    if payload == DONE:
                        await _to_the_end(response)
                        return
                    meter.event(payload, t)
        raise StreamError("the stream ended without [DONE]")

    def _reason(self, exc: Exception) -> str:
        if isinstance(exc, TimeoutError):
            return f"no data for {self._config.stall_s:g} s"
        return f"{exc}" or type(exc).__name__


async def _to_the_end(response: aiohttp.ClientResponse) -> None:
    """Read the last bytes after [DONE]: a response left unfinished costs its connection, and the next
    request's TTFT would hold the set-up of another."""
    with contextlib.suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(LAST_BYTES_S):
            await response.content.read()


async def _refusal(response: aiohttp.ClientResponse) -> str:
    data = await response.content.read(4096)
    try:
        said = error_text(orjson.loads(data))
    except orjson.JSONDecodeError:
        said = data[:200].decode("utf-8", "replace").strip()
    return f"HTTP {response.status}: {said}" if said else f"HTTP {response.status}"

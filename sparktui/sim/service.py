"""The engine on a real clock: paces steps against absolute deadlines and hands outputs to their requests."""

from __future__ import annotations

import asyncio
import itertools
import time
import zlib
from dataclasses import dataclass, field

from sparktui.sim.engine import Engine, FinishReason, Output, Request
from sparktui.sim.metrics import Metrics, Totals

_TEXT = (
    "the a model token step batch cache draft of and in to is for with runs reads keeps each every one two "
    "new old fast slow small large graph kernel layer head block page queue time rate answer text, line."
)
_WORDS = tuple(_TEXT.split())


class EngineDead(Exception):
    """The engine process ended while a request was waiting."""


@dataclass(frozen=True, slots=True)
class Delta:
    """What a request got since it last looked: several steps merge when the reader is slow, as in vLLM."""

    text: str
    generated: int  # tokens so far
    finish_reason: FinishReason | None


@dataclass(slots=True)
class Stream:
    """The receiving end of one request. The text depends on the prompt alone, so greedy answers agree."""

    request: Request
    seed: int
    _pending: list[Output] = field(default_factory=list)
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _spoken: int = 0
    _dead: bool = False

    def put(self, output: Output) -> None:
        self._pending.append(output)
        self._ready.set()

    def die(self) -> None:
        self._dead = True
        self._ready.set()

    async def get(self) -> Delta:
        """Wait for the next output. Raises EngineDead."""
        await self._ready.wait()
        self._ready.clear()
        if not self._pending:
            raise EngineDead
        tokens = sum(output.tokens for output in self._pending)
        finish = self._pending[-1].finish_reason
        self._pending.clear()
        if self._dead:
            self._ready.set()
        start, self._spoken = self._spoken, self._spoken + tokens
        end = self._spoken - (finish == "stop")  # the end-of-sequence token has no text
        text = "".join(self._word(i) for i in range(start, end))
        return Delta(text, self._spoken, finish)

    def _word(self, index: int) -> str:
        return " " + _WORDS[zlib.crc32(b"%d %d" % (self.seed, index)) % len(_WORDS)]


class EngineService:
    """Submits requests to the engine and runs it. One event loop, no locks."""

    def __init__(self, engine: Engine, metrics: Metrics) -> None:
        self._engine = engine
        self._metrics = metrics
        self._streams: dict[str, Stream] = {}
        self._ids = itertools.count()
        self._wake = asyncio.Event()
        self.dead = False

    @property
    def running(self) -> int:
        return self._engine.running

    @property
    def waiting(self) -> int:
        return self._engine.waiting

    @property
    def kv_usage(self) -> float:
        return self._engine.kv_usage

    @property
    def totals(self) -> Totals:
        return self._metrics.totals

    def submit(self, request: Request, seed: int) -> Stream:
        """Queue a request. Raises EngineDead."""
        if self.dead:
            raise EngineDead
        request.id = f"{request.id}-{next(self._ids)}"
        stream = self._streams[request.id] = Stream(request, seed)
        self._engine.add(request, time.monotonic())
        self._metrics.set_state(self._engine)
        self._wake.set()
        return stream

    def release(self, stream: Stream) -> None:
        """Forget a request: finished, or aborted by its client."""
        if self._streams.pop(stream.request.id, None) is not None:
            self._engine.abort(stream.request)
            self._metrics.set_state(self._engine)

    def die(self) -> None:
        """The engine process is gone: every stream ends."""
        self.dead = True
        for stream in self._streams.values():
            stream.die()

    async def run(self) -> None:
        """Complete steps when they are due, until cancelled or dead."""
        while not self.dead:
            due = self._engine.due
            if due is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self._complete(time.monotonic())

    def _complete(self, now: float) -> None:
        step = None if self.dead else self._engine.step(now)
        if step is None:
            return
        for output in step.outputs:
            stream = self._streams.get(output.request.id)
            if stream is not None:
                stream.put(output)
        self._metrics.record(step, self._engine)

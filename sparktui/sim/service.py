"""The engines on a real clock: paces steps against absolute deadlines and hands outputs to their requests."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sparktui.sim.counts.metrics import Metrics
from sparktui.sim.http.answers import Script
from sparktui.sim.model.engine import Engine, Output, Request, Step

_log = logging.getLogger(__name__)

_WAITING_WEIGHT = 4  # a waiting request counts like this many running ones, as in vLLM's balancing


class EngineDead(Exception):
    """The engine process ended while a request was waiting."""


@dataclass(frozen=True, slots=True)
class Delta:
    """What a request got since it last looked: several steps merge when the reader is slow, as in vLLM."""

    reasoning: str
    content: str
    generated: int  # tokens so far
    finish_reason: str | None
    stop_reason: str | None = None
    parsed: bool = False  # a reasoning parser reads it: what has no text is not told


@dataclass(slots=True, eq=False)
class Stream:
    """The receiving end of one request. A listener is called within the step that has news for it."""

    request: Request
    script: Script
    index: int = 0  # which of the answer's choices
    engine: int = 0
    generated: int = 0
    finish_reason: str | None = None  # the engine's, or "abort"
    _told: int = 0
    _listener: Callable[[Stream], None] | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _dead: bool = False

    def listen(self, listener: Callable[[Stream], None]) -> None:
        """Call ``listener`` now if there is news, and from now on when there is. It may call ``take``."""
        self._listener = listener
        if self.generated:
            listener(self)

    def put(self, output: Output) -> None:
        self.generated += output.tokens
        stop_at = self.script.look(self.generated)
        if stop_at is not None:
            self.request.stop_after = min(self.request.stop_after or stop_at, stop_at)
        self._tell(output.finish_reason)

    def abort(self) -> None:
        """The engine gives it up in an orderly way: its last output has no token."""
        self._tell("abort")

    def give_up(self) -> None:
        """Ended without telling anybody."""
        self._listener = None
        self._tell("abort")

    def die(self) -> None:
        self._dead = self.finish_reason is None
        self._ended.set()

    def _tell(self, finish_reason: str | None) -> None:
        self.finish_reason = finish_reason
        if self._listener is not None:
            self._listener(self)
        if finish_reason is not None:
            self._ended.set()

    async def ended(self) -> None:
        """Wait for the last output. Raises EngineDead."""
        await self._ended.wait()
        if self._dead:
            raise EngineDead

    def take(self) -> Delta:
        """Everything since the last call."""
        start, self._told, finish = self._told, self.generated, self.finish_reason
        stopped = finish == "stop" and self.generated == self.script.stop_at
        end = self._told - (finish == "stop" and not stopped)  # the end-of-sequence token has no text
        reasoning, content = self.script.say(start, end, ended=finish is not None)
        reason = self.script.stop_reason if stopped else None
        return Delta(reasoning, content, self._told, finish, reason, self.script.thought > 0)


class EngineService:
    """Submits requests to the least loaded engine and runs them all. One event loop, no locks."""

    def __init__(self, engines: Sequence[Engine] | Engine, metrics: Metrics) -> None:
        self.engines = (engines,) if isinstance(engines, Engine) else tuple(engines)
        self.metrics = metrics
        self.dead = False
        self.on_draft: Callable[[], None] | None = None  # instead of the first step that drafts
        self.drafted = False  # whether that has happened
        self._streams: dict[str, Stream] = {}
        self._ids = itertools.count()
        self._wake = [asyncio.Event() for _ in self.engines]
        self._unhung = asyncio.Event()
        self._unhung.set()

    @property
    def running(self) -> int:
        return sum(engine.running for engine in self.engines)

    @property
    def waiting(self) -> int:
        return sum(engine.waiting for engine in self.engines)

    @property
    def hung(self) -> bool:
        """Whether no engine steps; requests are still taken."""
        return not self._unhung.is_set()

    @hung.setter
    def hung(self, value: bool) -> None:
        (self._unhung.clear if value else self._unhung.set)()

    def submit(self, request: Request, script: Script, index: int = 0) -> Stream:
        """Queue a request. Raises EngineDead."""
        if self.dead:
            raise EngineDead
        request.id = f"{request.id}-{next(self._ids)}"
        chosen = min(range(len(self.engines)), key=self._load)
        self.engines[chosen].add(request, time.monotonic())
        stream = self._streams[request.id] = Stream(request, script, index, chosen)
        self._show(chosen)
        self._wake[chosen].set()
        return stream

    def release(self, stream: Stream) -> None:
        """Forget a request: finished, or aborted by its client."""
        if self._streams.pop(stream.request.id, None) is not None:
            self.engines[stream.engine].abort(stream.request)
            self._show(stream.engine)

    def reset_prefix_cache(self) -> bool:
        """Forget every prompt. False where an engine's blocks are held."""
        done = [engine.reset_prefix_cache() for engine in self.engines]  # all, whatever the first says
        return all(done)

    def abort_all(self) -> None:
        """An engine that shuts down ends what is under way, with finish reason ``abort``."""
        for stream in list(self._streams.values()):
            if stream.finish_reason is None:
                self.engines[stream.engine].abort(stream.request)
                stream.abort()

    def die(self) -> None:
        """The engine process is gone: every stream ends."""
        self.dead = True
        for stream in self._streams.values():
            stream.die()
        for event in (*self._wake, self._unhung):
            event.set()

    async def run(self) -> None:
        """Complete steps when they are due, until cancelled or dead."""
        async with asyncio.TaskGroup() as group:
            for index in range(len(self.engines)):
                group.create_task(self._pace(index))

    def _load(self, index: int) -> int:
        return _WAITING_WEIGHT * self.engines[index].waiting + self.engines[index].running

    async def _pace(self, index: int) -> None:
        engine, wake = self.engines[index], self._wake[index]
        while not self.dead:
            await self._unhung.wait()
            if engine.due is None:
                wake.clear()
                await wake.wait()
                continue
            await asyncio.sleep(max(0.0, engine.due - time.monotonic()))
            if not (self.dead or self.hung):
                self._complete(index, time.monotonic())

    def _complete(self, index: int, now: float) -> None:
        step = self.engines[index].step(now)
        if step is None or self._crashed(step):
            return
        for output in step.outputs:
            stream = self._streams.get(output.request.id)
            if stream is not None:
                self._put(stream, output)
        self.metrics.record(step, self.engines[index], index)

    def _put(self, stream: Stream, output: Output) -> None:
        """A listener that fails ends its own stream only."""
        try:
            stream.put(output)
        except Exception:
            _log.exception("request %s: its listener failed", stream.request.id)
            self.engines[stream.engine].abort(stream.request)
            stream.give_up()

    def _crashed(self, step: Step) -> bool:
        if not step.drafts or self.on_draft is None:
            return False
        self.drafted = self.hung = True  # nothing comes out of an engine that is about to be lost
        self.on_draft()
        return True

    def _show(self, index: int) -> None:
        self.metrics.set_state(self.engines[index], index)

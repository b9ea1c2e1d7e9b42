"""/v1/chat/completions and /v1/completions: from a checked request to its answer, streamed or whole."""

from __future__ import annotations

import asyncio
import contextlib
import random
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from sparktui.sim.counts.choices import Choice, Parent
from sparktui.sim.http import faults
from sparktui.sim.http.answers import script, thought_tokens
from sparktui.sim.http.chunks import Chunks, EventWriter
from sparktui.sim.http.clock import Clock, Record
from sparktui.sim.http.disturb import Disturbances
from sparktui.sim.http.intake import Asked, Limits, read, seed_of
from sparktui.sim.http.lengths import Prompt
from sparktui.sim.http.ownmetrics import Told
from sparktui.sim.http.payloads import DONE, Answer, engine_dead_event
from sparktui.sim.http.refusals import Refused
from sparktui.sim.http.replies import json_reply
from sparktui.sim.model.prefix import block_keys
from sparktui.sim.model.truth import Truth
from sparktui.sim.service import EngineDead, EngineService, Stream

_INJECTED = "The stand-in was asked to fail."


@dataclass(slots=True)
class Completions:
    """Answers completion requests. ``rng``: natural lengths, and which requests a fault hits.

    ``told``: which metrics answers carry; ``clock``: where the times of streamed ones go.
    """

    limits: Limits
    truth: Truth
    service: EngineService
    disturbances: Disturbances
    rng: random.Random
    told: Told = field(default_factory=Told)
    clock: Clock | None = None
    _used: weakref.WeakSet[asyncio.BaseTransport] = field(default_factory=weakref.WeakSet)

    async def answer(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        """The whole of one request. Raises Refused, EngineDead."""
        raw = await request.read()
        record = self.clock.begun(request.transport) if self.clock is not None else None
        await self._reset(request)
        asked = read(raw, chat, self.limits)
        self._refuse()
        asked = self._without_usage(asked)
        answer = self._answer(request, asked, chat)
        streams: list[Stream] = []
        try:
            streams.extend(self._submit(asked, answer))
            if asked.stream:
                return await self._stream(request, asked, answer, streams, record)
            for stream in streams:
                await stream.ended()
            return json_reply(answer.whole([stream.take() for stream in streams], self._metrics(streams)))
        finally:
            for stream in streams:
                self.service.release(stream)
            if self.clock is not None and record is not None and asked.stream:
                self.clock.ended(answer.id, record)

    async def _reset(self, request: web.Request) -> None:
        """Cut a connection that has had an answer, as a server does whose keep-alive ran out just now."""
        transport, fault = request.transport, self.disturbances.find(faults.KeepAliveReset)
        if transport is None:
            return
        if fault is not None and transport in self._used and self.rng.random() < fault.probability:
            transport.abort()
            await asyncio.Event().wait()  # until this handler is cancelled with its connection
        self._used.add(transport)

    def _refuse(self) -> None:
        """Raises Refused where a fault says so."""
        errors = self.disturbances.find(faults.ServerErrors)
        if errors is not None and self.rng.random() < errors.probability:
            raise Refused(errors.status, _INJECTED, "InternalServerError")
        limit = self.disturbances.find(faults.RateLimit)
        if limit is not None and self.rng.random() < limit.probability:
            refused = Refused(429, _INJECTED, "RateLimitError")
            refused.headers["Retry-After"] = str(limit.retry_after_s)
            raise refused

    def _without_usage(self, asked: Asked) -> Asked:
        """Less usage in a stream than was asked for, as proxies have it."""
        if self.disturbances.find(faults.NoUsage) is not None:
            return replace(asked, include_usage=False, continuous_usage=False)
        if self.disturbances.find(faults.FinalUsage) is not None:
            return replace(asked, continuous_usage=False)
        return asked

    def _metrics(self, streams: list[Stream]) -> dict[str, Any] | None:
        """What an answer tells of itself, where it is one answer to one prompt."""
        return self.told.of(streams[0].request) if len(streams) == 1 else None

    def _answer(self, request: web.Request, asked: Asked, chat: bool) -> Answer:
        answer = Answer(
            chat,
            asked.model,
            tuple(prompt.tokens for prompt in asked.prompts),
            asked.include_usage,
            asked.continuous_usage,
            self.limits.release,
        )
        key = request.headers.get("X-Request-Id")
        return answer.named(_latin(key)) if key else answer

    def _submit(self, asked: Asked, answer: Answer) -> Iterator[Stream]:
        """One engine request for each choice of each prompt, in vLLM's order of choices."""
        for place, prompt in enumerate(asked.prompts):
            parent = Parent.of(asked.choices)
            for choice in range(asked.choices):
                index = place * asked.choices + choice
                yield self._submit_one(asked, answer.id, prompt, index, choice, parent)

    def _submit_one(
        self, asked: Asked, key: str, prompt: Prompt, index: int, choice: int, parent: Parent
    ) -> Stream:
        seed = seed_of(prompt, choice, asked.seed)
        thought = thought_tokens(seed) if asked.thinks else 0
        most = asked.max_tokens[index // asked.choices]
        words = script(seed, thought, most, asked.stop)
        ends = [end for end in (asked.natural_end(self.truth, self.rng), words.stop_at) if end is not None]
        request = Choice(
            key,
            prompt.tokens,
            most,
            min(ends, default=None),
            temperature=asked.temperature,
            blocks=block_keys(prompt.ids or prompt.text),
            gains=self.told.gains(),
            parent=parent,
        )
        return self.service.submit(request, words, index)

    async def _stream(
        self, request: web.Request, asked: Asked, answer: Answer, streams: list[Stream], record: Record | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            self._listen(request, asked, answer, streams, record)
            await self._write_rest(response, answer, streams)
        return response

    def _listen(
        self, request: web.Request, asked: Asked, answer: Answer, streams: list[Stream], record: Record | None
    ) -> None:
        """Have every step's news written to the connection."""
        if request.transport is None:
            raise ConnectionResetError
        drop = self.disturbances.find(faults.DroppedStreams)
        hit = drop is not None and self.rng.random() < drop.probability
        chunks = [
            Chunks(
                answer,
                stream.index,
                asked.prompts[stream.index // asked.choices].tokens,
                tells_thoughts=asked.tells_thoughts,
            )
            for stream in streams
        ]
        cut_after = drop.after_chunks if drop and hit else None
        writer = EventWriter(request.transport, chunks, cut_after, record)
        for stream in streams:
            stream.listen(writer.tell)

    async def _write_rest(self, response: web.StreamResponse, answer: Answer, streams: list[Stream]) -> None:
        """What follows the last token."""
        try:
            for stream in streams:
                await stream.ended()
            if answer.include_usage:
                tokens = sum(stream.generated for stream in streams)
                await response.write(answer.usage_chunk(tokens, self._metrics(streams)))
        except EngineDead:
            await response.write(engine_dead_event())
        await response.write(DONE)
        await response.write_eof()


def _latin(header: str) -> str:
    """A header's text as vLLM's server reads its bytes."""
    return header.encode("utf-8", "surrogateescape").decode("latin-1")

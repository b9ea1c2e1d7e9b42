"""/v1/chat/completions and /v1/completions: from a checked request to its answer, streamed or whole."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from aiohttp import web

from sparktui.sim.counts.choices import Choice, Parent
from sparktui.sim.http import faults
from sparktui.sim.http.answers import script, thought_tokens
from sparktui.sim.http.chunks import Chunks, EventWriter
from sparktui.sim.http.disturb import Disturbances
from sparktui.sim.http.intake import Asked, Limits, read, seed_of
from sparktui.sim.http.lengths import Prompt
from sparktui.sim.http.payloads import DONE, Answer, engine_dead_event
from sparktui.sim.http.refusals import Refused
from sparktui.sim.http.replies import json_reply
from sparktui.sim.model.prefix import block_keys
from sparktui.sim.model.truth import Truth
from sparktui.sim.service import EngineDead, EngineService, Stream

_INJECTED = "The stand-in was asked to fail."


@dataclass(slots=True)
class Completions:
    """Answers completion requests. ``rng``: natural lengths, and which requests a fault hits."""

    limits: Limits
    truth: Truth
    service: EngineService
    disturbances: Disturbances
    rng: random.Random

    async def answer(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        """The whole of one request. Raises Refused, EngineDead."""
        asked = read(await request.read(), chat, self.limits)
        errors = self.disturbances.find(faults.ServerErrors)
        if errors is not None and self.rng.random() < errors.probability:
            raise Refused(errors.status, _INJECTED, "InternalServerError")
        answer = self._answer(request, asked, chat)
        streams: list[Stream] = []
        try:
            streams.extend(self._submit(asked, answer))
            if asked.stream:
                return await self._stream(request, asked, answer, streams)
            for stream in streams:
                await stream.ended()
            return json_reply(answer.whole([stream.take() for stream in streams]))
        finally:
            for stream in streams:
                self.service.release(stream)

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
            parent=parent,
        )
        return self.service.submit(request, words, index)

    async def _stream(
        self, request: web.Request, asked: Asked, answer: Answer, streams: list[Stream]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            self._listen(request, asked, answer, streams)
            await _write_rest(response, answer, streams)
        return response

    def _listen(self, request: web.Request, asked: Asked, answer: Answer, streams: list[Stream]) -> None:
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
        writer = EventWriter(request.transport, chunks, drop.after_chunks if drop and hit else None)
        for stream in streams:
            stream.listen(writer.tell)


def _latin(header: str) -> str:
    """A header's text as vLLM's server reads its bytes."""
    return header.encode("utf-8", "surrogateescape").decode("latin-1")


async def _write_rest(response: web.StreamResponse, answer: Answer, streams: list[Stream]) -> None:
    """What follows the last token."""
    try:
        for stream in streams:
            await stream.ended()
        if answer.include_usage:
            await response.write(answer.usage_chunk(sum(stream.generated for stream in streams)))
    except EngineDead:
        await response.write(engine_dead_event())
    await response.write(DONE)
    await response.write_eof()

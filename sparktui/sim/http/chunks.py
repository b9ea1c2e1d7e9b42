"""The events of one streamed answer, put together from prepared bytes, for 12,800 a second on one core."""

from __future__ import annotations

import asyncio

import orjson

from sparktui.sim.http.clock import Record
from sparktui.sim.http.payloads import Answer
from sparktui.sim.service import Delta, Stream

_HIGH_WATER_BYTES = 65_536  # uvicorn's: beyond, the answer waits for its reader and steps merge


class Chunks:
    """Bytes of one choice's events. ``prompt_tokens``: of the prompt that this choice answers."""

    def __init__(
        self, answer: Answer, index: int, prompt_tokens: int, *, tells_thoughts: bool = True
    ) -> None:
        head = orjson.dumps(answer.head("chunk"))[:-1]
        opened = b'data: %b,"choices":[{"index":%d,' % (head, index)
        self.chat = answer.chat
        self._start = opened + (b'"delta":' if answer.chat else b'"text":')
        self._names = [b'"%b":' % name.encode() for name in answer.reasoning_fields] if tells_thoughts else []
        tail = b',"prompt_token_ids":null,"token_ids":null}]' if not answer.chat else b',"token_ids":null}]'
        self._going = b',"logprobs":null,"finish_reason":null' + (
            b"" if answer.chat else b',"stop_reason":null'
        )
        self._going += tail
        self._tail = tail
        self._prompt_tokens = prompt_tokens if answer.continuous_usage else None
        self._usage = b',"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d'
        self._usage += b',"completion_tokens_details":null}' if answer.chat and answer.details else b"}"
        self._stamp = b""
        if answer.fingerprint is not None and not answer.include_usage:
            self._stamp = b',"system_fingerprint":"%b"' % answer.fingerprint.encode()

    def role(self) -> bytes:
        """The first event of a chat stream: a role, no token."""
        said = b'{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'
        return self._start + said + self._used(0) + b',"prompt_token_ids":null,"prompt_text":null}\n\n'

    def delta(self, delta: Delta) -> bytes:
        """An event with tokens; empty when there is nothing to tell. The last one has the finish reason."""
        said = self._said(delta)
        if delta.finish_reason is None:
            if said is None:
                return b""
            return b"%b%b%b%b}\n\n" % (self._start, said, self._going, self._used(delta.generated))
        ending = b',"logprobs":null,"finish_reason":"%b","stop_reason":%b' % (
            delta.finish_reason.encode(),
            orjson.dumps(delta.stop_reason),
        )
        start = self._start + (said or b"{}") + ending + self._tail
        return start + self._used(delta.generated) + self._stamp + b"}\n\n"

    def _said(self, delta: Delta) -> bytes | None:
        """The delta object, or the text; None when a reasoning parser has nothing to tell."""
        content = orjson.dumps(delta.content)
        if not self.chat:
            return content
        if delta.reasoning and self._names:
            parts = [name + orjson.dumps(delta.reasoning) for name in self._names]
            return b"{" + b",".join([b'"content":' + content, *parts] if delta.content else parts) + b"}"
        if delta.parsed and not delta.content:
            return None
        return b'{"content":%b}' % content

    def _used(self, generated: int) -> bytes:
        prompt = self._prompt_tokens
        return b"" if prompt is None else self._usage % (prompt, prompt + generated, generated)


class EventWriter:
    """Writes events straight to the connection, within the step they belong to.

    A task to wake and a writer to await for each event cost more than the rest of the server.
    ``cut_after``: events after which the connection is cut; None: never. ``record``: what notes the times.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        chunks: list[Chunks],
        cut_after: int | None = None,
        record: Record | None = None,
    ) -> None:
        self._transport = transport
        self._chunks = chunks
        self._left = cut_after
        self._record = record
        self._begun = not chunks[0].chat
        self.sent = 0

    def tell(self, stream: Stream) -> None:
        """Send what is new; a reader that is behind gets it with a later step, or with the last."""
        transport = self._transport
        if transport.is_closing():
            return
        if stream.finish_reason is None and transport.get_write_buffer_size() > _HIGH_WATER_BYTES:
            return
        delta = stream.take()
        data = self._chunks[stream.index].delta(delta)
        if not self._begun:
            self._begun = True
            for choice, chunks in enumerate(self._chunks):
                self._send(chunks.role(), choice, 0)
        if data:
            self._send(data, stream.index, delta.generated)

    def _send(self, data: bytes, choice: int, generated: int) -> None:
        """One event in an HTTP chunk of its own."""
        if self._left is not None and self.sent >= self._left:
            self._transport.abort()
            return
        self.sent += 1
        data = b"%x\r\n%b\r\n" % (len(data), data)
        if self._record is not None:
            self._record.write(choice, generated)
        self._transport.write(data)

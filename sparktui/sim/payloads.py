"""Bodies of vLLM 0.27.1's OpenAI answers, field by field as recorded from it."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import orjson

from sparktui.sim.bootlog import VERSION
from sparktui.sim.service import Delta

DONE = b"data: [DONE]\n\n"
ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
_FINGERPRINT = f"vllm-{VERSION}-{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer in the making. ``chat``: /v1/chat/completions, else /v1/completions."""

    chat: bool
    model: str
    prompt_tokens: int
    include_usage: bool = False
    continuous_usage: bool = False
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def id(self) -> str:
        return f"{'chatcmpl' if self.chat else 'cmpl'}-{self.key}"

    def usage(self, completion_tokens: int) -> dict[str, int]:
        """The usage object; tokens."""
        total = self.prompt_tokens + completion_tokens
        return {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": total,
            "completion_tokens": completion_tokens,
        }

    def role_chunk(self) -> bytes:
        """The first event of a chat stream: a role, no token."""
        delta = {"role": "assistant", "content": ""}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        return self._event([choice], 0, {"prompt_token_ids": None, "prompt_text": None})

    def delta_chunk(self, delta: Delta) -> bytes:
        """An event with tokens; the last one carries the finish reason."""
        choice: dict[str, Any] = {"index": 0}
        choice |= {"delta": {"content": delta.text}} if self.chat else {"text": delta.text}
        choice |= {"logprobs": None, "finish_reason": delta.finish_reason}
        if delta.finish_reason or not self.chat:
            choice["stop_reason"] = None
        choice["token_ids"] = None
        return self._event([choice], delta.generated, {})

    def usage_chunk(self, completion_tokens: int) -> bytes:
        """The closing usage event, without choices."""
        body = self._head("chunk") | {"choices": [], "usage": self.usage(completion_tokens)}
        return event(body | {"system_fingerprint": _FINGERPRINT})

    def whole(self, delta: Delta) -> dict[str, Any]:
        """The answer to a request without ``stream``."""
        ending = {
            "logprobs": None,
            "finish_reason": delta.finish_reason,
            "stop_reason": None,
            "token_ids": None,
        }
        content = {"message": _message(delta.text)} if self.chat else {"text": delta.text}
        usage: dict[str, Any] = self.usage(delta.generated)
        return self._head("whole") | {
            "choices": [{"index": 0} | content | ending],
            "service_tier": None,
            "system_fingerprint": _FINGERPRINT,
            "usage": usage | {"prompt_tokens_details": None},
            "kv_transfer_params": None,
        }

    def _head(self, kind: str) -> dict[str, Any]:
        name = "text_completion"
        if self.chat:
            name = "chat.completion.chunk" if kind == "chunk" else "chat.completion"
        return {"id": self.id, "object": name, "created": self.created, "model": self.model}

    def _event(self, choices: list[dict[str, Any]], generated: int, tail: dict[str, Any]) -> bytes:
        body = self._head("chunk") | {"choices": choices}
        if self.continuous_usage:
            body["usage"] = self.usage(generated)
        return event(body | tail)


def event(body: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(body) + b"\n\n"


def error_body(message: str, kind: str, code: int, param: str | None = None) -> dict[str, Any]:
    """vLLM's error object."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def engine_dead_event() -> bytes:
    """What ends a stream when the engine dies; spaced as vLLM's json.dumps does it."""
    body = error_body(ENGINE_DEAD, "InternalServerError", 500)
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def models_body(names: tuple[str, ...], root: str, max_model_len: int, created: int) -> dict[str, Any]:
    """/v1/models."""
    cards: list[dict[str, Any]] = [
        {
            "id": name,
            "object": "model",
            "created": created,
            "owned_by": "vllm",
            "root": root,
            "parent": None,
            "max_model_len": max_model_len,
            "permission": [],
        }
        for name in names
    ]
    return {"object": "list", "data": cards}


def _message(text: str) -> dict[str, Any]:
    empty = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
    return {"role": "assistant", "content": text} | empty

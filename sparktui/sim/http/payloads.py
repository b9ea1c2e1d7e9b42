"""Bodies of vLLM's OpenAI answers, field by field: 0.27.1 and 0.32.0 as recorded, others as the nearer one.

By release: ``system_fingerprint`` is null before 0.21 (the release whose ``--fingerprint-mode`` names it);
``completion_tokens_details`` came with 0.32; what a reasoning parser sets apart is ``reasoning``, before 0.16
(vllm pull requests 27752 and 33402) ``reasoning_content`` with the same text beside it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from sparktui.sim.release import Release
from sparktui.sim.service import Delta

DONE = b"data: [DONE]\n\n"
ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
_CONFIGURATION = secrets.token_hex(4)  # vLLM hashes its configuration
_FINGERPRINT_SINCE = "0.21.0"
_USAGE_DETAILS_SINCE = "0.32.0"
_ONE_REASONING_FIELD_SINCE = "0.16.0"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer in the making. ``chat``: /v1/chat/completions, else /v1/completions."""

    chat: bool
    model: str
    prompt_tokens: tuple[int, ...]  # of each prompt
    include_usage: bool = False
    continuous_usage: bool = False
    release: Release = field(default_factory=Release)
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def id(self) -> str:
        return f"{'chatcmpl' if self.chat else 'cmpl'}-{self.key}"

    def named(self, key: str) -> Answer:
        """The same with the client's own X-Request-Id."""
        return replace(self, key=key)

    @property
    def fingerprint(self) -> str | None:
        """``system_fingerprint``; None before releases had one."""
        version = self.release.version
        return f"vllm-{version}-{_CONFIGURATION}" if self.release.since(_FINGERPRINT_SINCE) else None

    @property
    def details(self) -> bool:
        """Whether usage objects carry ``completion_tokens_details``."""
        return self.release.since(_USAGE_DETAILS_SINCE)

    @property
    def reasoning_fields(self) -> tuple[str, ...]:
        """Names under which reasoning is told."""
        one = self.release.since(_ONE_REASONING_FIELD_SINCE)
        return ("reasoning",) if one else ("reasoning", "reasoning_content")

    def usage(self, completion_tokens: int) -> dict[str, int]:
        """The usage object of the whole answer; tokens."""
        prompt = sum(self.prompt_tokens)
        total = prompt + completion_tokens
        return {"prompt_tokens": prompt, "total_tokens": total, "completion_tokens": completion_tokens}

    def head(self, kind: str) -> dict[str, Any]:
        """The fields every body starts with. ``kind``: ``chunk`` or ``whole``."""
        name = "text_completion"
        if self.chat:
            name = "chat.completion.chunk" if kind == "chunk" else "chat.completion"
        return {"id": self.id, "object": name, "created": self.created, "model": self.model}

    def usage_chunk(self, completion_tokens: int, metrics: dict[str, Any] | None = None) -> bytes:
        """The closing usage event, without choices; fields that are null are left out here."""
        body = self.head("chunk") | {"choices": [], "usage": self.usage(completion_tokens)}
        if self.fingerprint is not None:
            body["system_fingerprint"] = self.fingerprint
        if metrics is not None:
            body["metrics"] = metrics
        return event(body)

    def whole(self, deltas: Sequence[Delta], metrics: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a request without ``stream``; a delta for each choice. ``metrics``: of itself."""
        usage: dict[str, Any] = self.usage(sum(delta.generated for delta in deltas))
        usage["prompt_tokens_details"] = None
        if self.details:
            usage["completion_tokens_details"] = None
        body = self.head("whole") | {
            "choices": [self._choice(index, delta) for index, delta in enumerate(deltas)],
            "service_tier": None,
            "system_fingerprint": self.fingerprint,
            "usage": usage,
        }
        if self.chat:
            body |= dict.fromkeys(("prompt_logprobs", "prompt_token_ids", "prompt_text"))
        return body | dict.fromkeys(("kv_transfer_params", "ec_transfer_params")) | {"metrics": metrics}

    def _choice(self, index: int, delta: Delta) -> dict[str, Any]:
        said: dict[str, Any] = {"message": self._message(delta)} if self.chat else {"text": delta.content}
        ending = {"finish_reason": delta.finish_reason, "stop_reason": delta.stop_reason, "token_ids": None}
        more = {} if self.chat else dict.fromkeys(("prompt_logprobs", "prompt_token_ids"))
        return {"index": index} | said | {"logprobs": None} | ending | more | {"routed_experts": None}

    def _message(self, delta: Delta) -> dict[str, Any]:
        empty = dict.fromkeys(("refusal", "annotations", "audio", "function_call"))
        content = None if delta.reasoning and not delta.content else delta.content
        reasoning = dict.fromkeys(self.reasoning_fields, delta.reasoning or None)
        return {"role": "assistant", "content": content} | empty | reasoning


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
            "permission": [_permission(created)],
        }
        for name in names
    ]
    return {"object": "list", "data": cards}


def _permission(created: int) -> dict[str, Any]:
    allowed = {
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
    }
    head = {"id": f"modelperm-{secrets.token_hex(8)}", "object": "model_permission", "created": created}
    return head | allowed | {"organization": "*", "group": None, "is_blocking": False}

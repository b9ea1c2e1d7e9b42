"""Requests of the contract, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.contract.server import Server

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
USAGE = {"include_usage": True}
CONTINUOUS = {"include_usage": True, "continuous_usage_stats": True}

Event = dict[str, Any]
Prompt = str | list[str] | list[int] | None


def chat(prompt: str = "Tell me about steps.", **changes: Any) -> dict[str, Any]:
    """A greedy chat request of exactly 24 tokens, unless changed; None takes a field away."""
    body = {"model": "tiny", "messages": [{"role": "user", "content": prompt}]}
    return _changed(body | {"max_tokens": 24, "ignore_eos": True, "temperature": 0}, changes)


def completion(
    prompt: str | list[str] | list[int] | None = "Once upon a time", **changes: Any
) -> dict[str, Any]:
    """The same for /v1/completions."""
    body = {"model": "tiny", "prompt": prompt, "max_tokens": 24, "ignore_eos": True, "temperature": 0}
    return _changed(body, changes)


def _changed(body: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (body | changes).items() if value is not None}


@contextmanager
def client(server: Server, *, with_key: bool = True) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {server.key}"} if server.key and with_key else {}
    limit = server.limits.answer
    with httpx.Client(base_url=server.url, headers=headers, timeout=limit, trust_env=False) as made:
        yield made


def get(server: Server, path: str) -> httpx.Response:
    with client(server) as made:
        return made.get(path)


def post(server: Server, path: str, body: Any) -> httpx.Response:
    with client(server) as made:
        return made.post(path, json=body)


def stream(
    server: Server, path: str, body: dict[str, Any], options: dict[str, bool] | None = None
) -> list[Event]:
    """The events of a whole stream, which must be a good one and end with [DONE]."""
    answer = post(server, path, streaming(body, options))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    return events(answer.text)


def streaming(body: dict[str, Any], options: dict[str, bool] | None = None) -> dict[str, Any]:
    return body | {"stream": True} | ({"stream_options": options} if options is not None else {})


def events(text: str) -> list[Event]:
    """The JSON events of a stream: ``data: …`` and an empty line each, [DONE] the last."""
    parts = text.split("\n\n")
    assert parts.pop() == ""
    assert all(part.startswith("data: ") for part in parts)
    assert parts.pop() == "data: [DONE]"
    return [json.loads(part.removeprefix("data: ")) for part in parts]


def usage_of(body: dict[str, Any]) -> tuple[int, int]:
    """Prompt and completion tokens; their total must be right."""
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    return usage["prompt_tokens"], usage["completion_tokens"]

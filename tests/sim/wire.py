"""Asking a stand-in inside the test and reading what comes, event by event."""

from __future__ import annotations

import json
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.sim.inside import Inside

USAGE = {"include_usage": True, "continuous_usage_stats": True}
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def events(raw: str) -> list[dict[str, Any]]:
    """The JSON events of a stream, which must end with [DONE]."""
    parts = [part.removeprefix("data: ") for part in raw.split("\n\n") if part]
    assert parts[-1] == "[DONE]"
    return [json.loads(part) for part in parts[:-1]]


async def stream(server: Inside, body: dict[str, Any], path: str = CHAT) -> str:
    asked = {"stream": True, "stream_options": USAGE} | body
    async with server.session.post(server.url + path, json=asked) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        return await response.text()


async def counters(server: Inside) -> dict[str, float]:
    """Sums over labels, by sample name without vllm:."""
    _, text = await server.call("GET", "/metrics")
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if "le" not in sample.labels:
                name = sample.name.removeprefix("vllm:")
                sums[name] = sums.get(name, 0.0) + sample.value
    return sums

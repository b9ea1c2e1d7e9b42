"""Streams written as a timetable: what arrives when, without a server and without a clock."""

from __future__ import annotations

import json
from typing import Any

from sparktui.load.counts import Counts
from sparktui.load.meter import StreamMeter
from sparktui.schema.gaps import bucket

Arrival = tuple[float, bytes]


def chunk(
    t: float, text: str = "", tokens: int | None = None, finish: str | None = None, field: str = "content"
) -> Arrival:
    """A chunk with a choice; ``tokens``: the completion's count so far, absent when the server tells none."""
    value: dict[str, Any] = {"choices": [{"index": 0, "delta": {field: text}, "finish_reason": finish}]}
    if tokens is not None:
        value["usage"] = used(tokens)
    return t, json.dumps(value).encode()


def usage_only(t: float, tokens: int, **more: object) -> Arrival:
    """The last chunk of ``include_usage``: no choice."""
    return t, json.dumps({"choices": [], "usage": used(tokens), **more}).encode()


def used(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 11, "total_tokens": 11 + tokens, "completion_tokens": tokens}


def play(*arrivals: Arrival, start: float = 0.0, counts: Counts | None = None) -> StreamMeter:
    """A meter that has seen these."""
    meter = StreamMeter(0, start, Counts() if counts is None else counts)
    for t, payload in arrivals:
        meter.event(payload, t)
    return meter


def gap_counts(*gaps_ms: float) -> dict[str, int]:
    """Those gaps, as a line of totals has them."""
    keys = [str(bucket(ms)) for ms in gaps_ms]
    return {key: keys.count(key) for key in keys}

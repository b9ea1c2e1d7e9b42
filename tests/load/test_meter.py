"""Counting one stream: tokens from usage, never from chunks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparktui.load.counts import Counts
from sparktui.load.errors import StreamError
from sparktui.load.meter import StreamMeter
from sparktui.load.sse import DONE, EventSplitter
from sparktui.schema.messages import LoadRow, from_line, to_line
from tests.load.backend import event, recorded

START = 100.0
CRASH = (  # recorded: the engine of 0.32.0 was killed in the middle of a stream
    b'{"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root cause.", '
    b'"type": "InternalServerError", "param": null, "code": 500}}'
)


def metered(body: bytes, *, first: float = START + 1.0, gap: float = 0.25) -> StreamMeter:
    """The events of ``body``, arriving ``gap`` seconds apart from ``first`` on."""
    meter = StreamMeter(7, START, Counts())
    for number, payload in enumerate(EventSplitter().feed(body)):
        if payload != DONE:
            meter.event(payload, first + number * gap)
    return meter


@pytest.mark.parametrize(
    ("name", "prompt", "tokens", "chunks", "last"),
    [
        ("0.32.0-cpu/on_chat_stream_t0.txt", 37, 64, 18, 18),
        ("0.32.0-cpu/off_chat_stream.txt", 37, 64, 25, 25),
        ("0.27.1-cpu/sse_draft.txt", 19, 200, 75, 75),
    ],
)
def test_a_recorded_stream(name: str, prompt: int, tokens: int, chunks: int, last: int) -> None:
    """``last``: the number, from 0, of the first event that has all tokens."""
    meter = metered(recorded(name))
    row = meter.row(START + 60.0)
    assert row.ok
    assert (row.index, row.start) == (7, START)
    assert (row.prompt_tokens, row.completion_tokens) == (prompt, tokens)
    assert row.decode_tokens == tokens - 1  # each began with a chunk of one token
    assert row.chunks == chunks
    assert row.finish_reason == "length"
    assert row.ttft_ms == pytest.approx(1250.0)  # the role chunk is no text
    assert row.ttfc_ms == row.ttft_ms
    assert row.decode_s == pytest.approx(0.25 * (last - 1))
    assert row.total_ms == pytest.approx(60000.0)
    assert meter.counts.output_tokens == tokens
    assert meter.counts.decode_tokens == tokens - 1
    assert meter.counts.stream_seconds == pytest.approx(0.25 * (last - 1))


def test_tokens_of_the_first_chunk_are_no_decode_tokens() -> None:
    row = metered(event(4, content="four") + event(7, content="abc") + event(9, content="de")).row(200.0)
    assert (row.completion_tokens, row.decode_tokens, row.chunks) == (9, 5, 3)
    assert row.decode_s == pytest.approx(0.5)


def test_text_that_is_held_back_makes_a_token_chunk_all_the_same() -> None:
    meter = metered(event(1, content="a") + event(5) + event(6, content="b") + event(6, content=""))
    row = meter.row(200.0)
    assert (row.completion_tokens, row.decode_tokens, row.chunks) == (6, 5, 3)
    assert row.decode_s == pytest.approx(0.5)


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_the_first_token_and_content_comes_later(field: str) -> None:
    body = event(0, role="assistant", content="") + event(1, **{field: "Hm"}) + event(3, **{field: "so"})
    row = metered(body + event(4, content="Yes")).row(200.0)
    assert row.ttft_ms == pytest.approx(1250.0)
    assert row.ttfc_ms == pytest.approx(1750.0)
    assert row.chunks == 3


def test_a_tool_call_is_a_first_token_without_content() -> None:
    row = metered(event(2, tool_calls=[{"index": 0, "function": {"name": "f"}}])).row(200.0)
    assert row.ttft_ms == pytest.approx(1000.0)
    assert row.ttfc_ms is None


def test_without_usage_tokens_are_not_known() -> None:
    meter = metered(event(content="a") + event(content="b"))
    row = meter.row(200.0)
    assert (row.completion_tokens, row.decode_tokens, row.decode_s) == (None, None, None)
    assert row.prompt_tokens is None
    assert row.chunks == 2
    assert row.ttft_ms == pytest.approx(1000.0)
    assert meter.counts.output_tokens == 0


def test_a_usage_of_null_is_no_usage() -> None:
    assert (
        metered(b'data: {"choices":[{"delta":{"content":"a"}}],"usage":null}\n').row(9).completion_tokens
        is None
    )


def test_cached_tokens_come_from_the_details() -> None:
    usage = {"completion_tokens": 1, "prompt_tokens": 32, "prompt_tokens_details": {"cached_tokens": 16}}
    row = metered(b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n").row(200.0)
    assert row.cached_tokens == 16
    assert metered(event(3, content="a")).row(200.0).cached_tokens is None


def test_a_count_that_goes_back_is_not_believed() -> None:
    meter = metered(event(5, content="a") + event(3, content="b") + event(6, content="c"))
    assert meter.row(200.0).completion_tokens == 6
    assert meter.counts.output_tokens == 6


def test_an_error_in_the_middle_is_said_in_the_servers_words() -> None:
    meter = metered(event(1, content="a"))
    with pytest.raises(StreamError) as caught:
        meter.event(CRASH, 200.0)
    assert str(caught.value) == "EngineCore encountered an issue. See stack trace (above) for the root cause."


@pytest.mark.parametrize(
    "payload",
    [b"", b"nonsense", b"[]", b"3", b"null", b'{"choices": 5}', b'{"choices": ["x"]}',
     b'{"choices": [{"delta": 5}]}', b'{"usage": 7}', b'{"usage": {"completion_tokens": "many"}}',
     b'{"usage": {"completion_tokens": [1]}}', b'{"usage": {"completion_tokens": 7.5}}',
     b'{"usage": {"completion_tokens": 99999999999999999}}', b'{"usage": [7]}', b'{"choices": [null]}'],
)  # fmt: skip
def test_what_is_no_event_of_a_completion_is_an_error(payload: bytes) -> None:
    meter = metered(event(2, content="a"))
    with pytest.raises(StreamError, match="not an event of a completion"):
        meter.event(payload, 200.0)
    row = meter.row(201.0, error="x")
    assert (row.ok, row.error, row.completion_tokens) == (False, "x", 2)


def test_an_event_without_choices_does_nothing() -> None:
    meter = metered(b'data: {"choices":[]}\n\ndata: {}\n\n')
    assert meter.row(200.0).chunks == 0


def test_every_end_is_counted_once() -> None:
    counts = Counts()
    for kind in ({}, {"error": "broken"}, {"cancelled": True}, {}):
        options: dict[str, Any] = dict(kind)
        StreamMeter(0, START, counts).row(101.0, **options)
    assert (counts.done, counts.ok, counts.errors, counts.cancelled) == (4, 2, 1, 1)
    assert counts.last_error == "broken"


@pytest.mark.parametrize(
    "usage",
    [
        {"completion_tokens": 2, "prompt_tokens": "eleven", "prompt_tokens_details": [1]},
        {"completion_tokens": 2, "prompt_tokens": True, "prompt_tokens_details": {"cached_tokens": -1}},
        {"completion_tokens": 2, "prompt_tokens": 1 << 70, "prompt_tokens_details": {"cached_tokens": 0.5}},
    ],
    ids=["text", "bool", "huge"],
)
def test_a_row_of_a_nonsensical_usage_can_still_be_read(usage: dict[str, Any]) -> None:
    choice = {"delta": {"content": "a"}, "finish_reason": 7}
    meter = metered(b"data: " + json.dumps({"choices": [choice], "usage": usage}).encode() + b"\n")
    row = meter.row(200.0)
    assert from_line(to_line(LoadRow(row))).row == row
    assert (row.completion_tokens, row.prompt_tokens, row.cached_tokens) == (2, None, None)
    assert row.finish_reason == "7"


def test_what_a_server_says_can_do_nothing_to_a_terminal() -> None:
    counts = Counts()
    row = StreamMeter(0, START, counts).row(101.0, error="\x1b[2Jgone\x07")
    assert row.error == counts.last_error == "[2Jgone"

"""Bytes to payloads: any chunking gives the same."""

from __future__ import annotations

from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparktui.load.sse import DONE, EventSplitter
from tests.load.backend import recorded

FILES = ("0.32.0-cpu/on_chat_stream_t0.txt", "0.32.0-cpu/off_chat_stream.txt", "0.27.1-cpu/sse_draft.txt")
EVENTS = dict(zip(FILES, (20, 27, 77), strict=True))  # grep -c 'data: {'
BODY = recorded(FILES[0])


def payloads(data: bytes, cuts: list[int]) -> list[bytes]:
    splitter = EventSplitter()
    edges = [0, *sorted(cuts), len(data)]
    return [p for a, b in pairwise(edges) for p in splitter.feed(data[a:b])]


@pytest.mark.parametrize("name", FILES)
def test_a_recorded_stream_splits_into_its_events(name: str) -> None:
    found = payloads(recorded(name), [])
    assert len(found) == EVENTS[name] + 1
    assert found[-1] == DONE
    assert all(orjson.loads(payload)["object"] == "chat.completion.chunk" for payload in found[:-1])


@given(st.lists(st.integers(0, len(BODY)), max_size=40))
def test_any_chunking_of_a_recorded_stream_gives_the_same_payloads(cuts: list[int]) -> None:
    assert payloads(BODY, cuts) == payloads(BODY, [])


def test_byte_by_byte_gives_the_same_payloads() -> None:
    assert payloads(BODY, list(range(len(BODY)))) == payloads(BODY, [])


@given(st.lists(st.sampled_from([b"data: {}", b"data:x", b"\n", b"\r\n", b": keep-alive", b"d", b"[DONE]"])))
def test_any_chunking_of_any_bytes_gives_the_same_payloads(parts: list[bytes]) -> None:
    splitter = EventSplitter()
    assert [p for part in parts for p in splitter.feed(part)] == payloads(b"".join(parts), [])


def test_line_ends_of_either_kind() -> None:
    assert payloads(BODY.replace(b"\n", b"\r\n"), []) == payloads(BODY, [])


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b": ping\n\nevent: x\nid: 3\nretry: 5\n\n", []),
        (b"data: a\n\ndata:b\n\ndata:  c \n\n", [b"a", b"b", b"c"]),
        (b"data: a", []),
        (b"data\n\n", []),
        (b"data: \xc3\xa9\n\n", [b"\xc3\xa9"]),
    ],
)
def test_only_finished_data_lines_are_payloads(data: bytes, found: list[bytes]) -> None:
    assert payloads(data, []) == found


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"data: a\n\ndata: [DONE]", [DONE]),
        (b"data: [DONE]\r", [DONE]),
        (b"data: a\n\n", []),
        (b": ping", []),
        (b"", []),
    ],
)
def test_at_the_end_the_rest_is_a_line(data: bytes, found: list[bytes]) -> None:
    splitter = EventSplitter()
    splitter.feed(data)
    assert splitter.end() == found
    assert splitter.end() == []

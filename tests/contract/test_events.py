"""The events of a stream, field by field."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.contract.server import Server
from tests.contract.wire import (
    CHAT,
    COMPLETIONS,
    CONTINUOUS,
    USAGE,
    Event,
    chat,
    completion,
    post,
    stream,
    usage_of,
)

HEAD = {"id", "object", "created", "model", "choices"}
COUNTS = {"prompt_tokens", "total_tokens", "completion_tokens"}
# the usage of a chat's content events; that of the closing event and of completions has the three counts
CHAT_COUNTS = {"0.27.1": COUNTS, "0.32.0": COUNTS | {"completion_tokens_details"}}
CHOICE = {"index", "text", "logprobs", "finish_reason", "stop_reason", "prompt_token_ids", "token_ids"}
OPTIONS: list[tuple[dict[str, bool] | None, bool, bool]] = [
    (None, False, False),
    ({"include_usage": False}, False, False),
    ({"continuous_usage_stats": True}, False, False),  # without include_usage it does nothing
    (USAGE, True, False),
    (CONTINUOUS, True, True),
]
NAMES = ["nothing", "no-usage", "continuous-alone", "usage", "continuous"]


@pytest.mark.parametrize(("options", "closing", "continuous"), OPTIONS, ids=NAMES)
def test_the_events_of_a_chat(
    off: Server, release: str, options: dict[str, bool] | None, closing: bool, continuous: bool
) -> None:
    got = stream(off, CHAT, chat(), options)
    role, content, last = split(got, closing, chat=True)
    each = {"usage"} if continuous else set()
    assert set(role) == HEAD | each | {"prompt_token_ids", "prompt_text"}
    assert role["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    for event in content:
        (choice,) = event["choices"]
        is_last = event is content[-1]
        ending = {"stop_reason"} if is_last else set()
        assert set(choice) == {"index", "delta", "logprobs", "finish_reason", "token_ids"} | ending
        assert set(choice["delta"]) == {"content"}
        assert choice["finish_reason"] == ("length" if is_last else None)
        marked = is_last and not closing
        assert set(event) == HEAD | each | ({"system_fingerprint"} if marked else set())
    if continuous:
        assert all(set(event["usage"]) == CHAT_COUNTS[release] for event in [role, *content])
        assert usage_of(role)[1] == 0
    check_heads(got, "chat.completion.chunk", "chatcmpl-")
    check_closing(last, release)


@pytest.mark.parametrize(("options", "closing", "continuous"), OPTIONS, ids=NAMES)
def test_the_events_of_a_completion(
    off: Server, release: str, options: dict[str, bool] | None, closing: bool, continuous: bool
) -> None:
    got = stream(off, COMPLETIONS, completion(), options)
    _, content, last = split(got, closing, chat=False)
    for event in content:
        (choice,) = event["choices"]
        is_last = event is content[-1]
        expected = {
            "index",
            "text",
            "logprobs",
            "finish_reason",
            "stop_reason",
            "prompt_token_ids",
            "token_ids",
        }
        assert set(choice) == expected
        assert choice["finish_reason"] == ("length" if is_last else None)
        marked = {"system_fingerprint"} if is_last and not closing else set()
        assert set(event) == HEAD | ({"usage"} if continuous else set()) | marked
        if continuous:
            assert set(event["usage"]) == COUNTS
    check_heads(got, "text_completion", "cmpl-")
    check_closing(last, release)


@pytest.mark.parametrize(
    ("path", "body"), [(CHAT, chat), (COMPLETIONS, completion)], ids=["chat", "completion"]
)
def test_continuous_usage_counts_every_token(off: Server, path: str, body: Any) -> None:
    got = stream(off, path, body(max_tokens=40), CONTINUOUS)
    prompts, counts = zip(*(usage_of(event) for event in got), strict=True)
    assert len(set(prompts)) == 1
    assert counts[-2:] == (40, 40)  # the last content event, then the closing one
    content = counts[1:-1] if path == CHAT else counts[:-1]
    assert all(after > before for before, after in itertools.pairwise(content))
    assert content[0] == 1


def test_a_stream_says_what_the_whole_answer_says(off: Server) -> None:
    whole = post(off, CHAT, chat()).json()["choices"][0]["message"]["content"]
    streamed = stream(off, CHAT, chat())
    assert "".join(event["choices"][0]["delta"]["content"] for event in streamed) == whole


@pytest.mark.parametrize("tokens", [1, 2, 57])
def test_ignore_eos_gives_exactly_max_tokens(spec: Server, tokens: int) -> None:
    got = stream(spec, CHAT, chat(max_tokens=tokens), USAGE)
    assert usage_of(got[-1])[1] == tokens
    assert got[-2]["choices"][0]["finish_reason"] == "length"


def test_speculation_packs_several_tokens_into_an_event(spec: Server) -> None:
    got = stream(spec, CHAT, chat(max_tokens=120), CONTINUOUS)
    counts = [usage_of(event)[1] for event in got[:-1]]
    gains = [after - before for before, after in itertools.pairwise(counts)]
    assert gains[0] == 1  # the first token comes from the prompt's own step
    assert max(gains) > 1
    assert sum(gains) == 120


def split(got: list[Event], closing: bool, *, chat: bool) -> tuple[Event, list[Event], Event | None]:
    """The role event (a chat's first), the events with tokens, the closing one."""
    content = got[int(chat) : len(got) - int(closing)]
    assert content
    return (got[0] if chat else {}), content, (got[-1] if closing else None)


def check_heads(got: list[Event], kind: str, prefix: str) -> None:
    """One id, one moment, one model in all of them."""
    assert len({(event["id"], event["created"], event["model"]) for event in got}) == 1
    assert got[0]["model"] == "tiny"
    assert got[0]["id"].startswith(prefix)
    assert {event["object"] for event in got} == {kind}


def check_closing(event: Event | None, release: str) -> None:
    if event is not None:
        assert set(event) == HEAD | {"usage", "system_fingerprint"}
        assert event["choices"] == []
        assert set(event["usage"]) == COUNTS
        assert usage_of(event)[1] == 24
        assert event["system_fingerprint"].startswith(f"vllm-{release}-")

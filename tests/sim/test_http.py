"""The server's HTTP answers, read from the wire."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from sparktui.sim.model.truth import Truth
from tests.sim.inside import SPEC, chat, inside
from tests.sim.wire import CHAT, COMPLETIONS, counters, events, stream

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDED = {
    "0.27.1": FIXTURES / "vllm-0.27.1-cpu" / "sse_off.txt",
    "0.32.0": FIXTURES / "sse" / "0.32.0-cpu" / "off_chat_stream.txt",
}


def recorded(release: str) -> list[dict[str, Any]]:
    text = RECORDED[release].read_text(encoding="utf-8")
    return events(text[text.index("data: ") :].rstrip() + "\n\n")


def shape(value: Any) -> Any:
    """Keys in their order and types, no values."""
    if isinstance(value, dict):
        return [(key, shape(item)) for key, item in value.items()]
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


@pytest.mark.parametrize("release", ["0.27.1", "0.32.0"])
async def test_a_stream_has_the_recorded_shape(release: str) -> None:
    theirs = recorded(release)
    async with inside("--sim-vllm", release) as server:
        ours = events(await stream(server, chat()))
    for index in (0, 1, -2, -1):
        assert shape(ours[index]) == shape(theirs[index])
    assert ours[0]["usage"]["completion_tokens"] == 0
    assert ours[-2]["choices"][0]["finish_reason"] == "length"
    assert ours[-1]["choices"] == []
    assert ours[-1]["system_fingerprint"].startswith(f"vllm-{release}-")


@pytest.mark.parametrize(("release", "marked"), [("0.19.1", False), ("0.27.1", True)])
async def test_fingerprints_begin_with_0_21(release: str, marked: bool) -> None:
    async with inside("--sim-vllm", release) as server:
        body = chat(max_tokens=2, stream_options=None)
        last = events(await stream(server, body))[-1]
        _, whole = await server.call("POST", CHAT, json=chat(max_tokens=2))
        version = await server.call("GET", "/version")
    assert ("system_fingerprint" in last) is marked
    assert (whole["system_fingerprint"] is not None) is marked
    assert version == (200, {"version": release})


async def test_usage_increments_are_the_tokens_and_so_are_the_counters() -> None:
    async with inside(*SPEC) as server:
        idle = await counters(server)
        assert idle["spec_decode_num_drafts_total"] == 0
        chunks = events(await stream(server, chat(max_tokens=64)))
        after = await counters(server)
    usage = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    gains = [after - before for before, after in itertools.pairwise(usage)]
    assert sum(gains) == usage[-1] == 64
    assert gains[0] == 1
    assert max(gains) in (3, 4)
    words = "".join(c["choices"][0]["delta"]["content"] for c in chunks if c["choices"]).split()
    assert len(words) == 64
    assert after["generation_tokens_total"] == 64
    assert after["prompt_tokens_total"] == chunks[-1]["usage"]["prompt_tokens"]
    assert after["request_success_total"] == 1
    steps = after["inter_token_latency_seconds_count"]
    assert steps == after["spec_decode_num_drafts_total"]
    assert after["spec_decode_num_draft_tokens_total"] == 3 * steps
    accepted = after["spec_decode_num_accepted_tokens_total"]
    assert accepted == after["spec_decode_num_accepted_tokens_per_pos_total"]
    assert 63 <= steps + accepted <= 63 + 3  # the last step may be cut
    assert after["num_requests_running"] == 0


async def test_the_speed_on_the_wire() -> None:
    async with inside(truth=Truth()) as server:
        start = time.monotonic()
        await stream(server, chat("x", max_tokens=156))
    assert 0.99 < (time.monotonic() - start) / (156 / 77.5) < 1.5


async def test_answers_without_stream_and_the_other_endpoint() -> None:
    async with inside() as server:
        status, answer = await server.call("POST", CHAT, json=chat(max_tokens=5))
        again = (await server.call("POST", CHAT, json=chat(max_tokens=5)))[1]
        body = {"prompt": "Once upon a time", "max_tokens": 4, "ignore_eos": True}
        chunks = events(await stream(server, body, COMPLETIONS))
    assert (status, answer["object"], answer["usage"]["completion_tokens"]) == (200, "chat.completion", 5)
    assert len(answer["choices"][0]["message"]["content"].split()) == 5
    assert again["choices"][0]["message"] == answer["choices"][0]["message"]
    assert [c["usage"]["completion_tokens"] for c in chunks][-2:] == [4, 4]
    assert all(c["object"] == "text_completion" for c in chunks)
    assert "".join(c["choices"][0]["text"] for c in chunks[:-1]).count(" ") == 4


async def test_several_choices_each_with_its_own_end() -> None:
    async with inside() as server:
        _, whole = await server.call("POST", CHAT, json=chat(max_tokens=3, n=2))
        chunks = events(await stream(server, chat(max_tokens=3, n=2)))
        body = {"prompt": ["one", "two"], "max_tokens": 2, "n": 2}
        _, four = await server.call("POST", COMPLETIONS, json=body)
    texts = [choice["message"]["content"] for choice in whole["choices"]]
    assert texts[0] != texts[1]
    assert whole["usage"]["completion_tokens"] == chunks[-1]["usage"]["completion_tokens"] == 6
    streamed = ["", ""]
    for choice in (chunk["choices"][0] for chunk in chunks[:-1]):
        streamed[choice["index"]] += choice["delta"]["content"]
    assert streamed == texts
    assert [choice["index"] for choice in four["choices"]] == [0, 1, 2, 3]


@pytest.mark.parametrize("shown", [False, True])
async def test_a_stop_string_ends_the_answer_before_or_after_it(shown: bool) -> None:
    async with inside() as server:
        _, free = await server.call("POST", CHAT, json=chat())
        text: str = free["choices"][0]["message"]["content"]
        words = text.split(" ")
        stop = f"{words[6][1:]} {words[7][:1]}"  # from within a token into the next
        body = chat(stop=[stop, "\0"], include_stop_str_in_output=shown)
        _, whole = await server.call("POST", CHAT, json=body)
        chunks = events(await stream(server, body))
    expected = text[: text.index(stop) + (len(stop) if shown else 0)]
    assert whole["choices"][0]["message"]["content"] == expected
    assert (whole["choices"][0]["finish_reason"], whole["choices"][0]["stop_reason"]) == ("stop", stop)
    assert "".join(c["choices"][0]["delta"]["content"] for c in chunks[:-1]) == expected
    assert whole["usage"]["completion_tokens"] == len(expected.split()) + (expected.count(" ") != 7)


@pytest.mark.parametrize(
    ("release", "names"), [("0.27.1", {"reasoning"}), ("0.13.0", {"reasoning", "reasoning_content"})]
)
async def test_a_reasoning_parser_sets_the_first_part_apart(release: str, names: set[str]) -> None:
    async with inside("--reasoning-parser", "qwen3", "--sim-vllm", release) as server:
        chunks = events(await stream(server, chat(max_tokens=200)))
        _, whole = await server.call("POST", CHAT, json=chat(max_tokens=200))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[1:-1]]
    first_content = next(i for i, delta in enumerate(deltas) if "content" in delta)
    assert 90 < first_content < 165
    assert all(set(delta) == names for delta in deltas[:first_content])
    assert all(set(delta) == {"content"} for delta in deltas[first_content:])
    message = whole["choices"][0]["message"]
    assert {name for name in message if "reasoning" in name} == names
    assert message["content"] == "".join(delta["content"] for delta in deltas[first_content:])
    assert message["reasoning"] == "".join(delta["reasoning"] for delta in deltas[:first_content])
    assert whole["usage"]["completion_tokens"] == chunks[-1]["usage"]["completion_tokens"] == 200
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks[:-1]]
    assert sorted(b - a for a, b in itertools.pairwise(counts))[-2:] == [
        1,
        2,
    ]  # the closing marker has no text and no event


async def test_thinking_can_be_switched_off() -> None:
    async with inside("--reasoning-parser", "qwen3") as server:
        body = chat(max_tokens=3, chat_template_kwargs={"enable_thinking": False})
        _, answer = await server.call("POST", CHAT, json=body)
        _, thought = await server.call("POST", CHAT, json=chat(max_tokens=3))
    assert answer["choices"][0]["message"]["reasoning"] is None
    assert answer["choices"][0]["message"]["content"]
    assert thought["choices"][0]["message"]["content"] is None


async def test_min_tokens_and_natural_ends() -> None:
    async with inside() as server:
        body = chat(max_tokens=4000, min_tokens=900, ignore_eos=False)
        _, answer = await server.call("POST", CHAT, json=body)
    (choice,) = answer["choices"]
    assert (choice["finish_reason"], answer["usage"]["completion_tokens"]) == ("stop", 901)
    assert len(choice["message"]["content"].split()) == 900  # the end-of-sequence token has no text

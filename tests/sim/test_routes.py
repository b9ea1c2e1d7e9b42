"""Routes, refusals, keys, caches and clients that leave, read from the wire."""

from __future__ import annotations

import asyncio
import json
import random
import re
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sparktui.sim.model.tokens import Vocabulary
from tests.sim.inside import SPEC, Inside, chat, inside
from tests.sim.wire import CHAT, COMPLETIONS, USAGE, counters, events, stream


async def test_small_routes() -> None:
    async with inside("--served-model-name", "short", "alias", "--max-model-len", "4096") as server:
        assert await server.call("GET", "/health") == (200, "")
        assert await server.call("GET", "/ping") == await server.call("POST", "/ping") == (200, "")
        assert await server.call("GET", "/version") == (200, {"version": "0.27.1"})
        assert await server.call("GET", "/load") == (200, {"server_load": 0})
        _, models = await server.call("GET", "/v1/models")
        assert await server.call("GET", "/nowhere") == (404, {"detail": "Not Found"})
        assert await server.call("POST", "/health") == (405, {"detail": "Method Not Allowed"})
        for path in ("/server_info", "/sim/nothing"):
            assert (await server.call("GET", path))[0] == 404
    assert [(m["id"], m["root"], m["max_model_len"]) for m in models["data"]] == [
        ("short", "test/model", 4096),
        ("alias", "test/model", 4096),
    ]


async def test_tokens_survive_the_way_there_and_back() -> None:
    prompt = "Eleven chars, and more."
    async with inside() as server:
        _, there = await server.call("POST", "/tokenize", json={"prompt": prompt, "return_token_strs": True})
        _, back = await server.call("POST", "/detokenize", json={"tokens": there["tokens"]})
        _, unknown = await server.call("POST", "/detokenize", json={"tokens": [131071, 77]})
        _, counted = await server.call("POST", "/tokenize", json={"prompt": unknown["prompt"]})
        _, answer = await server.call("POST", COMPLETIONS, json={"prompt": prompt, "max_tokens": 1})
    assert back == {"prompt": prompt}
    assert "".join(there["token_strs"]) == prompt
    assert there["count"] == len(there["tokens"]) == answer["usage"]["prompt_tokens"] == 6
    assert counted["count"] == 2


async def test_a_long_text_survives_too() -> None:
    letters = random.Random(1)
    prompt = "".join(letters.choice("abcdefghijklmnop") for _ in range(20_000))
    async with inside() as server:
        _, there = await server.call("POST", "/tokenize", json={"prompt": prompt})
        _, back = await server.call("POST", "/detokenize", json={"tokens": there["tokens"]})
        _, again = await server.call("POST", "/tokenize", json={"prompt": prompt})
    assert there["count"] == 5000
    assert back == {"prompt": prompt}
    assert again["tokens"] == there["tokens"]


def test_a_full_vocabulary_reuses_the_number_of_the_least_recently_used() -> None:
    vocabulary = Vocabulary(size=3)
    one, two, three = vocabulary.encode("one.two.3...")
    assert vocabulary.encode("one.four") == [one, two]
    assert vocabulary.decode([one, two, three]) == "one.four3..."


async def test_developer_routes_need_their_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_SERVER_DEV_MODE", "1")
    async with inside(*SPEC) as server:
        _, info = await server.call("GET", "/server_info")
        status, body = await server.call("POST", "/reset_prefix_cache")
    assert "'num_speculative_tokens': 3" in info["vllm_config"]
    assert (status, body) == (200, {"success": True})


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (
            chat("word " * 5000),
            400,
            "This model's maximum context length is 4096 tokens. However, your prompt",
        ),
        (chat(max_tokens=99999), 400, "max_tokens=99999 cannot be greater than max_model_len=4096."),
        (chat(model="nope"), 404, "The model `nope` does not exist. Valid aliases: test/model."),
        (chat(messages="hi"), 400, "1 validation error:\n  {'type': 'list_type', 'loc': 'body.messages',"),
        (chat(messages=[]), 400, "Cannot apply chat template to an empty conversation."),
        (chat(messages=["x"], max_tokens="y"), 400, "2 validation errors:\n  {'type': 'dict_type',"),
        (chat(temperature=-3.0), 400, "temperature must be non-negative, got -3.0."),
        (chat(temperature="nan"), 400, "temperature must be a finite number, got nan."),
        (chat(temperature="warm"), 400, "1 validation error:\n  {'type': 'float_parsing',"),
        (chat(max_tokens=1.5), 400, "1 validation error:\n  {'type': 'int_from_float',"),
        (chat(max_tokens=0), 400, "max_tokens must be at least 1, got 0."),
        (chat(min_tokens=40), 400, "min_tokens must be less than or equal to max_tokens=32, got 40."),
        (chat(stream="perhaps"), 400, "1 validation error:\n  {'type': 'bool_parsing',"),
        (chat(top_p=0), 400, "top_p must be in (0, 1], got 0.0. (parameter=top_p, value=0.0)"),
        (chat(top_k=-2), 400, "top_k must be 0 (disable), or at least 1, got -2."),
        (chat(n=2, temperature=0), 400, "n must be 1 when using greedy sampling, got 2."),
        (chat(stop=["a", ""]), 400, "stop cannot contain an empty string."),
        (chat(stream_options=USAGE), 400, "Stream options can only be defined when `stream=True`."),
        (
            chat(stream=True, stream_options=3),
            400,
            "1 validation error:\n  {'type': 'model_attributes_type',",
        ),
    ],
)
async def test_refusals(body: dict[str, Any], status: int, message: str) -> None:
    async with inside("--max-model-len", "4096", "--sim-vllm", "0.32.0") as server:
        got, answer = await server.call("POST", CHAT, json=body)
    error = answer["error"]
    assert (got, error["code"]) == (status, status)
    assert error["message"].startswith(message)
    assert set(error) == {"message", "type", "param", "code"}


async def test_what_0_27_refuses_in_other_words() -> None:
    async with inside("--max-model-len", "4096") as server:
        _, long = await server.call("POST", CHAT, json=chat("word " * 5000, max_tokens=3))
        _, model = await server.call("POST", CHAT, json=chat(model="nope"))
        _, ids = await server.call("POST", COMPLETIONS, json={"prompt": [1] * 4090, "max_tokens": 10})
    assert "you requested 3 output tokens and your prompt contains at least 4094 input" in str(long)
    assert model["error"]["message"] == "The model `nope` does not exist."
    assert "your prompt contains 4090 input tokens, for a total of 4100 tokens." in str(ids)


@pytest.mark.parametrize(("raw", "where"), [(b'{"model":', "body.9"), (b"\xff", "body.0"), (b"[]", "body")])
async def test_broken_json_is_refused(raw: bytes, where: str) -> None:
    async with inside() as server:
        headers = {"Content-Type": "application/json"}
        status, answer = await server.call("POST", CHAT, data=raw, headers=headers)
    assert (status, answer["error"]["param"]) == (400, where)


async def test_a_key_guards_v1_only() -> None:
    async with inside("--api-key", "sk-secret") as server:
        assert await server.call("GET", "/v1/models") == (401, {"error": "Unauthorized"})
        assert (await server.call("GET", "/v1/nothing"))[0] == 401
        assert (await server.call("OPTIONS", "/v1/models"))[0] == 405
        wrong = {"Authorization": "Bearer sk-other"}
        assert (await server.call("GET", "/v1/models", headers=wrong))[0] == 401
        right = {"Authorization": "Bearer sk-secret"}
        assert (await server.call("GET", "/v1/models", headers=right))[0] == 200
        for path in ("/health", "/metrics", "/version", "/ping", "/load"):
            assert (await server.call("GET", path))[0] == 200
        assert (await server.call("POST", "/tokenize", json={"prompt": "x"}))[0] == 200
        assert "sk-" not in server.log.getvalue()


async def test_a_repeated_prompt_hits_the_prefix_cache() -> None:
    async with inside() as server:
        prompt = "A long and quite unremarkable prompt. " * 20
        for _ in range(2):
            await stream(server, chat(prompt, max_tokens=2))
        after = await counters(server)
    assert after["prefix_cache_queries_total"] == after["prompt_tokens_total"]
    assert 0.4 < after["prefix_cache_hits_total"] / after["prefix_cache_queries_total"] < 0.5


async def test_token_ids_are_cached_in_blocks_of_16_of_them() -> None:
    ids = list(range(1, 65))
    body = {"max_tokens": 1, "prompt": ids}
    async with inside() as server:
        for expected, prompt in ((0, ids), (48, ids), (48 + 32, [*ids[:47], *ids])):
            assert (await server.call("POST", COMPLETIONS, json=body | {"prompt": prompt}))[0] == 200
            assert (await counters(server))["prefix_cache_hits_total"] == expected


async def test_a_request_id_may_be_any_bytes() -> None:
    async with inside() as server:
        for streamed in (True, False):
            raw = json.dumps(chat(max_tokens=1, stream=streamed)).encode()
            head = (
                f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
            )
            head += f"Content-Length: {len(raw)}\r\nX-Request-Id: "
            reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
            writer.write(head.encode() + b"caf\xe9-\xc3\xa9\r\n\r\n" + raw)
            answer = (await reader.read()).decode()
            writer.close()
            assert answer.startswith("HTTP/1.1 200 ")
            assert '"id":"chatcmpl-caf\u00e9-\u00c3\u00a9"' in answer
    assert "Traceback" not in server.log.getvalue()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--sim-vllm", "0.13.0"), "0.9"),
        (("--sim-vllm", "0.32.0"), "0.92"),
        (("--gpu-memory-utilization", "0.5"), "0.5"),
    ],
)
async def test_the_release_decides_about_memory_unless_told(flags: tuple[str, ...], expected: str) -> None:
    async with inside("--max-model-len", "7000", *flags) as server:
        _, text = await server.call("GET", "/metrics")
    (labels,) = [
        sample.labels
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "vllm:cache_config_info"
    ]
    assert labels["gpu_memory_utilization"] == expected
    if "kv_cache_size_tokens" in labels:
        assert labels["kv_cache_max_concurrency"] == str(int(labels["kv_cache_size_tokens"]) / 7000)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_client_that_leaves_is_aborted_and_the_queue_moves(streamed: bool) -> None:
    async with inside("--max-num-seqs", "1") as server:
        body = chat(max_tokens=8000, stream=streamed)
        async with aiohttp.ClientSession() as session:
            leaver = asyncio.ensure_future(session.post(server.url + CHAT, json=body))
            await busy(server, running=1, waiting=0)
            waiting = asyncio.ensure_future(stream(server, chat(max_tokens=3)))
            await busy(server, running=1, waiting=1)
            leaver.cancel()  # where it has its answer's head already, the session's end closes the connection
        async with asyncio.timeout(10):
            assert events(await waiting)[-1]["usage"]["completion_tokens"] == 3
        after = await counters(server)
    assert (after["num_requests_running"], after["num_requests_waiting"]) == (0, 0)
    assert after["request_success_total"] == 1  # an abort shows in no reason


async def busy(server: Inside, running: int, waiting: int) -> None:
    """Until that many run and wait."""
    async with asyncio.timeout(10):
        while (server.service.running, server.service.waiting) != (running, waiting):
            await server.call("GET", "/health")


async def test_access_log_and_its_flag() -> None:
    async with inside() as loud, inside("--disable-uvicorn-access-log") as quiet:
        for server in (loud, quiet):
            await server.call("GET", "/version")
    pattern = r'INFO:     127\.0\.0\.1:\d+ - "GET /version HTTP/1\.1" 200 OK\n'
    assert re.search(pattern, loud.log.getvalue())
    assert quiet.log.getvalue() == ""


async def test_hanging_requests_get_no_answer() -> None:
    async with inside("--sim-fail", "hang-requests") as server:
        request = asyncio.create_task(server.call("POST", CHAT, json=chat(max_tokens=1)))
        for _ in range(20):
            assert (await server.call("GET", "/health"))[0] == 200
        assert not request.done()
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)


async def test_load_is_only_tracked_when_asked_to() -> None:
    async with inside("--enable-server-load-tracking") as server:
        request = asyncio.create_task(server.call("POST", CHAT, json=chat(max_tokens=2000)))
        await busy(server, running=1, waiting=0)
        assert (await server.call("GET", "/load"))[1] == {"server_load": 1}
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)


async def test_usage_can_be_forced_on_clients_that_do_not_ask() -> None:
    async with inside("--enable-force-include-usage") as server:
        chunks = events(await stream(server, chat(max_tokens=2, stream_options=None)))
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [0, 1, 2, 2]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "x"}],
        [
            {"role": "system", "content": "Be brief. " * 31},
            {"role": "user", "content": "Größe, 长度, 🙂" * 7},
        ],
        [{"role": "user", "content": [{"type": "text", "text": "two "}, {"type": "text", "text": "parts"}]}],
        [{"role": "user", "content": ""}],
    ],
    ids=["short", "two roles", "parts", "empty"],
)
async def test_tokenize_counts_messages_as_usage_does(messages: list[dict[str, Any]]) -> None:
    async with inside() as server:
        _, counted = await server.call("POST", "/tokenize", json={"messages": messages})
        body = {"messages": messages, "max_tokens": 1}
        _, answer = await server.call("POST", "/v1/chat/completions", json=body)
    assert counted["count"] == len(counted["tokens"]) == answer["usage"]["prompt_tokens"]

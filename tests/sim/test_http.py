"""The server's HTTP answers, from a real process."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.sim.conftest import Launch, SimServer

FIXTURES = Path(__file__).parents[1] / "fixtures"
SPEC = ("--speculative-config", '{"method":"dspark","model":"/models/d","num_speculative_tokens":3}')
FAST = ("--sim-noise", "0", "--sim-restart-noise", "0")
USAGE = {"include_usage": True, "continuous_usage_stats": True}


def chat(prompt: str = "Tell me about steps.", **changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"model": "test/model", "messages": [{"role": "user", "content": prompt}]}
    return body | {"max_tokens": 32, "ignore_eos": True} | changes


def events(raw: str) -> list[dict[str, Any]]:
    """The JSON events of a stream, which must end with [DONE]."""
    parts = [part.removeprefix("data: ") for part in raw.split("\n\n") if part]
    assert parts[-1] == "[DONE]"
    return [json.loads(part) for part in parts[:-1]]


async def stream(server: SimServer, body: dict[str, Any], path: str = "/v1/chat/completions") -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.post(server.url + path, json=body | {"stream": True, "stream_options": USAGE}) as response,
    ):
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        return await response.text()


async def fetch(server: SimServer, path: str, **options: Any) -> tuple[int, str]:
    method = "POST" if "json" in options or "data" in options else "GET"
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, server.url + path, **options) as response,
    ):
        return response.status, await response.text()


async def counters(server: SimServer) -> dict[str, float]:
    """Sums over labels, by sample name without vllm:."""
    _, text = await fetch(server, "/metrics")
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if "le" not in sample.labels:
                name = sample.name.removeprefix("vllm:")
                sums[name] = sums.get(name, 0.0) + sample.value
    return sums


def shape(value: Any) -> Any:
    """Keys and types, no values."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


async def test_a_stream_has_the_recorded_shape(launch: Launch) -> None:
    server = await launch(*FAST)
    ours = events(await stream(server, chat()))
    theirs = events(
        (FIXTURES / "vllm-0.27.1-cpu" / "sse_off.txt").read_text(encoding="utf-8").rstrip() + "\n\n"
    )
    for index in (0, 1, -2, -1):
        assert shape(ours[index]) == shape(theirs[index])
    assert ours[0]["usage"]["completion_tokens"] == 0
    assert ours[-2]["choices"][0]["finish_reason"] == "length"
    assert ours[-1]["choices"] == []


async def test_usage_increments_are_the_tokens_and_so_are_the_counters(launch: Launch) -> None:
    server = await launch(*FAST, *SPEC)
    idle = await counters(server)
    assert idle["spec_decode_num_drafts_total"] == 0
    chunks = events(await stream(server, chat(max_tokens=64)))
    usage = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    gains = [after - before for before, after in itertools.pairwise(usage)]
    assert sum(gains) == usage[-1] == 64
    assert gains[0] == 1
    assert max(gains) in (3, 4)
    words = "".join(c["choices"][0]["delta"]["content"] for c in chunks if c["choices"]).split()
    assert len(words) == 64
    after = await counters(server)
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


async def test_the_speed_on_the_wire(launch: Launch) -> None:
    server = await launch(*FAST)
    start = time.monotonic()
    await stream(server, chat("x", max_tokens=156))
    assert 0.99 < (time.monotonic() - start) / (156 / 77.5) < 1.5


async def test_answers_without_stream_and_the_other_endpoint(launch: Launch) -> None:
    server = await launch(*FAST)
    status, text = await fetch(server, "/v1/chat/completions", json=chat(max_tokens=5))
    answer = json.loads(text)
    assert (status, answer["object"], answer["usage"]["completion_tokens"]) == (200, "chat.completion", 5)
    assert len(answer["choices"][0]["message"]["content"].split()) == 5
    again = json.loads((await fetch(server, "/v1/chat/completions", json=chat(max_tokens=5)))[1])
    assert again["choices"][0]["message"] == answer["choices"][0]["message"]
    body = {"prompt": "Once upon a time", "max_tokens": 4, "ignore_eos": True}
    chunks = events(await stream(server, body, "/v1/completions"))
    assert [c["usage"]["completion_tokens"] for c in chunks][-2:] == [4, 4]
    assert all(c["object"] == "text_completion" for c in chunks)
    assert "".join(c["choices"][0]["text"] for c in chunks[:-1]).count(" ") == 4


async def test_small_routes(launch: Launch) -> None:
    server = await launch("--served-model-name", "short", "alias", "--max-model-len", "4096")
    assert await fetch(server, "/health") == (200, "")
    assert await fetch(server, "/ping") == (200, "")
    assert await fetch(server, "/version") == (200, '{"version":"0.27.1"}')
    models = json.loads((await fetch(server, "/v1/models"))[1])["data"]
    assert [(m["id"], m["root"], m["max_model_len"]) for m in models] == [
        ("short", "test/model", 4096),
        ("alias", "test/model", 4096),
    ]
    status, text = await fetch(server, "/tokenize", json={"model": "short", "prompt": "abcdefgh"})
    assert (status, json.loads(text)) == (
        200,
        {"count": 2, "max_model_len": 4096, "tokens": [1, 2], "token_strs": None},
    )
    assert await fetch(server, "/nowhere") == (404, '{"detail":"Not Found"}')
    assert (await fetch(server, "/health", json={}))[0] == 405


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (chat("word " * 5000), 400, "This model's maximum context length is 4096 tokens."),
        (chat(max_tokens=99999), 400, "max_tokens=99999 cannot be greater than max_model_len=4096."),
        (chat(model="nope"), 404, "The model `nope` does not exist. Valid aliases: test/model."),
        (chat(messages="hi"), 400, "1 validation error:"),
        (chat(temperature=-3.0), 400, "temperature must be non-negative, got -3.0."),
        (chat(stream_options=USAGE), 400, "Stream options can only be defined when `stream=True`."),
    ],
)
async def test_refusals(launch: Launch, body: dict[str, Any], status: int, message: str) -> None:
    server = await launch("--max-model-len", "4096")
    got, text = await fetch(server, "/v1/chat/completions", json=body)
    error = json.loads(text)["error"]
    assert (got, error["code"]) == (status, status)
    assert error["message"].startswith(message)
    assert set(error) == {"message", "type", "param", "code"}


async def test_broken_json_is_refused(launch: Launch) -> None:
    server = await launch()
    status, text = await fetch(server, "/v1/chat/completions", data=b'{"model":')
    assert status == 400
    assert "json_invalid" in json.loads(text)["error"]["message"]


async def test_a_key_guards_v1_only(launch: Launch) -> None:
    server = await launch("--api-key", "sk-secret")
    assert await fetch(server, "/v1/models") == (401, '{"error":"Unauthorized"}')
    wrong = {"Authorization": "Bearer sk-other"}
    assert (await fetch(server, "/v1/models", headers=wrong))[0] == 401
    right = {"Authorization": "Bearer sk-secret"}
    assert (await fetch(server, "/v1/models", headers=right))[0] == 200
    for path in ("/health", "/metrics", "/version", "/ping"):
        assert (await fetch(server, path))[0] == 200
    assert "'api_key': '***'" in await server.line("non-default args:")
    assert "sk-secret" not in "".join(server.lines)


async def test_a_repeated_prompt_hits_the_prefix_cache(launch: Launch) -> None:
    server = await launch(*FAST)
    prompt = "A long and quite unremarkable prompt. " * 20
    for _ in range(2):
        await stream(server, chat(prompt, max_tokens=2))
    after = await counters(server)
    assert after["prefix_cache_queries_total"] == after["prompt_tokens_total"]
    assert 0.4 < after["prefix_cache_hits_total"] / after["prefix_cache_queries_total"] < 0.5


async def test_a_client_that_leaves_is_aborted_and_the_queue_moves(launch: Launch) -> None:
    server = await launch(*FAST, "--max-num-seqs", "1")
    body = chat(max_tokens=8000) | {"stream": True}
    async with aiohttp.ClientSession() as session:
        first = await session.post(server.url + "/v1/chat/completions", json=body)
        await first.content.readline()
        waiting = asyncio.create_task(stream(server, chat(max_tokens=3)))
        async with asyncio.timeout(10):
            while (await counters(server))["num_requests_waiting"] != 1:
                pass
        first.close()
    async with asyncio.timeout(10):
        assert events(await waiting)[-1]["usage"]["completion_tokens"] == 3
    after = await counters(server)
    assert (after["num_requests_running"], after["num_requests_waiting"]) == (0, 0)
    assert after["request_success_total"] == 1


async def test_access_log_and_its_flag(launch: Launch) -> None:
    loud, quiet = await launch(), await launch("--disable-uvicorn-access-log")
    for server in (loud, quiet):
        await fetch(server, "/version")
    line = await loud.line("GET /version")
    assert re.search(r'INFO:     127\.0\.0\.1:\d+ - "GET /version HTTP/1\.1" 200 OK\n$', line)
    quiet.process.terminate()
    assert "GET /version" not in await quiet.output()


async def test_nonsense_metrics_cannot_be_parsed(launch: Launch) -> None:
    server = await launch("--sim-fail", "metrics-nonsense")
    status, text = await fetch(server, "/metrics")
    assert status == 200
    with pytest.raises(ValueError, match=r".+"):
        list(text_string_to_metric_families(text))


async def test_hanging_requests_get_no_answer(launch: Launch) -> None:
    server = await launch("--sim-fail", "hang-requests")
    request = asyncio.create_task(fetch(server, "/v1/chat/completions", json=chat(max_tokens=1)))
    for _ in range(20):
        assert (await fetch(server, "/health"))[0] == 200
    assert not request.done()
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)


async def test_statistics_are_logged_while_busy(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_LOG_STATS_INTERVAL", "0.3")
    server = await launch(*FAST, *SPEC)
    await stream(server, chat(max_tokens=60))
    assert "Avg generation throughput" in await server.line("Engine 000:")
    assert "Per-position acceptance rate" in await server.line("SpecDecoding metrics:")

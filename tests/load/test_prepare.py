"""Prompts made exact by a server's /tokenize, and what is said where they are not."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from sparktui.load import tokens
from sparktui.load.prompts import POOL, Prompts
from sparktui.schema.launch import LoadSpec
from sparktui.schema.workloads import WORKLOADS
from tests.load import tokenizers
from tests.load.tokenizers import TokenizeServer
from tests.sim.inside import inside

LIMITS = {"first_s": 30.0, "all_s": 30.0}  # a busy machine is no slow server


def bodies(prompts: Prompts, count: int) -> list[dict[str, Any]]:
    return [json.loads(prompts.body(i, ignore_eos=True)) for i in range(count)]


@pytest.mark.parametrize("workload", list(WORKLOADS))
async def test_every_prompt_has_the_workloads_length(workload: str) -> None:
    prompts = Prompts(LoadSpec(workload=workload), "served", "n1")
    async with TokenizeServer(tokenizers.pairs) as server:
        assert await prompts.prepare(server.session, server.url, **LIMITS) == ""
    counts = {server.count(body) for body in bodies(prompts, 2 * POOL + 5)}
    assert counts == {WORKLOADS[workload].input_tokens}


async def test_a_length_of_ones_own_and_its_calls() -> None:
    prompts = Prompts(LoadSpec(input_tokens=777, chat_template_kwargs={"thinking": False}), "served", "n1")
    async with TokenizeServer(tokenizers.syllables) as server:
        assert await prompts.prepare(server.session, server.url, **LIMITS) == ""
    assert {server.count(body) for body in bodies(prompts, 60)} == {777}
    assert all(asked["model"] == "served" for asked in server.asked)
    assert all(asked["chat_template_kwargs"] == {"thinking": False} for asked in server.asked)
    assert all(asked["add_generation_prompt"] is True for asked in server.asked)
    assert 1 < server.most_inside <= tokens.AT_ONCE
    assert len(server.asked) < 8 * POOL


async def test_a_shared_prefix_has_its_length_and_is_the_same_in_all() -> None:
    prompts = Prompts(LoadSpec(workload="shared-prefix"), "served", "n1")
    async with TokenizeServer(tokenizers.pairs) as server:
        assert await prompts.prepare(server.session, server.url, **LIMITS) == ""
    systems = {body["messages"][0]["content"] for body in bodies(prompts, 60)}
    (shared,) = systems
    assert tokenizers.pairs(shared) == 900
    assert len({body["messages"][1]["content"] for body in bodies(prompts, 60)}) == 60


async def test_two_arms_send_the_same_however_fast_the_answers_come(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for at_once in (1, 4, 9):
        monkeypatch.setattr(tokens, "AT_ONCE", at_once)
        prompts = Prompts(LoadSpec(), "served", "n1")
        async with TokenizeServer(tokenizers.dear_pads) as server:
            await prompts.prepare(server.session, server.url, **LIMITS)
        made.append([prompts.body(i, ignore_eos=True) for i in range(100)])
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize(
    ("status", "text", "says"),
    [
        (404, "404: Not Found", "HTTP 404: 404: Not Found"),
        (401, '{"error": "Unauthorized"}', "HTTP 401: Unauthorized"),
        (500, '{"error": {"message": "engine \\u001b[31mdead"}}', "HTTP 500: engine [31mdead"),
        (200, "<html>a proxy</html>", "no count"),
        (200, "[3]", "no count"),
        (200, '{"count": null}', "no count"),
    ],
)
async def test_a_server_that_does_not_count_leaves_an_estimate_and_a_note(
    status: int, text: str, says: str
) -> None:
    prompts = Prompts(LoadSpec(), "served", "n1")
    before = bodies(prompts, 60)
    async with TokenizeServer(
        tokenizers.words, lambda call: web.Response(status=status, text=text)
    ) as server:
        note = await prompts.prepare(server.session, server.url, **LIMITS)
    assert note.startswith("prompts have about 512 tokens, as estimated")
    assert says in note
    assert bodies(prompts, 60) == before


async def test_nobody_there_leaves_a_note() -> None:
    async with TokenizeServer(tokenizers.words) as server:
        url = server.url
    prompts = Prompts(LoadSpec(), "served", "n1")
    async with aiohttp.ClientSession() as session:
        assert "as estimated" in await prompts.prepare(session, url)


async def test_a_server_that_hangs_is_left_after_the_limit() -> None:
    prompts = Prompts(LoadSpec(), "served", "n1")
    async with TokenizeServer(tokenizers.words) as server:
        server.hold.clear()
        note = await prompts.prepare(server.session, server.url, first_s=0.05)
        server.hold.set()
    assert note.endswith("/tokenize took longer than 0.05 s")
    assert len(bodies(prompts, 3)) == 3


async def test_a_server_that_hangs_later_is_left_as_well() -> None:
    prompts = Prompts(LoadSpec(), "served", "n1")
    async with TokenizeServer(tokenizers.words) as server:
        server.held_from = 40
        server.hold.clear()
        note = await prompts.prepare(server.session, server.url, first_s=30.0, all_s=0.5)
        server.hold.set()
    assert note.endswith("took longer than 0.5 s")
    assert len(server.asked) <= 40 + tokens.AT_ONCE
    assert len({body["messages"][0]["content"] for body in bodies(prompts, 60)}) == 60


async def test_what_is_not_counted_in_time_is_guessed_from_the_first() -> None:
    prompts = Prompts(LoadSpec(), "served", "n1")
    async with TokenizeServer(
        tokenizers.syllables, lambda call: web.Response(status=503) if call > 30 else None
    ) as server:
        note = await prompts.prepare(server.session, server.url, **LIMITS)
    counts = [server.count(body) for body in bodies(prompts, POOL)]
    exact, _, rest = note.partition(" ")
    assert rest == "of 48 texts have 512 tokens, the others about: /tokenize answered HTTP 503"
    assert 3 <= int(exact) <= 30
    assert int(exact) <= counts.count(512) < POOL  # a guess may hit by chance
    assert all(abs(count - 512) < 60 for count in counts)


async def test_a_tokenizer_that_is_never_exact_is_told() -> None:
    prompts = Prompts(LoadSpec(input_tokens=301), "served", "n1")
    async with TokenizeServer(tokenizers.evens) as server:
        note = await prompts.prepare(server.session, server.url, **LIMITS)
    counts = {server.count(body) for body in bodies(prompts, POOL)}
    assert counts <= {300, 302}
    assert note.startswith(f"prompts have {min(counts)} to {max(counts)} tokens, not 301: ")


async def test_numbers_of_unequal_cost_are_told() -> None:
    def merges_sevens(text: str) -> int:
        return tokenizers.words(text) - text.count("77")

    prompts = Prompts(LoadSpec(), "served", "n1")
    async with TokenizeServer(merges_sevens) as server:
        note = await prompts.prepare(server.session, server.url, **LIMITS)
    assert {server.count(body) for body in bodies(prompts, POOL)} == {512}
    assert note.endswith("not 512: numbers cost this tokenizer unequal amounts")


@pytest.mark.parametrize("workload", ["chat", "code", "shared-prefix", "repeat"])
async def test_a_length_below_the_least_gives_the_least_and_says_so(workload: str) -> None:
    prompts = Prompts(LoadSpec(workload=workload, input_tokens=16), "served", "n1")
    async with TokenizeServer(tokenizers.words) as server:
        note = await prompts.prepare(server.session, server.url, **LIMITS)
    (least,) = {server.count(body) for body in bodies(prompts, 60)}
    assert note == f"prompts have {least} tokens: without any text that is already more than 16"
    assert bodies(prompts, 1)[0]["messages"][-1]["content"].endswith(("\n\n", "```python\n"))


async def test_a_name_that_only_the_proxy_knows_is_left_out() -> None:
    def knows_no_such_model(call: int) -> web.Response | None:
        return web.Response(status=404) if "model" in server.asked[-1] else None

    prompts = Prompts(LoadSpec(), "gpt-ours", "n1")
    async with TokenizeServer(tokenizers.words, knows_no_such_model) as server:
        assert await prompts.prepare(server.session, server.url, **LIMITS) == ""
    assert ["model" in asked for asked in server.asked[:3]] == [True, False, False]
    assert bodies(prompts, 1)[0]["model"] == "gpt-ours"


async def test_what_the_server_has_no_room_for_is_told() -> None:
    prompts = Prompts(LoadSpec(workload="coder"), "served", "n1")
    server = TokenizeServer(tokenizers.pairs)
    server.max_model_len = 4500
    async with server:
        note = await prompts.prepare(server.session, server.url, **LIMITS)
    assert note == "prompts of 4096 tokens with answers of 563 exceed the server's max_model_len 4500"


@pytest.mark.parametrize("workload", ["chat", "code", "shared-prefix"])
async def test_the_stand_in_counts_what_was_prepared(workload: str) -> None:
    prompts = Prompts(LoadSpec(workload=workload, output_tokens=2), "test/model", "n1")
    async with inside() as server:
        assert await prompts.prepare(server.session, server.url, **LIMITS) == ""
        for index in (0, 1, POOL + 1):
            asked = json.loads(prompts.body(index, ignore_eos=True)) | {"stream": False}
            del asked["stream_options"]
            status, answer = await server.call("POST", "/v1/chat/completions", json=asked)
            assert status == 200, answer
            assert answer["usage"]["prompt_tokens"] == WORKLOADS[workload].input_tokens

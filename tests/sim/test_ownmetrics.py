"""What answers tell of themselves, against the engine's truth; shapes as in vLLM's protocol classes."""

from __future__ import annotations

from typing import Any

import pytest

from sparktui.sim.http.ownmetrics import Told
from sparktui.sim.model.requests import Request
from tests.sim.inside import SPEC, Inside, chat, inside
from tests.sim.metered import quiet
from tests.sim.wire import CHAT, counters, events, stream

TIMES = {
    "time_to_first_token_ms",
    "generation_time_ms",
    "queue_time_ms",
    "mean_itl_ms",
    "tokens_per_second",
}
DRAFTS = {
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "acceptance_histogram",
    "num_spec_steps",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_spec_tokens",
}
TIMED = ("--sim-vllm", "0.32.0", "--enable-per-request-metrics")
SUMMARY = ("--sim-vllm", "0.32.0", "--per-request-spec-decode-metrics", "summary", *SPEC)


async def last_event(server: Inside, **changes: Any) -> dict[str, Any]:
    return events(await stream(server, chat(**changes)))[-1]


def test_times_are_the_engines_own_and_the_first_token_is_counted_from_scheduling() -> None:
    engine = quiet(0, max_num_seqs=1)
    first, second = (Request(name, prompt_tokens=400, max_tokens=11) for name in "ab")
    engine.add(first, 100.0)
    engine.add(second, 100.0)
    while engine.due is not None:
        engine.step(engine.due)
    assert second.scheduled is not None
    assert second.first_token is not None
    assert second.last_token is not None
    told = Told(times=True).of(second)
    assert told is not None
    prefill, decode = second.first_token - second.scheduled, second.last_token - second.first_token
    assert prefill > 0.1, "400 tokens at 4000 a second"
    assert told == {
        "time_to_first_token_ms": pytest.approx(1000 * prefill),
        "generation_time_ms": pytest.approx(1000 * decode),
        "queue_time_ms": pytest.approx(1000 * (second.scheduled - 100.0)),
        "mean_itl_ms": pytest.approx(1000 * decode / 10),
        "tokens_per_second": pytest.approx(11 / (prefill + decode)),
    }
    assert told["queue_time_ms"] > 200, "the first one's whole answer"


def test_one_token_has_no_time_between_tokens() -> None:
    engine = quiet(0)
    request = Request("a", prompt_tokens=40, max_tokens=1)
    engine.add(request, 5.0)
    assert engine.due is not None
    engine.step(engine.due)
    told = Told(times=True).of(request)
    assert told is not None
    assert set(told) == TIMES - {"mean_itl_ms"}
    assert told["generation_time_ms"] == 0


async def test_the_last_chunk_carries_the_times_and_no_other_chunk_does() -> None:
    async with inside(*TIMED) as server:
        told = events(await stream(server, chat()))
        whole = (await server.call("POST", CHAT, json=chat()))[1]
    assert set(told[-1]["metrics"]) == TIMES
    assert not any("metrics" in event for event in told[:-1])
    assert set(whole["metrics"]) == TIMES
    assert 2 * 30 < told[-1]["metrics"]["generation_time_ms"] < 2 * 31 + 1, "31 steps of 2 ms"


async def test_drafts_add_up_to_the_servers_counters() -> None:
    async with inside(*SUMMARY, *TIMED[2:]) as server:
        one = (await last_event(server, max_tokens=200))["metrics"]
        two = (await last_event(server, max_tokens=90, temperature=0))["metrics"]
        page = await counters(server)
    assert set(one) == {*TIMES, "speculative_decoding"}
    drafts = [told["speculative_decoding"] for told in (one, two)]
    for told in drafts:
        assert set(told) == DRAFTS
        assert told["num_spec_tokens"] == 3
        assert told["num_draft_tokens"] == 3 * told["num_spec_steps"]
        assert sum(told["acceptance_histogram"]) == told["num_spec_steps"] > 20
        assert (
            sum(i * n for i, n in enumerate(told["acceptance_histogram"]))
            == told["num_accepted_draft_tokens"]
        )
        accepted, steps = told["num_accepted_draft_tokens"], told["num_spec_steps"]
        assert told["mean_acceptance_length"] == pytest.approx(1 + accepted / steps)
        assert told["draft_acceptance_rate"] == pytest.approx(accepted / told["num_draft_tokens"])
    assert page["spec_decode_num_drafts_total"] == sum(told["num_spec_steps"] for told in drafts)
    assert page["spec_decode_num_accepted_tokens_total"] == sum(
        told["num_accepted_draft_tokens"] for told in drafts
    )


async def test_detailed_drafts_go_step_by_step() -> None:
    async with inside(*SUMMARY, "--per-request-spec-decode-metrics", "detailed") as server:
        (told,) = (await last_event(server))["metrics"].values()
    assert set(told) == DRAFTS | {"per_step_accepted", "per_step_drafted"}
    assert len(told["per_step_accepted"]) == told["num_spec_steps"]
    assert sum(told["per_step_accepted"]) == told["num_accepted_draft_tokens"]
    assert set(told["per_step_drafted"]) == {3}


@pytest.mark.parametrize(
    ("flags", "changes"),
    [((), {}), (TIMED, {"n": 2}), (TIMED, {"stream_options": {}})],
    ids=["without the flag", "two choices", "no usage asked for"],
)
async def test_an_answer_without_metrics(flags: tuple[str, ...], changes: dict[str, Any]) -> None:
    async with inside(*flags) as server:
        told = events(await stream(server, chat(**changes)))
        whole = (await server.call("POST", CHAT, json=chat(n=changes.get("n", 1))))[1]
    assert not any("metrics" in event for event in told)
    assert (whole["metrics"] is None) == (flags == () or "n" in changes)

"""Who is served when: batching, chunked prompts, KV cache, preemption, prefix cache, graph modes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from sparktui.sim.model.engine import Engine, Request, Step
from tests.sim.steps import FLAT, OFF_S, QUIET, run


def shared_prompts(**config: object) -> tuple[Request, Request, list[Step]]:
    """The same prompt of 160 tokens twice, one after the other."""
    engine = Engine(replace(QUIET, **config), random.Random(1))  # type: ignore[arg-type]
    first, second = (Request(name, prompt_tokens=160, max_tokens=4, blocks=tuple(range(10))) for name in "ab")
    engine.add(first, 0.0)
    steps = run(engine)
    engine.add(second, 10.0)
    return first, second, steps + run(engine)


def test_requests_above_max_num_seqs_wait_in_order() -> None:
    engine = Engine(replace(QUIET, max_num_seqs=4), random.Random(1))
    requests = [Request(str(i), prompt_tokens=1, max_tokens=10) for i in range(7)]
    for request in requests:
        engine.add(request, 0.0)
    engine.step(engine.due or 0.0)
    assert (engine.running, engine.waiting) == (4, 3)
    run(engine)
    assert (engine.running, engine.waiting) == (0, 0)
    scheduled = [request.scheduled for request in requests]
    assert scheduled[0] == 0.0
    assert scheduled[1] == scheduled[3] == requests[0].first_token  # came while the first step ran
    assert scheduled[4] == requests[0].last_token
    assert scheduled[5] == scheduled[6] == requests[1].last_token


def test_prefill_costs_its_uncached_tokens() -> None:
    engine = Engine(QUIET, random.Random(1))
    engine.add(Request("r", prompt_tokens=4096, max_tokens=1, cached_tokens=96), 0.0)
    (step,) = run(engine)
    assert step.duration == pytest.approx(OFF_S + 1.0)
    assert (step.prompt_tokens, step.scheduled_tokens) == (4000, 4000)


def test_an_aborted_request_frees_its_seat() -> None:
    engine = Engine(replace(QUIET, max_num_seqs=1), random.Random(1))
    first, second = (Request(name, prompt_tokens=1, max_tokens=5) for name in "ab")
    engine.add(first, 0.0)
    engine.add(second, 0.0)
    engine.abort(first)
    run(engine)
    assert (first.generated, second.generated) == (0, 5)


def test_an_overflowing_kv_cache_preempts_the_youngest() -> None:
    config = replace(QUIET, truth=replace(FLAT, kv_cache_tokens=100))
    engine = Engine(config, random.Random(1))
    old, young = (Request(name, prompt_tokens=40, max_tokens=30) for name in "ab")
    engine.add(old, 0.0)
    engine.add(young, 0.0)
    steps = run(engine)
    assert (old.preemptions, young.preemptions) == (0, 1)
    assert sum(step.preempted for step in steps) == 1
    assert (old.generated, young.generated) == (30, 30)


def test_a_long_prompt_is_computed_in_chunks_beside_the_others() -> None:
    engine = Engine(replace(QUIET, max_num_batched_tokens=512), random.Random(1))
    short = Request("short", prompt_tokens=1, max_tokens=100)
    engine.add(short, 0.0)
    assert engine.due is not None
    engine.step(engine.due)
    long = Request("long", prompt_tokens=1200, max_tokens=5)
    engine.add(long, engine.due)
    steps = run(engine)
    # the step under way when it came is not among its own
    chunks = [(step.prompt_tokens, step.duration) for step in steps if step.prompt_tokens]
    assert [tokens for tokens, _ in chunks] == [511, 511, 178]  # one token of the budget decodes
    assert chunks[0][1] == pytest.approx(OFF_S + 511 / 4000)
    assert [step.prefilled for step in steps if step.prefilled] == [(long,)]
    assert all(len(step.outputs) >= 1 for step in steps), "the short one decodes in every step"
    assert (short.generated, long.generated) == (100, 5)
    gaps = [output.gap for step in steps for output in step.outputs if output.request is short]
    assert max(gap for gap in gaps if gap) == pytest.approx(OFF_S + 511 / 4000)


def test_running_prompts_come_before_new_ones() -> None:
    engine = Engine(replace(QUIET, max_num_batched_tokens=100), random.Random(1))
    requests = [Request(name, prompt_tokens=150, max_tokens=1) for name in "abc"]
    for request in requests:
        engine.add(request, 0.0)
    done = [request.id for step in run(engine) for request in step.prefilled]
    assert done == ["a", "b", "c"]
    # 100 of a; 50 of a, 50 of b; 100 of b; 100 of c; 50 of c
    scheduled = [request.scheduled for request in requests]
    assert scheduled[0] == 0.0
    assert scheduled[1] is not None
    assert scheduled[2] == requests[1].first_token


def test_a_batch_larger_than_the_budget_decodes_in_turns_of_arrival() -> None:
    engine = Engine(replace(QUIET, k=3, max_num_batched_tokens=8), random.Random(1))
    requests = [Request(name, prompt_tokens=1, max_tokens=40) for name in "abc"]
    for request in requests:
        engine.add(request, 0.0)
    steps = run(engine)
    assert max(step.scheduled_tokens for step in steps) <= 8
    assert [request.generated for request in requests] == [40, 40, 40]
    assert requests[2].last_token == steps[-1].at


def test_a_budget_below_one_draft_still_makes_progress() -> None:
    engine = Engine(replace(QUIET, k=3, max_num_batched_tokens=2), random.Random(1))
    request = Request("r", prompt_tokens=5, max_tokens=9)
    engine.add(request, 0.0)
    run(engine)
    assert request.generated == 9


def test_recurrent_states_take_their_share_of_the_cache() -> None:
    truth = replace(FLAT, kv_cache_tokens=16_000, state_tokens=1600)
    for k, states in ((0, 1), (3, 4)):
        engine = Engine(replace(QUIET, truth=truth, k=k), random.Random(1))
        engine.add(Request("r", prompt_tokens=32, max_tokens=2), 0.0)
        assert engine.kv_usage == pytest.approx((states * 100 + 2) / 1000)
        run(engine)
        assert engine.kv_usage == 0.0


def test_states_bound_how_many_run_at_once() -> None:
    truth = replace(FLAT, kv_cache_tokens=16_000, state_tokens=1600)
    engine = Engine(replace(QUIET, truth=truth, k=3), random.Random(1))
    for i in range(4):
        engine.add(Request(str(i), prompt_tokens=32, max_tokens=50), 0.0)
    engine.step(engine.due or 0.0)
    assert (engine.running, engine.waiting) == (2, 2)  # 402 of 1000 blocks each


def test_a_repeated_prompt_is_found_in_the_prefix_cache() -> None:
    first, second, steps = shared_prompts()
    assert (first.cached_tokens, second.cached_tokens) == (0, 144)  # the last token is always computed
    assert [step.prompt_tokens for step in steps if step.prompt_tokens] == [160, 16]
    assert [request.id for step in steps for request in step.admitted] == ["a", "b"]


def test_a_useless_prefix_cache_is_asked_and_finds_nothing() -> None:
    first, second, steps = shared_prompts(truth=replace(FLAT, prefix_cache="useless"))
    assert (first.cached_tokens, second.cached_tokens) == (0, 0)
    assert [request.id for step in steps for request in step.admitted] == ["a", "b"]


def test_without_prefix_caching_nobody_asks() -> None:
    _, second, steps = shared_prompts(prefix_caching=False)
    assert second.cached_tokens == 0
    assert not any(step.admitted for step in steps)


def test_preemption_keeps_the_books() -> None:
    """Whatever happens to a request, each token comes once and all blocks return."""
    truth = replace(FLAT, kv_cache_tokens=16 * 40)
    engine = Engine(replace(QUIET, truth=truth, k=3, max_num_batched_tokens=64), random.Random(5))
    requests = [
        Request(str(i), prompt_tokens=50 + i, max_tokens=150, blocks=tuple(range(100 * i, 100 * i + 3)))
        for i in range(9)
    ]
    for request in requests:
        engine.add(request, 0.0)
    steps = run(engine)
    assert sum(request.preemptions for request in requests) > 3
    assert sum(step.preempted for step in steps) == sum(request.preemptions for request in requests)
    assert requests[0].preemptions == 0
    assert [request.generated for request in requests] == [150] * 9
    given = sum(output.tokens for step in steps for output in step.outputs)
    assert given == 9 * 150
    firsts = [output for step in steps for output in step.outputs if output.gap is None]
    assert len(firsts) == 9
    assert sorted(request.id for step in steps for request in step.admitted) == sorted(
        request.id for request in requests
    )
    for step in steps:
        assert step.prompt_tokens + step.drafts * 4 <= 64
    assert engine.kv_usage == 0.0


def test_aborting_frees_blocks_at_once_and_the_step_gives_it_nothing() -> None:
    engine = Engine(replace(QUIET, k=3), random.Random(1))
    gone, stays = (Request(name, prompt_tokens=160, max_tokens=50) for name in "ab")
    for request in (gone, stays):
        engine.add(request, 0.0)
    engine.step(engine.due or 0.0)
    engine.step(engine.due or 0.0)
    before, usage = gone.generated, engine.kv_usage
    engine.abort(gone)
    engine.abort(gone)
    assert engine.kv_usage < usage
    step = engine.step(engine.due or 0.0)
    assert step is not None
    assert [output.request for output in step.outputs] == [stays]
    assert (step.drafts, gone.generated) == (1, before)
    run(engine)
    assert (engine.kv_usage, engine.running, stays.generated) == (0.0, 0, 50)


def test_aborting_a_half_computed_prompt_and_the_last_request() -> None:
    engine = Engine(replace(QUIET, max_num_batched_tokens=64), random.Random(1))
    request = Request("r", prompt_tokens=1000, max_tokens=5)
    engine.add(request, 0.0)
    engine.step(engine.due or 0.0)
    engine.abort(request)
    steps = run(engine)
    assert len(steps) == 1, "the step under way takes its time"
    assert steps[0].outputs == ()
    assert (engine.due, engine.kv_usage, request.first_token) == (None, 0.0, None)


@pytest.mark.parametrize(
    ("graphs", "modes"),
    [("full", {"FULL", "PIECEWISE"}), ("piecewise", {"PIECEWISE"}), ("none", {"NONE"})],
)
def test_the_mode_that_ran(graphs: str, modes: set[str]) -> None:
    engine = Engine(replace(QUIET, k=3, max_num_seqs=64, graphs=graphs), random.Random(1))  # type: ignore[arg-type]
    for i in range(3):
        engine.add(Request(str(i), prompt_tokens=30, max_tokens=20), 0.0)
    steps = run(engine)
    assert {step.mode for step in steps} == modes
    for step in steps:
        if step.mode == "FULL":
            assert not step.prompt_tokens
            assert step.padded_tokens % 4 == 0
        padded = step.padded_tokens == step.scheduled_tokens
        assert padded if step.mode == "NONE" else step.padded_tokens >= step.scheduled_tokens


def test_a_step_beyond_the_largest_graph_runs_without() -> None:
    engine = Engine(replace(QUIET, max_num_seqs=64), random.Random(1))
    engine.add(Request("r", prompt_tokens=129, max_tokens=2), 0.0)
    steps = run(engine)
    assert [(step.mode, step.padded_tokens) for step in steps] == [("NONE", 129), ("FULL", 1)]

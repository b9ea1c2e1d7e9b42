"""The engine model in virtual time."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from sparktui.sim.engine import Engine, EngineConfig, Request, Step
from sparktui.sim.truth import Truth, true_ratio

QUIET = EngineConfig(noise=0.0, restart_noise=0.0)


def run(engine: Engine) -> list[Step]:
    """Complete steps at their deadlines until nothing is left to do."""
    steps = []
    while engine.due is not None:
        step = engine.step(engine.due)
        assert step is not None
        steps.append(step)
    return steps


def decode(config: EngineConfig, tokens: int, seed: int = 7) -> tuple[Request, list[Step]]:
    """One request alone, prompt of one token."""
    engine = Engine(config, random.Random(seed))
    request = Request("r", prompt_tokens=1, max_tokens=tokens)
    engine.add(request, 100.0)
    return request, run(engine)


def decode_rate(request: Request) -> float:
    assert request.first_token is not None
    assert request.last_token is not None
    return (request.generated - 1) / (request.last_token - request.first_token)


@pytest.mark.parametrize(("k", "expected"), [(0, 77.5), (3, 41.0)])
def test_decode_rate_is_the_published_one(k: int, expected: float) -> None:
    request, _ = decode(replace(QUIET, k=k), 60_000)
    assert decode_rate(request) == pytest.approx(expected, rel=0.01)
    assert Truth().decode_tok_s(k) == pytest.approx(expected, rel=1e-9)


def test_the_published_ratio() -> None:
    assert true_ratio() == pytest.approx(41 / 77.5)


@pytest.mark.parametrize(("k", "rate"), [(2, 0.624), (3, 0.537), (4, 0.452)])
def test_acceptance_rate_by_k(k: int, rate: float) -> None:
    _, steps = decode(replace(QUIET, k=k), 60_000)
    drafted = sum(step.draft_tokens for step in steps)
    assert sum(sum(step.accepted) for step in steps) / drafted == pytest.approx(rate, abs=0.006)


def test_acceptance_by_position_is_unconditional_and_chained() -> None:
    _, steps = decode(replace(QUIET, k=3), 60_000)
    drafts = sum(step.drafts for step in steps)
    observed = [sum(step.accepted[i] for step in steps) / drafts for i in range(3)]
    assert observed == pytest.approx([0.750, 0.520, 0.341], abs=0.012)
    for step in steps:
        assert list(step.accepted) == sorted(step.accepted, reverse=True)


def test_the_first_output_is_one_token_without_a_draft() -> None:
    request, steps = decode(replace(QUIET, k=3), 100)
    assert steps[0].drafts == 0
    assert steps[0].outputs[0].tokens == 1
    assert steps[0].outputs[0].gap is None
    assert sum(step.drafts for step in steps) == len(steps) - 1
    assert request.generated == 100
    assert steps[-1].outputs[0].finish_reason == "length"


def test_later_positions_of_a_long_chain_keep_falling() -> None:
    chain = Truth().acceptance(7)
    assert len(chain) == 7
    assert list(chain) == sorted(chain, reverse=True)
    assert chain[:4] == Truth().acceptance(4)


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


def test_a_step_grows_with_the_batch_and_more_so_under_speculation() -> None:
    truth = Truth()
    off = truth.step_s(0, 32) / truth.step_s(0, 1)
    on = truth.step_s(3, 32) / truth.step_s(3, 1)
    assert 1 < off < on
    assert 32 * truth.decode_tok_s(0, 32) > 8 * truth.decode_tok_s(0, 8)


def test_prefill_costs_its_uncached_tokens() -> None:
    engine = Engine(QUIET, random.Random(1))
    engine.add(Request("r", prompt_tokens=4096, max_tokens=1, cached_tokens=96), 0.0)
    (step,) = run(engine)
    assert step.duration == pytest.approx(1 / 77.5 + 1.0)


def test_without_ignore_eos_an_answer_stops_by_itself() -> None:
    engine = Engine(replace(QUIET, k=3), random.Random(1))
    request = Request("r", prompt_tokens=1, max_tokens=500, stop_after=37)
    engine.add(request, 0.0)
    steps = run(engine)
    assert request.generated == 37
    assert steps[-1].outputs[0].finish_reason == "stop"


def test_an_aborted_request_frees_its_seat() -> None:
    engine = Engine(replace(QUIET, max_num_seqs=1), random.Random(1))
    first, second = (Request(name, prompt_tokens=1, max_tokens=5) for name in "ab")
    engine.add(first, 0.0)
    engine.add(second, 0.0)
    engine.abort(first)
    run(engine)
    assert (first.generated, second.generated) == (0, 5)


def test_an_overflowing_kv_cache_preempts_the_youngest() -> None:
    config = replace(QUIET, truth=Truth(kv_cache_tokens=100))
    engine = Engine(config, random.Random(1))
    old, young = (Request(name, prompt_tokens=40, max_tokens=30) for name in "ab")
    engine.add(old, 0.0)
    engine.add(young, 0.0)
    steps = run(engine)
    assert (old.preemptions, young.preemptions) == (0, 1)
    assert sum(step.preempted for step in steps) == 1
    assert (old.generated, young.generated) == (30, 30)


def test_steps_follow_deadlines_not_the_caller() -> None:
    late, exact = (Engine(QUIET, random.Random(1)) for _ in range(2))
    for engine in (late, exact):
        engine.add(Request("r", prompt_tokens=1, max_tokens=200), 0.0)
    end = run(exact)[-1].at
    last = None
    while late.due is not None:
        last = late.step(late.due + 0.4)
    assert last is not None
    assert last.at == pytest.approx(end)


def test_not_due_yet_gives_nothing() -> None:
    engine = Engine(QUIET, random.Random(1))
    assert engine.step(1e9) is None
    engine.add(Request("r", prompt_tokens=1, max_tokens=2), 5.0)
    assert engine.step(5.0) is None


def test_restart_noise_is_one_factor_for_the_whole_process() -> None:
    config = EngineConfig(noise=0.0, restart_noise=0.05)
    rates = []
    for seed in range(3):
        _, steps = decode(config, 50, seed)
        durations = {round(step.duration, 12) for step in steps[1:]}
        assert len(durations) == 1
        rates.append(durations.pop())
    assert len(set(rates)) == 3


def test_step_noise_has_the_size_asked_for() -> None:
    _, steps = decode(EngineConfig(noise=0.01, restart_noise=0.0), 20_000)
    durations = [step.duration * 77.5 for step in steps[1:]]
    mean = sum(durations) / len(durations)
    deviation = (sum((d - mean) ** 2 for d in durations) / len(durations)) ** 0.5
    assert mean == pytest.approx(1.0, abs=0.002)
    assert deviation == pytest.approx(0.01, rel=0.15)

"""The engine model in virtual time: rates, acceptance, noise, disturbances."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest

from sparktui.sim.model.engine import Engine, EngineConfig, Request
from sparktui.sim.model.truth import GraphMode, ModeCost, Truth, true_ratio
from tests.sim.steps import FLAT, OFF_S, QUIET, decode, decode_rate, run


@pytest.mark.parametrize(("k", "expected"), [(0, 77.5), (3, 41.0)])
def test_decode_rate_is_the_published_one(k: int, expected: float) -> None:
    request, _ = decode(replace(QUIET, k=k), 60_000)
    assert decode_rate(request) == pytest.approx(expected, rel=0.01)
    assert Truth().decode_tok_s(k) == pytest.approx(expected, rel=1e-3)


def test_the_published_ratio() -> None:
    assert true_ratio() == pytest.approx(41 / 77.5, rel=1e-3)


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


def test_drift_counts_from_the_first_step_that_it_meets() -> None:
    engine = Engine(QUIET, random.Random(1))
    engine.drift_per_s = 0.1
    engine.add(Request("r", prompt_tokens=1, max_tokens=3), 1e6)
    first = run(engine)[0]
    assert first.duration < 2 * OFF_S, "the clock's own age is no drift"
    engine.add(Request("s", prompt_tokens=1, max_tokens=2), 2e6)
    assert run(engine)[0].duration < 2000 * OFF_S, "bounded, however long it lasts"


def test_a_step_grows_with_the_batch_and_more_so_under_speculation() -> None:
    truth = Truth()
    off = truth.step_s(0, 32) / truth.step_s(0, 1)
    on = truth.step_s(3, 32) / truth.step_s(3, 1)
    assert 1 < off < on
    assert 32 * truth.decode_tok_s(0, 32) > 8 * truth.decode_tok_s(0, 8)


def test_without_ignore_eos_an_answer_stops_by_itself() -> None:
    engine = Engine(replace(QUIET, k=3), random.Random(1))
    request = Request("r", prompt_tokens=1, max_tokens=500, stop_after=37)
    engine.add(request, 0.0)
    steps = run(engine)
    assert request.generated == 37
    assert steps[-1].outputs[0].finish_reason == "stop"


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
    config = replace(QUIET, restart_noise=0.05)
    rates = []
    for seed in range(3):
        _, steps = decode(config, 50, seed)
        durations = {round(step.duration, 12) for step in steps[1:]}
        assert len(durations) == 1
        rates.append(durations.pop())
    assert len(set(rates)) == 3


def test_step_noise_has_the_size_asked_for() -> None:
    _, steps = decode(replace(QUIET, noise=0.01), 20_000)
    durations = [step.duration / OFF_S for step in steps[1:]]
    mean = sum(durations) / len(durations)
    deviation = (sum((d - mean) ** 2 for d in durations) / len(durations)) ** 0.5
    assert mean == pytest.approx(1.0, abs=0.002)
    assert deviation == pytest.approx(0.01, rel=0.15)
    previous = [(a - mean) * (b - mean) for a, b in pairwise(durations)]
    assert sum(previous) / len(previous) / deviation**2 == pytest.approx(0.9, abs=0.03)


def test_each_request_has_its_own_temperature() -> None:
    truth = replace(FLAT, accepted={3: (0.0, 0.0, 0.0)}, greedy={3: (1.0, 1.0, 1.0)})
    engine = Engine(replace(QUIET, k=3, truth=truth), random.Random(1))
    greedy = Request("g", prompt_tokens=1, max_tokens=41, temperature=0.0)
    sampled = Request("s", prompt_tokens=1, max_tokens=41, temperature=1.0)
    unsaid = Request("u", prompt_tokens=1, max_tokens=41)
    for request in (greedy, sampled, unsaid):
        engine.add(request, 0.0)
    gains = {request.id: set[int]() for request in (greedy, sampled, unsaid)}
    for step in run(engine)[1:]:
        for output in step.outputs:
            gains[output.request.id].add(output.tokens)
    assert gains == {"g": {4}, "s": {1}, "u": {1}}


def test_slower_graphs_make_longer_steps() -> None:
    truth = replace(FLAT, mode_cost=ModeCost(full=1.0, piecewise=2.0, none=4.0))
    seconds = {}
    for graphs in get_args(GraphMode):
        _, steps = decode(replace(QUIET, k=3, truth=truth, graphs=graphs), 20)
        seconds[graphs] = steps[1].duration
    assert seconds["piecewise"] == pytest.approx(truth.step_s(3)), "as measured"
    assert seconds["none"] / seconds["full"] == pytest.approx(4.0)


def test_slowdown_pause_and_drift_act_from_the_next_step_on() -> None:
    engine = Engine(QUIET, random.Random(1))
    engine.add(Request("r", prompt_tokens=1, max_tokens=500), 0.0)

    def step_s() -> float:
        step = engine.step(engine.due or 0.0)
        assert step is not None
        return step.duration

    step_s()
    engine.slowdown = 2.0
    assert step_s() == pytest.approx(OFF_S)
    assert step_s() == pytest.approx(2 * OFF_S)
    assert engine.gpu(engine.due or 0.0).sm_clock_mhz == pytest.approx(2405 / 2)
    engine.slowdown = 1.0
    engine.pause(0.5)
    step_s()
    assert step_s() == pytest.approx(OFF_S + 0.5)
    engine.drift_per_s = 0.1
    begun = engine.due or 0.0
    while (engine.due or 0.0) < begun + 2.0:
        last = step_s()
    assert last / OFF_S == pytest.approx(math.exp(0.1 * 2.0), rel=0.02)
    engine.drift_per_s = 0.0
    step_s()
    assert step_s() == pytest.approx(OFF_S)


def test_a_step_grows_with_its_context() -> None:
    truth = replace(FLAT, context_ms=1.0)
    engine = Engine(replace(QUIET, truth=truth), random.Random(1))
    for i in range(2):
        engine.add(Request(str(i), prompt_tokens=1000, max_tokens=3), 0.0)
    steps = run(engine)
    expected = truth.step_s(0, 2) + 2 * 0.001
    assert steps[2].duration == pytest.approx(expected, rel=1e-3)


def test_the_same_seed_gives_the_same_steps() -> None:
    runs = [decode(EngineConfig(k=3), 300, seed)[1] for seed in (4, 4, 5)]
    lines = [[(step.at, step.accepted) for step in steps] for steps in runs]
    assert lines[0] == lines[1] != lines[2]

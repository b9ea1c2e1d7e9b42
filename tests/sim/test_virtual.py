"""Loads in virtual time."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

from sparktui.sim.model.engine import Engine, EngineConfig, Request
from sparktui.sim.model.truth import Truth
from sparktui.sim.model.virtual import Load, run
from tests.sim.steps import FLAT


def test_a_load_counts_what_it_should() -> None:
    figures = run(FLAT, 0, Load(clients=2, prompt_tokens=400, max_tokens=101, requests=6), noise=0.0)
    assert figures.requests == 6
    assert figures.decode_tok_s == pytest.approx(1 / FLAT.step_s(0, 2), rel=0.1)
    assert figures.step_ms == pytest.approx(1000 * FLAT.step_s(0, 2), rel=0.05)
    assert figures.output_tok_s == pytest.approx(2 / FLAT.step_s(0, 2), rel=0.15)
    assert min(figures.ttft_s) == pytest.approx(0.1 + FLAT.step_s(0), rel=0.01)
    assert (figures.acceptance, figures.acceptance_rate) == ((), 0.0)
    assert figures.kv_peak == pytest.approx(2 * 32 * 16 / FLAT.kv_cache_tokens, rel=0.02)
    both = FLAT.gpu.power_w.at(2)
    assert 32 < both < 40
    last = FLAT.step_s(0)  # ends may leave one of them alone for a step
    assert figures.gpu.energy_j == pytest.approx(both * figures.seconds, abs=12 * both * last)


def test_the_peak_is_the_busiest_logged_period() -> None:
    """One request of 200 tokens within the first ten seconds, then nobody decodes for long."""
    truth = replace(FLAT, prefill_tok_s=100.0)
    load = Load(clients=1, prompt_tokens=1000, max_tokens=400, seconds=40.0)
    figures = run(truth, 0, load, noise=0.0)
    # a prompt takes 10 s, an answer 5.2 s: no period has more than one answer
    assert figures.peak_tok_s == pytest.approx(40.0, rel=0.05)
    assert figures.output_tok_s < 30


def test_a_repeated_prompt_is_cached_unless_the_cache_is_useless() -> None:
    load = Load(prompt_tokens=512, max_tokens=2, requests=3, same_prompt=True)
    on = run(FLAT, 0, load)
    useless = run(replace(FLAT, prefix_cache="useless"), 0, load)
    assert (on.cache_queries, on.cache_hits) == (3 * 512, 2 * 496)
    assert on.ttft_s[2] < on.ttft_s[0] / 3
    assert (useless.cache_queries, useless.cache_hits) == (3 * 512, 0)
    assert useless.ttft_s[2] == pytest.approx(useless.ttft_s[0], rel=0.05)


def test_seeds_repeat() -> None:
    first, again, other = (run(Truth(), 3, Load(clients=3, seconds=20.0), seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_256_requests_take_a_small_part_of_a_core() -> None:
    engine = Engine(EngineConfig(k=3), random.Random(1))
    for i in range(256):
        engine.add(Request(str(i), 16, 10_000), 0.0)
    for _ in range(3):
        engine.step(engine.due or 0.0)
    begun, count = time.process_time(), 100
    for _ in range(count):
        engine.step(engine.due or 0.0)
    seconds = (time.process_time() - begun) / count
    assert engine.running == 256
    assert 50 * seconds < 0.25, f"{1e6 * seconds:.0f} us a step: 50 steps/s would take {50 * seconds:.0%}"

"""Estimates of what steps move in a GPU's memory, against the model's figures."""

from __future__ import annotations

import pytest

from sparktui.sim.counts.metrics import Metrics
from sparktui.sim.counts.traffic import Traffic
from sparktui.sim.model.requests import Request
from sparktui.sim.model.truth import Truth
from tests.sim.inside import SPEC, chat, inside
from tests.sim.metered import quiet, run, values
from tests.sim.wire import CHAT, counters

GIB = 2**30
READ, WRITTEN = "estimated_read_bytes_per_gpu_total", "estimated_write_bytes_per_gpu_total"
FLOPS = "estimated_flops_per_gpu_total"


def test_a_step_reads_the_weights_once_and_the_context_of_each_request() -> None:
    engine, traffic = quiet(0), Traffic(weights=1000.0, token=2.0)
    metrics = Metrics("tiny", 0, {}, traffic=traffic)
    for name in "ab":
        engine.add(Request(name, prompt_tokens=10, max_tokens=3), 0.0)
    steps = run(engine, metrics)
    # the first request is alone in step 1; the second one's prompt is computed beside its first decode
    assert [step.scheduled_tokens for step in steps] == [10, 11, 2, 1]
    assert [step.context for step in steps] == [0, 11, 12 + 11, 12]
    told = values(metrics)
    assert told[READ] == 4 * 1000 + 2 * (10 + (11 + 10) + 23 + 12)
    assert told[WRITTEN] == 2 * (10 + 11 + 2 + 1)
    assert told[FLOPS] == 2 * 1000 * (10 + 11 + 2 + 1)


def test_bytes_of_a_token_come_from_the_model_and_gpus_share_them() -> None:
    shape = Truth().boot
    traffic = Traffic.of(shape, 656_128, 2)
    assert traffic.weights == pytest.approx(18.12 * GIB / 2)
    assert traffic.token * 656_128 == pytest.approx(40.05 * GIB / 2)


@pytest.mark.parametrize("flag", [True, False], ids=["with", "without"])
async def test_estimates_move_with_the_flag_only(flag: bool) -> None:
    async with inside(*(["--enable-mfu-metrics"] if flag else []), *SPEC) as server:
        await server.call("POST", CHAT, json=chat())
        told = await counters(server)
    moved = [told[name] > 0 for name in (READ, WRITTEN, FLOPS)]
    assert moved == [flag] * 3
    assert told["spec_decode_num_drafts_total"] > 0
    if flag:
        steps = told["inter_token_latency_seconds_count"] + 1
        assert told[READ] >= steps * 18.12 * GIB
        assert told[READ] < steps * 18.12 * GIB * 1.01, "32 tokens hardly matter"

"""Cases of users' reports that are about /metrics; their excerpts are in tests/fixtures/cases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparktui.metrics.liveness import Liveness
from sparktui.metrics.page import parse
from sparktui.metrics.window import difference
from tests.metrics.pages import made, made_text, page_of

CASES = Path(__file__).parent.parent / "fixtures" / "cases"


def case(name: str) -> str:
    return (CASES / f"{name}.txt").read_text("utf-8")


def test_41_a_hang_behind_a_good_health_check() -> None:
    """One request runs, generation_tokens_total is frozen across a 10 s poll, /health says 200."""
    told = re.search(
        r"num_requests_running = (\d+) .* frozen across a (\d+)s poll", case("41-hang-health-200")
    )
    assert told is not None
    running, seconds = map(int, told.groups())
    liveness = Liveness()
    frozen = {"num_requests_running": running, "generation_tokens_total": 812}
    assert liveness.read(made(0.0, **frozen)) == 0.0
    assert liveness.read(made(float(seconds), **frozen)) == 10.0
    assert liveness.read(made(70 * 60.0, **frozen)) == 4200.0  # its log was silent for 70 minutes


def test_52_an_inter_token_latency_under_speculation_is_a_step() -> None:
    """A step gave 4 tokens: as a latency of tokens, speculation would look four times as slow as it is."""
    assert "one observation per streamed output" in case("52-itl-is-per-step")
    old, new = (page_of(f"0.32.0-cpu/on_{when}.txt", t) for when, t in (("midload", 0.0), ("after", 4.0)))
    delta = difference(old, new)
    assert delta.step_ms == pytest.approx((31.598476863998712 - 28.215549880000708) / 282 * 1000)
    assert delta.tokens_per_step == 4.0
    assert delta.tpot_ms is not None
    assert delta.step_ms is not None
    assert delta.tpot_ms < delta.step_ms


def test_53_a_gauge_under_its_old_and_its_new_name() -> None:
    names = re.findall(r"vllm:(\w+)", case("53-renamed-gauges"))
    assert names == ["gpu_cache_usage_perc", "kv_cache_usage_perc"]
    for name in names:
        assert made(**{name: 0.42}).kv_usage == 0.42  # 0..1, although it is named perc
    assert made(num_requests_running=0).kv_usage is None  # of neither: not known, never 0 %


def test_55_drafts_of_data_parallel_engines_add_up() -> None:
    page = parse(re.sub(r",\.\.\.| +\(8 engines\)", "", case("55-dp-engine-labels")), 0.0)
    assert page.counters["spec_decode_num_drafts_total"] == 22 + 15
    assert page.engines == 2
    shares = "".join(f'vllm:kv_cache_usage_perc{{engine="{i}"}} {(i + 1) / 10}\n' for i in range(8))
    eight = parse(shares + made_text(num_requests_running=3), 0.0)
    assert eight.kv_usage == 0.8
    assert eight.kv_usage_each == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)

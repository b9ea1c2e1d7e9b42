"""The stand-in's /metrics: what counts, and when."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from sparktui.metrics.page import PageError, parse
from sparktui.sim.counts.choices import Choice, Parent
from sparktui.sim.counts.httpcounts import UNKNOWN_ROUTE
from sparktui.sim.counts.metrics import Metrics
from sparktui.sim.model.requests import Output, Request, Step
from sparktui.sim.model.truth import Truth
from sparktui.sim.release import Release
from tests.sim.metered import quiet, run, values


def test_spec_counters_are_0_after_boot_and_absent_when_off() -> None:
    on = values(Metrics("tiny", 2, {}))
    assert on["spec_decode_num_drafts_total"] == 0
    assert on["spec_decode_num_accepted_tokens_per_pos_total:1"] == 0
    assert "spec_decode_num_accepted_tokens_per_pos_total:2" not in on
    assert b"spec_decode" not in Metrics("tiny", 0, {}).page()


def test_latency_counts_outputs_not_tokens() -> None:
    engine, metrics = quiet(3), Metrics("tiny", 3, {})
    engine.add(Request("r", prompt_tokens=50, max_tokens=200), 0.0)
    steps = run(engine, metrics)
    found = values(metrics)
    assert found["generation_tokens_total"] == 200
    assert found["inter_token_latency_seconds_count"] == len(steps) - 1 < 199
    assert found["inter_token_latency_seconds_sum"] / (len(steps) - 1) == pytest.approx(
        Truth().step_s(3), rel=0.01
    )
    assert found["iteration_tokens_total_count"] == len(steps)
    assert found["iteration_tokens_total_sum"] == 250
    assert found["time_to_first_token_seconds_count"] == 1
    assert found["spec_decode_num_drafts_total"] == len(steps) - 1
    accepted = sum(found[f"spec_decode_num_accepted_tokens_per_pos_total:{i}"] for i in range(3))
    assert found["spec_decode_num_accepted_tokens_total"] == accepted
    assert found["request_time_per_output_token_seconds_sum"] == pytest.approx(
        found["request_decode_time_seconds_sum"] / 199
    )


def test_drafts_may_be_shorter_than_k() -> None:
    metrics = Metrics("tiny", 3, {})
    step = Step(1.0, 0.1, (), (), 0, drafts=4, draft_tokens=7, accepted=(3, 2, 1))
    metrics.record(step, quiet(3))
    found = values(metrics)
    assert found["spec_decode_num_draft_tokens_total"] == 7
    assert found["spec_decode_num_accepted_tokens_total"] == 6
    assert found["iteration_tokens_total_count"] == 0  # nothing came out: vLLM observes no iteration


def test_a_prompt_in_chunks_counts_once_and_with_its_first_token() -> None:
    engine, metrics = quiet(0, max_num_batched_tokens=64), Metrics("tiny", 0, {})
    engine.add(Request("r", prompt_tokens=200, max_tokens=3), 0.0)
    first = engine.step(engine.due or 0.0)
    assert first is not None
    metrics.record(first, engine)
    before = values(metrics)
    assert before["prompt_tokens_total"] == 0
    assert before["prefix_cache_queries_total"] == 200
    assert before["iteration_tokens_total_count"] == 0
    run(engine, metrics)
    after = values(metrics)
    assert after["prompt_tokens_total"] == 200
    assert after["prompt_tokens_by_source_total:local_compute"] == 200
    assert after["prefix_cache_queries_total"] == 200
    assert after["request_prefill_time_seconds_sum"] == pytest.approx(
        after["time_to_first_token_seconds_sum"]
    )


def step_of(*outputs: Output, admitted: tuple[Request, ...] = ()) -> Step:
    """A step without drafts."""
    return Step(9.0, 0.1, outputs, (), 0, 0, 0, (), admitted=admitted)


def test_cached_tokens_are_hits_but_not_computed() -> None:
    metrics, engine = Metrics("tiny", 0, {}, Release("0.32.0")), quiet(0)
    request = Request("r", prompt_tokens=100, max_tokens=9, cached_tokens=64, arrived=8.0)
    metrics.record(step_of(Output(request, 1, None), admitted=(request,)), engine)
    found = values(metrics)
    assert found["prompt_tokens_total"] == found["prefix_cache_queries_total"] == 100
    assert found["prefix_cache_hits_total"] == found["prompt_tokens_cached_total"] == 64
    assert found["prompt_tokens_by_source_total:local_compute"] == 36
    assert found["prompt_tokens_by_source_total:local_cache_hit"] == 64
    assert found["prompt_tokens_cached_by_source_total:device"] == 64
    assert found["iteration_tokens_total_sum"] == 37
    assert found["time_to_first_token_seconds_sum"] == 1.0


def test_without_prefix_caching_nothing_is_looked_up() -> None:
    engine, metrics = quiet(0, prefix_caching=False), Metrics("tiny", 0, {})
    engine.add(Request("r", prompt_tokens=100, max_tokens=9), 0.0)
    run(engine, metrics)
    found = values(metrics)
    assert (found["prefix_cache_queries_total"], found["prompt_tokens_total"]) == (0, 100)


def test_a_preempted_request_is_looked_up_and_prefilled_once_in_the_counters() -> None:
    truth = replace(Truth(), kv_cache_tokens=400)
    engine, metrics = quiet(0, truth=truth), Metrics("tiny", 0, {}, Release("0.32.0"))
    for name in "ab":
        engine.add(Request(name, prompt_tokens=100, max_tokens=200), 0.0)
    steps = run(engine, metrics)
    found = values(metrics)
    assert found["num_preemptions_total"] == sum(step.preempted for step in steps) > 0
    assert found["request_num_preemptions_sum"] == found["num_preemptions_total"]
    assert found["prompt_tokens_total"] == found["prefix_cache_queries_total"] == 200
    assert found["generation_tokens_total"] == 400
    assert found["time_to_first_token_seconds_count"] == 2
    assert found["inter_token_latency_seconds_count"] == 398


def test_choices_count_once_with_n_and_the_longest_as_the_last_one_ends() -> None:
    engine, metrics, parent = quiet(0), Metrics("tiny", 0, {}), Parent.of(3)
    for index, tokens in enumerate((4, 9, 9)):
        engine.add(Choice(str(index), prompt_tokens=10, max_tokens=tokens, parent=parent), 0.0)
    for _ in range(4):
        step = engine.step(engine.due or 0.0)
        assert step is not None
        metrics.record(step, engine)
    early = values(metrics)
    assert early["request_success_total:length"] == 1
    assert early["request_params_n_count"] == early["request_max_num_generation_tokens_count"] == 0
    run(engine, metrics)
    found = values(metrics)
    assert (found["request_params_n_count"], found["request_params_n_sum"]) == (1, 3)
    longest = "request_max_num_generation_tokens"
    assert (found[f"{longest}_count"], found[f"{longest}_sum"]) == (1, 9)
    assert (found["request_generation_tokens_count"], found["request_generation_tokens_sum"]) == (3, 22)


def test_an_abort_is_no_success_and_leaves_no_request_figures() -> None:
    engine, metrics = quiet(0), Metrics("tiny", 0, {})
    gone = Request("gone", prompt_tokens=10, max_tokens=50)
    engine.add(gone, 0.0)
    engine.add(Request("stays", prompt_tokens=10, max_tokens=50, stop_after=20), 0.0)
    step = engine.step(engine.due or 0.0)
    assert step is not None
    metrics.record(step, engine)
    engine.abort(gone)
    metrics.set_state(engine)
    run(engine, metrics)
    found = values(metrics)
    by_reason = {r: found[f"request_success_total:{r}"] for r in ("stop", "length", "abort", "error")}
    assert by_reason == {"stop": 1, "length": 0, "abort": 0, "error": 0}
    assert found["e2e_request_latency_seconds_count"] == 1
    assert found["generation_tokens_total"] == 21
    assert found["num_requests_running"] == 0


def test_each_engine_has_its_own_samples() -> None:
    engines, metrics = (quiet(0), quiet(0)), Metrics("tiny", 0, {}, engines=2)
    for index, tokens in enumerate((5, 7)):
        engines[index].add(Request("r", prompt_tokens=10, max_tokens=tokens), 0.0)
        run(engines[index], metrics, index)
    assert values(metrics, "0")["generation_tokens_total"] == 5
    assert values(metrics, "1")["generation_tokens_total"] == 7
    assert values(metrics, "1")["iteration_tokens_total_count"] == 7
    assert metrics.page().count(b"vllm:cache_config_info{") == 2
    assert [seen.totals.generation_tokens for seen in metrics.observed] == [5, 7]
    page = parse(metrics.page().decode(), 0.0)
    assert (page.engines, page.counters["generation_tokens_total"]) == (2, 12)


def test_reset_starts_counters_again_and_spares_gauges_and_totals() -> None:
    engine, metrics = quiet(3), Metrics("tiny", 3, {})
    engine.add(Request("r", prompt_tokens=10, max_tokens=400), 0.0)
    for _ in range(5):
        step = engine.step(engine.due or 0.0)
        assert step is not None
        metrics.record(step, engine)
    metrics.http.observe("GET", "/v1/models", 200, 0.01)
    before, total = values(metrics), metrics.observed[0].totals
    metrics.reset()
    after = values(metrics)
    counting = [
        name for name in after if name.startswith(("spec_decode", "generation", "prompt", "request_"))
    ]
    assert len(counting) > 20
    assert all(after[name] == 0 for name in counting if "_created" not in name)
    assert all(after[name] > before[name] for name in counting if "_created" in name)
    assert after["num_requests_running"] == 1
    assert not any(name.startswith("http_requests_total") for name in after)
    assert metrics.observed[0].totals == total


def test_without_log_stats_no_family_of_vllms_is_shown() -> None:
    engine, metrics = quiet(0), Metrics("tiny", 0, {}, log_stats=False)
    engine.add(Request("r", prompt_tokens=10, max_tokens=4), 0.0)
    run(engine, metrics)
    page = metrics.page().decode()
    assert "vllm:" not in page
    assert "process_resident_memory_bytes" in page
    assert "http_request_duration_highr_seconds_count 0.0" in page
    with pytest.raises(PageError, match="no vLLM metric"):
        parse(page, 0.0)


def test_http_requests_are_counted_by_route_and_polls_are_not() -> None:
    http = Metrics("tiny", 0, {}).http
    for route in ("/metrics", "/health", "/version", "/ping", "/load"):
        http.observe("GET", route, 200, 0.1)
    http.observe("POST", "/v1/completions", 200, 0.05, asked=100, answered=550)
    http.observe("POST", "/v1/completions", 400, 0.2, asked=50, answered=90)
    http.observe("GET", UNKNOWN_ROUTE, 404, 0.002, answered=22)
    text = "\n".join(http.lines())
    assert 'http_requests_total{handler="/v1/completions",method="POST",status="4xx"} 1.0' in text
    assert 'http_requests_total{handler="none",method="GET",status="4xx"} 1.0' in text
    assert 'http_request_size_bytes_sum{handler="/v1/completions"} 150.0' in text
    assert 'http_response_size_bytes_count{handler="/v1/completions"} 2.0' in text
    assert 'duration_seconds_bucket{handler="/v1/completions",le="0.1",method="POST"} 1.0' in text
    assert "http_request_duration_highr_seconds_count 3.0" in text
    assert "/metrics" not in text


def test_foreign_model_names_are_escaped() -> None:
    metrics = Metrics('a"b\\c\nd', 0, {})
    assert r'model_name="a\"b\\c\nd"' in metrics.page().decode()
    assert parse(metrics.page().decode(), 0.0).engines == 1


def test_a_step_of_256_outputs_is_counted_in_well_under_a_millisecond() -> None:
    engine, metrics = quiet(3), Metrics("tiny", 3, {})
    for index in range(256):
        engine.add(Request(f"r{index}", prompt_tokens=20, max_tokens=10**6), 0.0)
    step = None
    while step is None or len(step.outputs) < 256 or step.prefilled:
        step = engine.step(engine.due or 0.0)
    spent = []
    for _ in range(30):
        start = time.thread_time()
        metrics.record(step, engine)
        spent.append(time.thread_time() - start)
    assert min(spent) < 0.0005

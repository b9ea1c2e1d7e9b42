"""Pages of three releases, read against a plain grep of the same text; and pages that are none."""

from __future__ import annotations

import math

import pytest

from sparktui.metrics.page import COUNTERS, HISTOGRAMS, PageError, parse
from tests.metrics.pages import RECORDED, grep, histogram, made, made_text, page_of, text_of

OFF = [name for name in RECORDED if "off" in name]
ON = [name for name in RECORDED if "off" not in name]


def test_pages_of_three_releases_and_of_both_arms_are_there() -> None:
    assert {name.split("/")[0] for name in OFF} == {"0.24.0-h200", "0.27.1-cpu", "0.32.0-cpu"}
    assert {name.split("/")[0] for name in ON} == {"0.24.0-h200", "0.27.1-cpu", "0.32.0-cpu"}


@pytest.mark.parametrize("name", RECORDED)
def test_counters_are_those_on_the_page(name: str) -> None:
    text = text_of(name)
    on_page = {counter: grep(text, f"vllm:{counter}") for counter in COUNTERS}
    assert page_of(name).counters == {counter: sum(found) for counter, found in on_page.items() if found}


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("histogram_name", HISTOGRAMS)
def test_histograms_are_those_on_the_page(name: str, histogram_name: str) -> None:
    text = text_of(name)
    read = page_of(name).histograms[histogram_name]
    assert [read.sum] == grep(text, f"vllm:{histogram_name}_sum")
    assert [read.count] == grep(text, f"vllm:{histogram_name}_count")
    assert list(read.buckets.values()) == grep(text, f"vllm:{histogram_name}_bucket")
    assert max(read.buckets) == math.inf


@pytest.mark.parametrize("name", RECORDED)
def test_gauges_and_birth_are_those_on_the_page(name: str) -> None:
    text, page = text_of(name), page_of(name, 12.5)
    assert [page.running] == grep(text, "vllm:num_requests_running")
    assert [page.waiting] == grep(text, "vllm:num_requests_waiting")
    assert [page.kv_usage] == grep(text, "vllm:kv_cache_usage_perc")
    assert [page.created] == grep(text, "vllm:generation_tokens_created")
    assert (page.engines, page.t) == (1, 12.5)


@pytest.mark.parametrize("name", OFF)
def test_without_speculation_there_are_no_counters_of_it(name: str) -> None:
    page = page_of(name)
    assert not page.speculating
    assert page.accepted_by_position == ()
    assert not [counter for counter in page.counters if counter.startswith("spec_decode")]


@pytest.mark.parametrize("name", ON)
def test_speculation_shows_from_the_first_page_on(name: str) -> None:
    page = page_of(name)
    assert page.speculating
    assert len(page.accepted_by_position) == 3


def test_positions_are_in_order() -> None:
    page = page_of("0.24.0-h200/metrics_fi_ngram_after.txt")
    assert page.accepted_by_position == (33453.0, 33453.0, 32922.0)
    lines = [f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{i}"}} {i}' for i in (10, 2, 0)]
    assert parse("\n".join([*lines, ""]) + made_text(num_requests_running=0), 0).accepted_by_position == (
        0,
        2,
        10,
    )


def test_a_busy_page_of_the_release_in_use() -> None:
    page = page_of("0.32.0-cpu/on_midload.txt")
    assert (page.running, page.waiting) == (8.0, 0.0)
    assert page.kv_usage == 0.5079365079365079
    assert page.counters["generation_tokens_total"] == 4664
    assert page.counters["request_success_total"] == 13  # summed over finish reasons


def test_names_of_older_releases_mean_the_newer_ones() -> None:
    text = made_text(
        gpu_cache_usage_perc=0.25, gpu_prefix_cache_queries_total=400, gpu_prefix_cache_hits_total=100
    ) + histogram("time_per_output_token_seconds", 1.5, _0_01=2, _0_025=6, _Inf=6)
    page = parse(text, 0.0)
    assert page.kv_usage == 0.25
    assert page.counters == {"prefix_cache_queries_total": 400.0, "prefix_cache_hits_total": 100.0}
    steps = page.histograms["inter_token_latency_seconds"]
    assert (steps.sum, steps.count) == (1.5, 6.0)
    assert steps.buckets == {0.01: 2.0, 0.025: 6.0, math.inf: 6.0}


def test_a_figure_under_both_its_names_counts_once() -> None:
    both = made_text(prefix_cache_hits_total=100, gpu_prefix_cache_hits_total=100)
    for name in ("inter_token_latency_seconds", "time_per_output_token_seconds"):
        both += histogram(name, 1.5, _0_01=2, _Inf=6)
    page = parse(both, 0.0)
    assert page.counters["prefix_cache_hits_total"] == 100.0
    assert page.histograms["inter_token_latency_seconds"].count == 6.0


def two_engines() -> str:
    one = text_of("0.32.0-cpu/on_midload.txt")
    other = text_of("0.32.0-cpu/on_after.txt").replace('engine="0"', 'engine="1"')
    return one + "\n".join(line for line in other.splitlines() if not line.startswith("#")) + "\n"


def test_counters_of_several_engines_add_up() -> None:
    page = parse(two_engines(), 0.0)
    assert page.engines == 2
    assert page.counters["generation_tokens_total"] == 4664 + 5792
    assert page.accepted_by_position == (1031 + 1313, 1031 + 1313, 1012 + 1294)
    assert page.histograms["inter_token_latency_seconds"].count == 1571 + 1853
    assert page.histograms["time_to_first_token_seconds"].buckets[0.06] == 3 + 3
    assert page.running == 8.0


def test_kv_usage_of_several_engines_is_the_fullest_never_a_sum() -> None:
    text = 'vllm:kv_cache_usage_perc{engine="0"} 0.41\nvllm:kv_cache_usage_perc{engine="1"} 0.95\n'
    assert parse(text, 0.0).kv_usage == 0.95
    assert parse(text, 0.0).engines == 2


def test_the_birth_of_several_engines_is_the_first() -> None:
    text = (
        'vllm:generation_tokens_created{engine="0"} 20.5\nvllm:generation_tokens_created{engine="1"} 10.5\n'
    )
    assert parse(text, 0.0).created == 10.5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "OK",
        "<!DOCTYPE html><html><body><h1>404 vllm:metrics</h1></body></html>",
        '{"error":"Unauthorized"}',
        "# HELP python_info x\n# TYPE python_info gauge\npython_info 1.0\n",
        "vllm:",
        "# TYPE vllm:generation_tokens_total counter\n",
        "vllm:generation_tokens_total{engine=\n",
        "vllm:generation_tokens_total many\n",
        'vllm:generation_tokens_total{engine="0"}\n',
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0"} 3\n',
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{position="first"} 3\n',
        "vllm:inter_token_latency_seconds_bucket 3\n",
        'vllm:inter_token_latency_seconds_bucket{le="soon"} 3\n',
        "\x00\x01\x02",
    ],
)
def test_what_is_no_page_of_vllm_is_refused(text: str) -> None:
    with pytest.raises(PageError):
        parse(text, 0.0)


def test_samples_of_other_names_do_no_harm() -> None:
    text = made_text(
        generation_tokens_total=5, num_requests_waiting_by_reason=7, kv_cache_usage_perc_max=9,
        num_requests_running=2,
    )  # fmt: skip
    page = parse("other_metric{} 3\nhttp_requests_total 4\n" + text, 0.0)
    assert page.counters == {"generation_tokens_total": 5.0}
    assert (page.running, page.waiting, page.kv_usage) == (2.0, None, None)
    assert page.histograms == {}


@pytest.mark.parametrize("bad", ["NaN", "+Inf", "-Inf"])
@pytest.mark.parametrize(
    "name",
    ["generation_tokens_total", "kv_cache_usage_perc", "num_requests_running", "generation_tokens_created"],
)
def test_a_sample_that_is_no_number_is_absent(name: str, bad: str) -> None:
    page = parse(made_text(**{name: bad}) + made_text(prompt_tokens_total=3, num_requests_waiting=1), 0.0)
    assert page.counters == {"prompt_tokens_total": 3.0}
    assert (page.kv_usage, page.running, page.created) == (None, None, None)
    assert page.waiting == 1.0


def test_one_engine_without_a_number_leaves_no_sum_of_the_others() -> None:
    text = (
        'vllm:generation_tokens_total{engine="0"} 10\nvllm:generation_tokens_total{engine="1"} NaN\n'
        'vllm:prompt_tokens_total{engine="0"} 4\n'
    )
    assert parse(text, 0.0).counters == {"prompt_tokens_total": 4.0}


@pytest.mark.parametrize("part", ["sum", "count", "bucket"])
def test_a_histogram_with_a_part_that_is_no_number_is_absent(part: str) -> None:
    text = histogram("time_to_first_token_seconds", 1.5, _0_25=3, _Inf=4)
    lines = [line.rpartition(" ")[0] + " NaN" if f"_{part}" in line else line for line in text.splitlines()]
    assert parse("\n".join(lines) + "\n" + made_text(num_requests_running=1), 0.0).histograms == {}


def test_a_page_of_nothing_but_nan_is_no_page() -> None:
    with pytest.raises(PageError, match="no vLLM metric"):
        made(generation_tokens_total="NaN", kv_cache_usage_perc="NaN")

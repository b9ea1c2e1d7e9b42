"""The stand-in's /metrics by release: line by line as recorded, by the sources' names, read by sparktui."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparktui.metrics.page import parse
from sparktui.sim.counts.metrics import Metrics
from sparktui.sim.model.requests import Request
from sparktui.sim.release import RELEASES, Release
from tests.sim.metered import quiet, run, values

PAGES = Path(__file__).parents[1] / "fixtures" / "metrics"
RECORDED = [  # page, release, k, the model's length, whether a chat request was answered
    ("0.24.0-h200/metrics_fi_off_idle.txt", "0.24.0", 0, 8192, False),
    ("0.24.0-h200/metrics_fi_off_after.txt", "0.24.0", 0, 8192, True),
    ("0.24.0-h200/metrics_fi_ngram_idle.txt", "0.24.0", 3, 8192, False),
    ("0.24.0-h200/metrics_fi_ngram_after.txt", "0.24.0", 3, 8192, True),
    ("0.27.1-cpu/metrics_off_after.txt", "0.27.1", 0, 4096, True),
    ("0.27.1-cpu/metrics_draft_idle.txt", "0.27.1", 3, 4096, False),
    ("0.27.1-cpu/metrics_draft_after.txt", "0.27.1", 3, 4096, True),
    ("0.32.0-cpu/on_idle.txt", "0.32.0", 3, 4096, False),
    ("0.32.0-cpu/on_after.txt", "0.32.0", 3, 4096, True),
]


def shape(page: str) -> Iterator[str]:
    """The page's lines without figures and without the values of the info gauges."""
    for line in page.replace("/models/tiny-1b", "tiny").splitlines():
        if line.startswith("#"):
            yield line
            continue
        sample = line.rpartition(" ")[0]
        info = sample.startswith(("vllm:cache_config_info", "python_info"))
        yield re.sub(r'="[^"]*"', "", sample) if info else sample


@pytest.mark.parametrize(("page", "version", "k", "length", "asked"), RECORDED)
def test_the_page_is_the_recorded_one_line_by_line(
    page: str, version: str, k: int, length: int, asked: bool
) -> None:
    """Names, order, types, help, labels and their values, buckets, _created: everything but the figures."""
    metrics = Metrics("tiny", k, {}, Release(version), max_model_len=length)
    if asked:
        metrics.http.observe("POST", "/v1/chat/completions", 200, 0.4, asked=230)
    recorded = (PAGES / page).read_text(encoding="utf-8")
    assert list(shape(metrics.page().decode())) == list(shape(recorded))


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("gpu_cache_usage_perc", ()),
        ("time_per_output_token_seconds_count", ("0.11.2",)),
        ("prompt_tokens_recomputed_total", ("0.17.1", "0.19.1")),
        ("prompt_tokens_cached_total", RELEASES[2:]),
        ("request_prefill_kv_computed_tokens_count", RELEASES[1:]),
        ("num_requests_waiting_by_reason:capacity", RELEASES[4:]),
        ("request_num_preemptions_count", ("0.30.0", "0.32.0", "0.33.0")),
        ("admission_rejections_total:max_num_queued_reqs", ("0.32.0", "0.33.0")),
        ("request_time_per_output_token_seconds_count", RELEASES),
        ("kv_cache_usage_perc", RELEASES),
    ],
)
def test_which_release_shows_what(name: str, releases: tuple[str, ...]) -> None:
    showing = [version for version in RELEASES if name in values(Metrics("m", 3, {}, Release(version)))]
    assert showing == list(releases)


def test_hidden_families_can_be_asked_for() -> None:
    engine, metrics = quiet(0), Metrics("m", 0, {}, Release("0.11.2"), hidden=True)
    engine.add(Request("r", prompt_tokens=100, max_tokens=5), 0.0)
    step = engine.step(engine.due or 0.0)
    assert step is not None
    metrics.record(step, engine)
    found = values(metrics)
    assert found["gpu_cache_usage_perc"] == found["kv_cache_usage_perc"] > 0
    assert found["gpu_prefix_cache_queries_total"] == found["prefix_cache_queries_total"] == 100


def test_known_cache_labels_are_shown_and_unknown_ones_left_out() -> None:
    known = {"num_gpu_blocks": "41008", "kv_cache_size_tokens": "656128", "no_such_label": "1"}
    line = 'vllm:cache_config_info{_block_size_resolved="True",block_size="16",'
    page = Metrics("m", 0, known, Release("0.24.0")).page().decode()
    assert line in page
    assert 'num_gpu_blocks="41008"' in page
    assert "no_such_label" not in page
    older = Metrics("m", 0, known, Release("0.17.1")).page().decode()
    assert 'num_gpu_blocks="41008"' in older
    assert "kv_cache_size_tokens" not in older


@pytest.mark.parametrize("version", RELEASES)
def test_sparktuis_own_reader_reads_every_release(version: str) -> None:
    engine, metrics = quiet(2), Metrics("tiny", 2, {}, Release(version))
    engine.add(Request("r", prompt_tokens=40, max_tokens=90), 0.0)
    run(engine, metrics)
    page = parse(metrics.page().decode(), 1.0)
    found = values(metrics)
    assert page.speculating
    assert page.counters["generation_tokens_total"] == 90
    assert page.accepted_by_position == tuple(
        found[f"spec_decode_num_accepted_tokens_per_pos_total:{i}"] for i in range(2)
    )
    assert page.histograms["time_to_first_token_seconds"].count == 1
    assert page.kv_usage == 0.0
    assert page.created == pytest.approx(time.time(), abs=60)

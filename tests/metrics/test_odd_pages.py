"""Pages of several engines and API servers, of proxies, in OpenMetrics, cut, or far too large."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import ALLOWUTF8, UNDERSCORES
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from sparktui.metrics.page import Page, PageError, parse
from sparktui.metrics.window import restarted
from tests.metrics.pages import RECORDED, made_text, page_of, text_of

BUSY = "0.32.0-cpu/on_midload.txt"


class Again(Collector):
    """A recorded page's families, to be written in another format."""

    def __init__(self, name: str) -> None:
        self._families = list(text_string_to_metric_families(text_of(name)))

    def collect(self) -> Iterator[Metric]:
        yield from self._families


@pytest.mark.parametrize(
    ("escaping", "sample"), [(ALLOWUTF8, "vllm:"), (UNDERSCORES, "vllm_")], ids=["as-it-is", "underscores"]
)
@pytest.mark.parametrize("name", RECORDED)
def test_a_page_in_openmetrics_says_the_same(name: str, escaping: str, sample: str) -> None:
    registry = CollectorRegistry()
    registry.register(Again(name))
    text = openmetrics(registry, escaping).decode()  # type: ignore[no-untyped-call]
    assert text.endswith("# EOF\n")
    assert "# TYPE vllm:generation_tokens counter" in text  # without the _total of its samples
    assert f"\n{sample}generation_tokens_total{{" in text
    assert parse(text, 0.0) == page_of(name)
    assert parse(text.removesuffix("\n"), 0.0) == page_of(name)


def test_a_figure_under_both_prefixes_counts_once() -> None:
    text = made_text(generation_tokens_total=5)
    assert parse(text + text.replace("vllm:", "vllm_"), 0.0).counters == {"generation_tokens_total": 5.0}


def with_exemplars() -> CollectorRegistry:
    registry = CollectorRegistry()
    labels = {"engine": "0", "model_name": "m"}
    tokens = Counter("vllm:generation_tokens", "x", list(labels), registry=registry)
    ttft = Histogram("vllm:time_to_first_token_seconds", "x", list(labels), registry=registry)
    Gauge("vllm:num_requests_running", "x", list(labels), registry=registry).labels(**labels).set(3)
    tokens.labels(**labels).inc(1234, {"trace_id": "a b # 9 {", "span": "7"})
    ttft.labels(**labels).observe(0.3, {"trace_id": "99999"})
    return registry


def test_exemplars_are_not_the_samples() -> None:
    text = openmetrics(with_exemplars()).decode()  # type: ignore[no-untyped-call]
    assert text.count(" # {") == 2
    page = parse(text, 0.0)
    assert page.counters == {"generation_tokens_total": 1234.0}
    assert page.running == 3.0
    assert page.histograms["time_to_first_token_seconds"].sum == 0.3
    plain = parse(generate_latest(with_exemplars()).decode(), 0.0)
    assert (page.counters, page.histograms) == (plain.counters, plain.histograms)


def test_each_api_servers_gauge_is_what_it_heard_last() -> None:
    """As the page of vLLM PR 28792, before its fix: eight API servers, one of them up to date."""
    usage = (0.0, 0.0, 0.6530455880475035, 0.0, 0.0, 0.0, 0.0, 0.0)
    text = "".join(
        f'vllm:kv_cache_usage_perc{{engine="0",model_name="Qwen/Qwen3-VL-8B-Instruct",pid="{270 + i}"}} {u}\n'
        f'vllm:num_requests_running{{engine="0",model_name="Qwen/Qwen3-VL-8B-Instruct",pid="{270 + i}"}} 6\n'
        for i, u in enumerate(usage)
    )
    page = parse(text, 0.0)
    assert page.kv_usage == 0.6530455880475035
    assert page.kv_usage_each == (0.6530455880475035,)
    assert page.running == 6.0  # not 48
    assert page.engines == 1


def test_each_engine_keeps_its_own_gauges_in_the_engines_order() -> None:
    text = "".join(
        f'vllm:kv_cache_usage_perc{{engine="{i}"}} {i / 100}\nvllm:num_requests_running{{engine="{i}"}} {i}\n'
        for i in (10, 2, 0, 1)
    )
    page = parse(text, 0.0)
    assert page.kv_usage_each == (0.0, 0.01, 0.02, 0.1)
    assert page.running_each == {"0": 0.0, "1": 1.0, "2": 2.0, "10": 10.0}
    assert page.running == 13.0


def test_several_api_servers_export_no_birth() -> None:
    text = "\n".join(line for line in text_of(BUSY).split("\n") if "_created" not in line)
    page = parse(text, 0.0)
    assert page.created is None
    assert page.births == {}
    assert page.counters == page_of(BUSY).counters
    assert not restarted(page, page_of(BUSY))


def test_an_old_name_counts_where_the_new_one_is_only_described() -> None:
    described = "# HELP vllm:kv_cache_usage_perc x\n# TYPE vllm:kv_cache_usage_perc gauge\n"
    assert parse(described + made_text(gpu_cache_usage_perc=0.25), 0.0).kv_usage == 0.25
    assert parse(made_text(gpu_cache_usage_perc=0.0, kv_cache_usage_perc=0.5), 0.0).kv_usage == 0.5


def test_a_model_may_be_named_like_a_metric() -> None:
    name = 'model_name="x_created vllm:kv_cache_usage_perc{} 7"'
    text = text_of(BUSY).replace('model_name="tiny"', name)
    assert text.count(name) > 100
    page, plain = parse(text, 0.0), page_of(BUSY)
    assert (page.counters, page.histograms, page.kv_usage) == (
        plain.counters,
        plain.histograms,
        plain.kv_usage,
    )


def test_a_number_that_is_cut_is_never_taken() -> None:
    """Wherever a page breaks off in a line, it is refused: "46" may have been "4664.0"."""
    text = text_of(BUSY)
    start = text.index("\nvllm:generation_tokens_total{") + 1
    end = text.index("\n", start)
    for cut in range(start + 1, end + 1):
        with pytest.raises(PageError, match="breaks off"):
            parse(text[:cut], 0.0)
    assert parse(text[: end + 1], 0.0).counters["generation_tokens_total"] == 4664.0


@pytest.mark.parametrize("seed", range(40))
def test_a_page_cut_anywhere_gives_no_wrong_number(seed: int) -> None:
    text, whole = text_of(BUSY), page_of(BUSY)
    cut = random.Random(seed).randrange(len(text))
    try:
        page = parse(text[:cut], 0.0)
    except PageError:
        return
    assert page.counters == {name: whole.counters[name] for name in page.counters}


def test_windows_line_ends_are_no_part_of_a_number() -> None:
    assert parse(text_of(BUSY).replace("\n", "\r\n"), 0.0) == page_of(BUSY)


def test_time_stamps_of_a_proxy_are_no_values() -> None:
    text = "".join(
        line + ("" if line.startswith("#") or not line.strip() else " 1796060765917") + "\n"
        for line in text_of(BUSY).splitlines()
    )
    assert parse(text, 0.0).counters == page_of(BUSY).counters


@pytest.mark.parametrize(
    "value", ["9" * 4000, "1_000", "0x10", "", "--1", "1e"], ids=["huge", "_", "hex", "none", "--", "e"]
)
def test_what_is_no_number_spoils_the_page(value: str) -> None:
    with pytest.raises(PageError):
        parse(made_text(generation_tokens_total=value), 0.0)


def test_a_bucket_without_a_bound_is_no_page() -> None:
    with pytest.raises(PageError):
        parse('vllm:inter_token_latency_seconds_bucket{le="NaN"} 3\n', 0.0)


def test_a_line_of_endless_labels_is_refused_at_once() -> None:
    labels = ",".join(f'l{i}="x"' for i in range(500_000))
    with pytest.raises(PageError, match=r"a line of [\d,]+ characters"):
        parse(f"vllm:generation_tokens_total{{{labels}}} 3\n", 0.0)


def large(megabytes: float) -> str:
    """The recorded page of a server that has seen very many URLs."""
    line = 'http_requests_total{{handler="/v1/{:08}",method="POST",status="404"}} 1.0\n'
    size = len(line.format(0))
    noise = "".join(line.format(i) for i in range(int(megabytes * 1e6) // size))
    return noise + text_of(BUSY) + noise


def test_a_page_of_five_megabytes_says_what_the_small_one_does() -> None:
    text = large(2.5)
    assert len(text) > 5e6 - 200
    assert parse(text, 0.0) == page_of(BUSY)


def test_a_hundred_engines_add_up() -> None:
    lines = [line for line in text_of(BUSY).splitlines() if line.startswith("vllm:")]
    text = "".join(line.replace('engine="0"', f'engine="{i}"') + "\n" for i in range(100) for line in lines)
    assert len(text) > 3e6
    page: Page = parse(text, 0.0)
    assert page.engines == 100
    assert page.counters["generation_tokens_total"] == 466_400.0
    assert page.running == 800.0
    assert page.kv_usage_each == (0.5079365079365079,) * 100

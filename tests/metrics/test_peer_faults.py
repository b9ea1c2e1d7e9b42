"""Wrong numbers that other monitors of vLLM were seen to show, one test each: ours are right.

Faults of other rooms are tested there: GPU memory that NVML doesn't tell in tests/gpu/test_gpu_memory.py and
tests/gpu/test_nvml.py; chunks counted as tokens in tests/load/test_definitions_tokens.py; a TTFT without the
client's own queue in tests/load/test_definitions_times.py; figures of log lines in
tests/host/test_logfigures.py; a server that died, on the screen, in tests/client.
"""

from __future__ import annotations

import itertools
import math

import httpx
import pytest

from sparktui.metrics.histogram import Histogram
from sparktui.metrics.page import Page, parse
from sparktui.metrics.scrape import scrape
from sparktui.metrics.window import Delta, Scrapes, difference
from tests.metrics.engines import beside
from tests.metrics.pages import grep, histogram, made, made_text, page_of, text_of

CPU32, H200 = "0.32.0-cpu", "0.24.0-h200"
IDLE, MID, AFTER = (f"{CPU32}/on_{when}.txt" for when in ("idle", "midload", "after"))


def window(scrapes: Scrapes, seconds: float = 5.0) -> Delta:
    delta = scrapes.window(seconds)
    assert delta is not None
    return delta


def fed(*pages: Page) -> Scrapes:
    scrapes = Scrapes()
    for page in pages:
        scrapes.add(page)
    return scrapes


def serving(t: float, tokens: float, **more: object) -> Page:
    return made(t, generation_tokens_total=tokens, num_requests_running=1, **more)


def test_acceptance_since_boot() -> None:
    """80 % for a long while, then 10 %: one of them still showed 56.7 %."""
    scrapes, drafted, accepted = Scrapes(), 0, 0
    for t in range(61):
        rate = 0.8 if t < 40 else 0.1
        drafted, accepted = drafted + 100, accepted + int(rate * 100)
        scrapes.add(serving(float(t), drafted, spec_decode_num_draft_tokens_total=drafted,
                            spec_decode_num_accepted_tokens_total=accepted))  # fmt: skip
    assert accepted / drafted > 0.5
    assert window(scrapes).acceptance_rate == pytest.approx(0.1)


def test_per_position_acceptance_that_is_never_filled() -> None:
    shares = window(fed(page_of(MID, 0.0), page_of(AFTER, 4.0))).acceptance_by_position
    counts = [
        grep(text_of(name), "vllm:spec_decode_num_accepted_tokens_per_pos_total") for name in (MID, AFTER)
    ]
    drafts = [grep(text_of(name), "vllm:spec_decode_num_drafts_total")[0] for name in (MID, AFTER)]
    assert shares == tuple((b - a) / (drafts[1] - drafts[0]) for a, b in zip(*counts, strict=True))


def test_accepted_per_draft_as_if_it_were_the_mean_length() -> None:
    """Without the token that comes with every step: 1.50 shown for 2.50."""
    old, new = page_of(IDLE, 0.0), page_of(AFTER, 4.0)
    ratio = difference(old, new).mean_acceptance_length
    counted = {name: new.counters[f"spec_decode_num_{name}_total"] for name in ("accepted_tokens", "drafts")}
    assert ratio == 1 + counted["accepted_tokens"] / counted["drafts"]


def test_a_restart_at_zero_tokens_that_is_not_seen() -> None:
    """Attached before the first request; the server is another one when tokens come. Shown: 659 tok/s, of
    the old life's seconds under the new one's tokens."""
    scrapes = fed(serving(0.0, 0, generation_tokens_created=100.5))
    assert scrapes.add(serving(17.0, 11_000, generation_tokens_created=117.5)) is True
    assert scrapes.window(60.0) is None
    scrapes.add(serving(18.0, 11_160, generation_tokens_created=117.5))
    assert window(scrapes, 60.0).output_tok_s == 160.0


def test_a_restart_of_one_engine_that_a_sum_hides() -> None:
    scrapes = fed(beside(MID, IDLE, t=0.0, births=False))
    assert scrapes.add(beside(IDLE, AFTER, t=1.0, births=False)) is True
    assert scrapes.window(5.0) is None


def test_kv_usage_of_engine_0_only() -> None:
    """10 % shown while engine 1 was at 95 %; of its requests, 1 of 31."""
    page = parse(
        'vllm:kv_cache_usage_perc{engine="0"} 0.1\nvllm:kv_cache_usage_perc{engine="1"} 0.95\n'
        'vllm:num_requests_running{engine="0"} 1\nvllm:num_requests_running{engine="1"} 30\n',
        0.0,
    )
    assert (page.kv_usage, page.kv_usage_each, page.running) == (0.95, (0.1, 0.95), 31.0)


def test_kv_usage_summed_over_engines() -> None:
    """82.6 % shown for two engines at 41."""
    page = parse(
        'vllm:kv_cache_usage_perc{engine="0"} 0.413\nvllm:kv_cache_usage_perc{engine="1"} 0.413\n', 0.0
    )
    assert page.kv_usage == 0.413


def old_names(t: float, queries: int, hits: int, steps: int) -> Page:
    return parse(
        made_text(gpu_cache_usage_perc=0.37, gpu_prefix_cache_queries_total=queries,
                  gpu_prefix_cache_hits_total=hits, generation_tokens_total=steps)
        + histogram("time_per_output_token_seconds", steps * 0.02, _0_01=0, _0_025=steps, _Inf=steps),
        t,
    )  # fmt: skip


def test_old_names_shown_as_an_idle_cache() -> None:
    """KV 0.0 %, prefix and TPOT blank: a release before the renaming."""
    delta = difference(old_names(0.0, 100, 10, 50), old_names(5.0, 500, 110, 150))
    assert old_names(0.0, 0, 0, 0).kv_usage == 0.37
    assert delta.prefix_hit_rate == 0.25
    assert delta.step_ms == pytest.approx(20.0)


def test_a_name_that_was_removed_shown_as_zero() -> None:
    """A second bar, "GPU Cache 0.0%", beside the right one."""
    page = page_of(AFTER)
    text = "\n".join(line for line in text_of(AFTER).split("\n") if "kv_cache_usage_perc" not in line)
    assert page.kv_usage == grep(text_of(AFTER), "vllm:kv_cache_usage_perc")[0]
    assert parse(text, 0.0).kv_usage is None


def test_both_names_of_a_release_in_between_counted_twice() -> None:
    new = text_of(AFTER)
    lines = [line for line in new.split("\n") if "inter_token_latency" in line or ":prefix_cache" in line]
    old = "\n".join(lines).replace("inter_token_latency", "time_per_output_token")
    both = parse(new + old.replace(":prefix_cache", ":gpu_prefix_cache") + "\n", 0.0)
    assert both.counters == page_of(AFTER).counters
    assert both.histograms == page_of(AFTER).histograms


def test_recent_percentiles_that_fall_back_to_lifetime_ones() -> None:
    """In a second without a first token there is no recent TTFT, whatever there was since the boot."""
    delta = difference(page_of(MID, 0.0), page_of(AFTER, 1.0))
    assert page_of(AFTER).histograms["time_to_first_token_seconds"].count == 21
    assert (delta.ttft_ms, delta.ttft_bound) == (None, False)


def test_a_percentile_since_boot() -> None:
    """Slow at first, fast since: the window's median is fast."""
    name, running = "time_to_first_token_seconds", made_text(num_requests_running=1)
    old = parse(histogram(name, 900.0, _0_25=0, _0_5=0, _2_5=900, _Inf=900) + running, 0.0)
    new = parse(histogram(name, 904.0, _0_25=10, _0_5=20, _2_5=920, _Inf=920) + running, 5.0)
    assert difference(old, new).ttft_ms == 250.0
    assert new.histograms[name].quantile(0.5)[0] == pytest.approx(1.5, abs=0.5)


def test_throughput_smeared_over_a_minute() -> None:
    """150 tok/s after a restart, or after a load change, were shown as the mean with the minute before."""
    changed = fed(*(serving(float(t), 0 if t < 60 else (t - 60) * 150) for t in range(67)))
    assert window(changed).output_tok_s == 150.0
    restarted = fed(*(serving(float(t), 9_000) for t in range(60)))
    for t in range(60, 63):
        restarted.add(serving(float(t), (t - 60) * 150))
    assert window(restarted).output_tok_s == 150.0


def test_throughput_as_one_over_the_lifetime_mean_latency() -> None:
    """45.5 shown while 159 were true: several streams, and other latencies before."""
    old, new = (page_of(f"{CPU32}/off_{when}.txt", t) for when, t in (("midload", 0.0), ("after", 10.0)))
    steps = new.histograms["inter_token_latency_seconds"]
    output = difference(old, new).output_tok_s
    assert output == (new.counters["generation_tokens_total"] - old.counters["generation_tokens_total"]) / 10
    assert steps.mean is not None
    assert output != pytest.approx(1 / steps.mean, rel=0.2)


def test_label_order_that_is_taken_for_granted() -> None:
    """Requests 0 and a rate of 0.0: the labels stood in another order."""
    text = "".join(
        f"vllm:request_success_total{{{labels}}} {count}\n"
        for labels, count in (
            ('engine="0",finished_reason="stop",model_name="m"', 3),
            ('model_name="m",finished_reason="length",engine="0"', 4),
            ('finished_reason="abort",engine="0",model_name="m"', 5),
        )
    )
    page = parse(text, 0.0)
    assert page.counters["request_success_total"] == 12.0
    assert page.engines == 1


def test_created_series_summed_as_if_they_were_counts() -> None:
    """Each is a unix time: 1.8e9 "requests"."""
    for name in (IDLE, MID, AFTER):
        page, text = page_of(name), text_of(name)
        assert "vllm:request_success_created{" in text
        assert page.counters["request_success_total"] == sum(grep(text, "vllm:request_success_total"))
        assert max(page.counters.values()) < 1e6
        assert not any(part.count > 1e6 for part in page.histograms.values())


def test_speculation_that_is_off_shown_as_zero() -> None:
    delta = difference(page_of(f"{CPU32}/off_midload.txt", 0.0), page_of(f"{CPU32}/off_after.txt", 5.0))
    assert delta.drafted is None
    assert (delta.acceptance_rate, delta.mean_acceptance_length) == (None, None)
    assert delta.acceptance_by_position == ()


def test_gauges_of_several_api_servers_added_up() -> None:
    text = "".join(
        f'vllm:{name}{{engine="0",model_name="m",pid="{pid}"}} {value}\n'
        for pid, share, running in ((271, 0.0, 0), (273, 0.65, 7), (274, 0.2, 3))
        for name, value in (("kv_cache_usage_perc", share), ("num_requests_running", running))
    )
    page = parse(text, 0.0)
    assert (page.kv_usage, page.kv_usage_each, page.running) == (0.65, (0.65,), 7.0)


@pytest.mark.parametrize("q", [0.5, 0.99])
def test_a_percentile_in_the_last_bucket(q: float) -> None:
    """Past the last bound anything is possible: neither infinite nor the bound."""
    slow = Histogram(900.0, 3.0, {1.0: 0.0, 2.5: 0.0, math.inf: 3.0})
    assert slow.quantile(q) == (None, False)


def test_the_first_sample_after_attaching_is_a_burst() -> None:
    """A server of yesterday: its life's tokens over one second."""
    scrapes = fed(page_of(AFTER, 1.0))
    assert scrapes.window(5.0) is None
    scrapes.add(page_of(AFTER, 2.0))
    assert window(scrapes).output_tok_s == 0.0


def test_a_family_that_comes_back_is_a_burst() -> None:
    torn = made_text(generation_tokens_total="NaN", prompt_tokens_total=7, num_requests_running=1)
    old = parse(torn, 0.0)
    new = serving(1.0, 5_000_000, prompt_tokens_total=7)
    assert difference(old, new).output_tok_s is None


def test_coarse_buckets_shown_as_exact() -> None:
    """47 ms shown for a true 29.5: all of them lay in one bucket, which says "≤ 50 ms" and no more."""
    name, running = "time_to_first_token_seconds", made_text(num_requests_running=1)
    old = parse(histogram(name, 0.0, _0_025=0, _0_05=0, _Inf=0) + running, 0.0)
    new = parse(histogram(name, 0.59, _0_025=0, _0_05=20, _Inf=20) + running, 5.0)
    delta = difference(old, new)
    assert delta.ttft_ms == pytest.approx(50.0)
    assert delta.ttft_bound is True


def test_a_poll_against_steps_jitters() -> None:
    """A true 160 tok/s in steps of 32, polled at 1 Hz: 194 were shown at most. The window keeps within one
    step of the truth."""
    scrapes = Scrapes()
    shown = []
    for i in range(40):
        t = i + 0.37 * math.sin(i)
        scrapes.add(serving(t, math.floor(t / 0.2 + 1) * 32))
        delta = scrapes.window(5.0)
        if delta is not None and delta.seconds > 4:
            shown.append(delta.output_tok_s or 0.0)
    assert len(shown) > 30
    assert all(value == pytest.approx(160.0, abs=32 / 4) for value in shown)


def test_a_server_that_is_gone_shown_as_rates_of_zero() -> None:
    """A page that doesn't come is no page of zeros: no window, no number."""
    scrapes = fed(serving(0.0, 0), serving(1.0, 160))
    scrapes.clear()
    assert scrapes.window(5.0) is None
    assert scrapes.last is None


def test_an_inter_token_latency_taken_for_a_tokens() -> None:
    """Under speculation an output holds several tokens."""
    delta = difference(page_of(MID, 0.0), page_of(AFTER, 4.0))
    assert (delta.tokens_per_step, delta.generated) == (4.0, 1128.0)


async def test_the_page_s_own_address_asked_for_twice() -> None:
    """--url http://…/metrics gave /metrics/metrics, and a 404."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, text=text_of(AFTER))

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        for tail in ("", "/", "/metrics"):
            assert (await scrape(http, f"http://127.0.0.1:8000{tail}")).running == 0.0
    assert asked == ["/metrics"] * 3


def test_a_number_of_another_life_in_any_figure() -> None:
    """Whatever recorded page follows whatever other: no negative figure, or it is told as a restart."""
    names = (IDLE, MID, AFTER, f"{CPU32}/off_midload.txt", f"{CPU32}/draft_after.txt",
             f"{H200}/metrics_fi_off_after.txt", f"{H200}/metrics_fi_ngram_after.txt")  # fmt: skip
    for a, b in itertools.permutations(names, 2):
        scrapes = fed(page_of(a, 0.0))
        if scrapes.add(page_of(b, 1.0)):
            assert scrapes.window(5.0) is None
            continue
        delta = window(scrapes)
        figures = (delta.output_tok_s, delta.ttft_ms, delta.step_ms, delta.acceptance_rate, delta.preemptions)
        assert all(value is None or value >= 0 for value in figures)

"""Figures between two recorded pages; the expected numbers were worked out from the raw files by hand."""

from __future__ import annotations

import re

import pytest

from sparktui.metrics.page import Page, parse
from sparktui.metrics.window import Delta, difference
from tests.metrics.pages import grep, histogram, made, made_text, page_of, text_of

H200, CPU27, CPU32 = "0.24.0-h200", "0.27.1-cpu", "0.32.0-cpu"


def between(old: str, new: str, seconds: float = 10.0) -> Delta:
    return difference(page_of(old, 100.0), page_of(new, 100.0 + seconds))


def test_ngram_on_an_h200() -> None:
    delta = between(f"{H200}/metrics_fi_ngram_idle.txt", f"{H200}/metrics_fi_ngram_after.txt", 64.0)
    assert delta.generated == 137472
    assert delta.output_tok_s == 137472 / 64
    assert delta.tokens_per_step == pytest.approx((137472 - 537) / 37107)
    assert delta.drafted is True
    assert delta.acceptance_rate == 1.0
    assert delta.acceptance_by_position == pytest.approx((1.0, 1.0, 32922 / 33453))
    assert delta.mean_acceptance_length == pytest.approx(3.98413, abs=1e-5)
    assert delta.step_ms == pytest.approx(7.4792, abs=1e-4)
    assert delta.prefix_hit_rate == pytest.approx(24752 / 65706)
    assert delta.preemptions == 0.0
    # rank 268.5: 227 are at or under 40 ms, 437 at or under 60 ms
    assert delta.ttft_ms == pytest.approx(40 + 20 * 41.5 / 210)
    assert delta.ttft_bound is False


def test_a_draft_model_on_a_cpu() -> None:
    delta = between(f"{CPU27}/metrics_draft_idle.txt", f"{CPU27}/metrics_draft_after.txt")
    assert delta.generated == 600
    assert delta.tokens_per_step == pytest.approx(597 / 211)
    assert delta.acceptance_rate == pytest.approx(391 / 633)
    assert delta.acceptance_by_position == pytest.approx((166 / 211, 123 / 211, 102 / 211))
    assert delta.mean_acceptance_length == pytest.approx(602 / 211)
    assert delta.ttft_ms == pytest.approx(17.5)  # rank 1.5 of the 2 between 10 and 20 ms


def test_ngram_on_a_cpu_counts_steps_not_tokens() -> None:
    delta = between(f"{CPU32}/on_idle.txt", f"{CPU32}/on_after.txt")
    assert delta.generated == 5792
    assert delta.tokens_per_step == pytest.approx(5771 / 1853)  # 21 first tokens, 1,853 observations
    assert delta.step_ms == pytest.approx(31598.476863998712 / 1853)
    assert delta.acceptance_by_position == pytest.approx((1.0, 1.0, 1294 / 1313))
    assert delta.ttft_ms == pytest.approx(225.0)  # rank 10.5: 7.5 of the 9 between 100 and 250 ms


def test_a_window_in_the_middle_says_nothing_of_what_was_before() -> None:
    delta = between(f"{CPU32}/on_midload.txt", f"{CPU32}/on_after.txt", 4.0)
    assert delta.output_tok_s == (5792 - 4664) / 4
    assert delta.tokens_per_step == 4.0  # 1,128 tokens, no first one among them, 282 steps
    assert delta.acceptance_by_position == (1.0, 1.0, 1.0)
    assert delta.mean_acceptance_length == 4.0
    assert delta.step_ms == pytest.approx((31.598476863998712 - 28.215549880000708) / 282 * 1000)
    assert delta.ttft_ms is None
    assert delta.prefix_hit_rate is None  # no query in between


@pytest.mark.parametrize(
    ("old", "new", "tokens"),
    [
        (f"{H200}/metrics_fi_off_idle.txt", f"{H200}/metrics_fi_off_after.txt", 107520),
        (f"{CPU32}/off_midload.txt", f"{CPU32}/off_after.txt", 6535),
    ],
)
def test_without_speculation_a_step_is_a_token(old: str, new: str, tokens: int) -> None:
    delta = between(old, new)
    assert delta.generated == tokens
    assert delta.tokens_per_step == 1.0
    assert delta.drafted is None
    assert delta.acceptance_rate is None
    assert delta.acceptance_by_position == ()
    assert delta.mean_acceptance_length is None


def test_everything_rejected_is_zero_and_not_unknown() -> None:
    delta = between(f"{CPU32}/draft_idle.txt", f"{CPU32}/draft_after.txt")
    assert delta.drafted is True
    assert delta.acceptance_rate == 0.0
    assert delta.acceptance_by_position == (0.0, 0.0, 0.0)
    assert delta.mean_acceptance_length == 1.0
    assert delta.tokens_per_step == 1.0


def test_nothing_drafted_is_a_state_and_no_rate() -> None:
    delta = between(f"{CPU32}/draft_after.txt", f"{CPU32}/draft_after.txt")
    assert delta.drafted is False
    assert delta.acceptance_rate is None
    assert delta.acceptance_by_position == ()
    assert delta.mean_acceptance_length is None
    assert delta.tokens_per_step is None
    assert delta.step_ms is None
    assert delta.output_tok_s == 0.0


def drafts(t: float, drafted: int, tokens: int, accepted: int, by_position: tuple[int, ...]) -> str:
    lines = [
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{i}"}} {n}'
        for i, n in enumerate(by_position)
    ]
    return "\n".join(lines) + "\n" + made_text(
        spec_decode_num_drafts_total=drafted,
        spec_decode_num_draft_tokens_total=tokens,
        spec_decode_num_accepted_tokens_total=accepted,
    )  # fmt: skip


def test_shortened_drafts_count_against_their_own_number() -> None:
    """ngram proposes less than k at the end of a match: 88 draft tokens in 30 drafts."""
    old = parse(drafts(0.0, 10, 30, 10, (6, 3, 1)), 0.0)
    new = parse(drafts(1.0, 40, 118, 54, (26, 18, 10)), 1.0)
    delta = difference(old, new)
    assert delta.acceptance_rate == 44 / 88
    assert delta.mean_acceptance_length == pytest.approx(1 + 44 / 30)
    assert delta.acceptance_by_position == pytest.approx((20 / 30, 15 / 30, 9 / 30))


def test_what_an_older_page_lacks_is_not_counted_from_zero() -> None:
    """It may have been there all its life: that would be a burst."""
    old = made(num_requests_running=1, generation_tokens_total="NaN")
    text = drafts(1.0, 4, 8, 5, (4, 1)) + histogram("time_to_first_token_seconds", 2.0, _0_25=1, _Inf=2)
    delta = difference(old, parse(text + made_text(generation_tokens_total=90_000), 1.0))
    assert (delta.generated, delta.output_tok_s, delta.drafted, delta.ttft_ms) == (None,) * 4
    assert (delta.acceptance_rate, delta.mean_acceptance_length) == (None, None)
    assert delta.acceptance_by_position == ()


def test_positions_that_an_older_page_lacks_are_not_counted_from_zero() -> None:
    old, new = parse(drafts(0.0, 4, 8, 5, (4,)), 0.0), parse(drafts(1.0, 8, 16, 10, (8, 2)), 1.0)
    assert difference(old, new).acceptance_by_position == ()


def ttft(t: float, total: float, name: str = "time_to_first_token_seconds", **buckets: int) -> Delta:
    empty = histogram(name, 0.0, **dict.fromkeys(buckets, 0)) + made_text(num_requests_running=1)
    text = histogram(name, total, **buckets) + made_text(num_requests_running=1)
    return difference(parse(empty, 0.0), parse(text, t))


def test_one_bucket_that_moved_bounds_the_median() -> None:
    delta = ttft(1.0, 1.2, _0_25=0, _0_5=4, _1_0=4, _Inf=4)
    assert (delta.ttft_ms, delta.ttft_bound) == (500.0, True)


def test_several_buckets_interpolate() -> None:
    delta = ttft(1.0, 1.2, _0_25=1, _0_5=4, _1_0=5, _Inf=5)
    assert delta.ttft_ms == pytest.approx(250 + 250 * 1.5 / 3)  # rank 2.5, 1 below, 3 inside
    assert delta.ttft_bound is False


def test_a_median_past_the_last_bound_is_not_known() -> None:
    """histogram_quantile says 500 ms here; the mean is 333 s."""
    delta = ttft(1.0, 999.0, _0_25=0, _0_5=0, _Inf=3)
    assert (delta.ttft_ms, delta.ttft_bound) == (None, False)
    assert ttft(1.0, 999.0, _0_25=1, _0_5=1, _Inf=3).ttft_ms is None


def test_tpot_is_the_median_of_the_requests_that_ended() -> None:
    name = "request_time_per_output_token_seconds"
    delta = ttft(1.0, 1.2, name, _0_01=0, _0_025=1, _0_05=4, _Inf=4)
    assert delta.tpot_ms == pytest.approx(25 + 25 * 1 / 3)
    assert delta.tpot_bound is False
    one = ttft(1.0, 1.2, name, _0_01=0, _0_025=4, _0_05=4, _Inf=4)
    assert (one.tpot_ms, one.tpot_bound) == (25.0, True)
    assert ttft(1.0, 1.2, _0_25=1, _Inf=1).tpot_ms is None


def test_tpot_of_an_h200_is_within_the_first_bucket() -> None:
    """537 requests, all at or under 10 ms: their median is not known better."""
    delta = between(f"{H200}/metrics_fi_ngram_idle.txt", f"{H200}/metrics_fi_ngram_after.txt")
    assert (delta.tpot_ms, delta.tpot_bound) == (10.0, True)


def test_tpot_of_a_cpu_against_the_buckets_on_its_page() -> None:
    old, new = (text_of(f"{CPU32}/{name}.txt") for name in ("off_midload", "off_after"))
    bucket = "vllm:request_time_per_output_token_seconds_bucket"
    moved = [b - a for a, b in zip(grep(old, bucket), grep(new, bucket), strict=True)]
    bounds = [float(le) for le in re.findall(rf'^{bucket}\{{.*le="([^"]+)"', new, re.MULTILINE)]
    i = next(i for i, count in enumerate(moved) if count >= moved[-1] / 2)
    assert i > 0
    assert moved[i - 1] > 0
    expected = bounds[i - 1] + (bounds[i] - bounds[i - 1]) * (moved[-1] / 2 - moved[i - 1]) / (
        moved[i] - moved[i - 1]
    )
    delta = between(f"{CPU32}/off_midload.txt", f"{CPU32}/off_after.txt")
    assert delta.tpot_ms == pytest.approx(expected * 1000)
    assert delta.tpot_bound is False


def test_a_page_that_was_written_while_requests_ended_still_has_its_median() -> None:
    """The count is one ahead of the buckets."""
    text = histogram("time_to_first_token_seconds", 1.0, _0_25=1, _0_5=3, _Inf=3).replace(
        'count{engine="0"} 3', 'count{engine="0"} 7'
    )
    empty = histogram("time_to_first_token_seconds", 0.0, _0_25=0, _0_5=0, _Inf=0)
    running = made_text(num_requests_running=1)
    delta = difference(parse(empty + running, 0.0), parse(text + running, 1.0))
    assert delta.ttft_ms == pytest.approx(250 + 250 * 0.5 / 2)


def test_prefix_tokens_beside_their_rate() -> None:
    delta = between(f"{H200}/metrics_fi_ngram_idle.txt", f"{H200}/metrics_fi_ngram_after.txt")
    assert (delta.prefix_queries, delta.prefix_hits) == (65706.0, 24752.0)
    nothing = difference(made(0.0, generation_tokens_total=0), made(1.0, generation_tokens_total=1))
    assert (nothing.prefix_queries, nothing.prefix_hits) == (None, None)


def reads(t: float, *engines: float) -> Page:
    name = "vllm:estimated_read_bytes_per_gpu_total"
    return parse("".join(f'{name}{{engine="{i}"}} {value}\n' for i, value in enumerate(engines)), t)


def test_memory_reads_are_those_of_one_gpu() -> None:
    assert difference(reads(0.0, 1e12), reads(2.0, 1.4e12)).read_gb_s == pytest.approx(200.0)
    two = difference(reads(0.0, 1e12, 5e12), reads(2.0, 1.4e12, 5.2e12))
    assert two.read_gb_s == pytest.approx((200 + 100) / 2)
    assert difference(reads(0.0, 1e12), reads(2.0, 1e12)).read_gb_s == 0.0


def test_memory_reads_that_are_not_counted_are_not_zero() -> None:
    """The counter is on every recorded page, at 0: none of them ran with --enable-mfu-metrics."""
    delta = between(f"{H200}/metrics_fi_off_idle.txt", f"{H200}/metrics_fi_off_after.txt")
    assert delta.generated
    assert delta.read_gb_s is None
    absent = difference(made(0.0, generation_tokens_total=0), made(1.0, generation_tokens_total=1))
    assert absent.read_gb_s is None


def test_a_rank_on_the_edge_of_a_bucket_is_its_bound() -> None:
    assert ttft(1.0, 1.0, _0_25=2, _0_5=4, _Inf=4).ttft_ms == 250.0


def test_nan_never_becomes_a_figure() -> None:
    text = (
        histogram("inter_token_latency_seconds", float("nan"), _0_25=4, _Inf=8)
        + histogram("time_to_first_token_seconds", 2.0, _0_25=1, _Inf=2)
        + made_text(generation_tokens_total="NaN", spec_decode_num_drafts_total=4,
                    spec_decode_num_draft_tokens_total=8, spec_decode_num_accepted_tokens_total="NaN",
                    prefix_cache_queries_total=9, prefix_cache_hits_total="NaN")
    )  # fmt: skip
    before = re.sub(r" \S+$", " 0", text, flags=re.MULTILINE).replace("seconds 0", "seconds histogram")
    delta = difference(parse(before, 0.0), parse(text, 2.0))
    assert delta.output_tok_s is None
    assert delta.generated is None
    assert delta.step_ms is None
    assert delta.tokens_per_step is None
    assert delta.acceptance_rate is None
    assert delta.mean_acceptance_length is None
    assert delta.prefix_hit_rate is None
    assert delta.drafted is True


def test_no_time_between_two_pages_gives_no_rate() -> None:
    page = page_of(f"{CPU32}/on_after.txt", 5.0)
    assert difference(page, page).output_tok_s is None

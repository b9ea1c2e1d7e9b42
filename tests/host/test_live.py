"""What the pages and the load process's totals become on the way to the screen. The clock is the test's."""

from __future__ import annotations

import pytest

from sparktui.client.freshness import fresh
from sparktui.host.live import Live
from sparktui.metrics.page import Page, parse
from sparktui.schema.launch import Roof
from sparktui.schema.live import LoadView, ServerView, Snapshot
from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import RequestRow, ServerTimes, Usage
from tests.metrics.engines import beside
from tests.metrics.pages import made, made_text, page_of

MID = "0.32.0-cpu/on_midload.txt"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("sparktui.host.live.monotonic", lambda: now[0])
    return now


@pytest.fixture
def live(clock: list[float]) -> Live:
    return Live(lambda _: None)


def page(t: float, tokens: float, running: float = 1, **more: object) -> Page:
    return made(
        t, generation_tokens_total=tokens, num_requests_running=running, num_requests_waiting=0, **more
    )


def totals(t: float, in_flight: int, tokens: float, usage: Usage = "continuous") -> LoadTotals:
    return LoadTotals(
        t, in_flight, in_flight, 0, 0, 0, 0, round(tokens), round(tokens), t, 0.5, 0.1, usage=usage
    )


def shown(live: Live) -> Snapshot:
    server = ServerView("ready", stalled_s=live.stalled_s)
    return Snapshot(1, 1, 0.0, "run", server, LoadView(), live.figures())


def test_a_stall_grows_with_every_page_and_ends_with_a_token(live: Live, clock: list[float]) -> None:
    seen = []
    for seconds, tokens in ((0, 5), (1, 9), (2, 9), (9, 9), (13, 9), (14, 10), (15, 11)):
        clock[0] = 1000.0 + seconds
        live._take(page(clock[0], tokens))
        seen.append(live.stalled_s)
    assert seen == [None, None, 1.0, 8.0, 12.0, None, None]


def test_a_stalled_server_has_gauges_and_no_rates(live: Live, clock: list[float]) -> None:
    for seconds in range(13):
        clock[0] = 1000.0 + seconds
        live._take(page(clock[0], 9, kv_cache_usage_perc=0.25))
    assert shown(live).server.stalled_s == 12.0
    assert live.figures().output_tok_s == 0.0
    figures = fresh(shown(live))
    assert (figures.output_tok_s, figures.decode_tok_s) == (None, None)
    assert (figures.running, figures.kv_usage) == (1, 0.25)


def test_a_server_that_died_leaves_no_rate(live: Live, clock: list[float]) -> None:
    """160 tok/s stood on screen as if live, minutes after."""
    for seconds in range(4):
        clock[0] = 1000.0 + seconds
        live._take(page(clock[0], 160 * seconds))
    assert live.figures().output_tok_s == 160.0
    clock[0] += 7.0
    assert fresh(shown(live)).output_tok_s is None
    clock[0] += 4.0
    figures = live.figures()
    assert figures.scrape_age_s == 11.0
    assert (figures.output_tok_s, figures.running, figures.kv_usage) == (None, None, None)
    assert (figures.others_running, figures.others_tok_s) == (None, None)


def test_a_server_that_began_anew_forgets_the_stall_and_the_others(live: Live, clock: list[float]) -> None:
    for seconds in range(13):
        live._take(page(1000.0 + seconds, 9, generation_tokens_created=5.0))
    assert (live.stalled_s, live.others_running) == (12.0, 1)
    live._take(page(1013.0, 9, generation_tokens_created=7.0))
    assert (live.stalled_s, live.others_running) == (None, 0)
    live.reset()
    assert (live.stalled_s, live.others_running) == (None, None)


def both(
    live: Live,
    clock: list[float],
    *,
    ours: float,
    theirs: float,
    seconds: int = 10,
    running: int = 3,
    usage: Usage = "continuous",
) -> None:
    """Two streams of ours, five lines of totals a second, a page a second that is dated in between."""
    for tick in range(seconds * 5):
        t = 1000.0 + tick * 0.2
        clock[0] = t + 0.15
        live.add_totals(totals(t, 2, ours * tick * 0.2, usage))
        if tick % 5 == 0:
            at = t + 0.1
            live._take(page(at, (ours + theirs) * (at - 1000.0), running))  # fmt: skip


def test_others_tokens_are_the_servers_without_ours(live: Live, clock: list[float]) -> None:
    both(live, clock, ours=200.0, theirs=50.0)
    figures = live.figures()
    assert figures.output_tok_s == pytest.approx(250.0)
    assert figures.client_output_tok_s == pytest.approx(200.0, rel=0.01)
    assert figures.others_running == 1
    assert figures.others_tok_s == pytest.approx(50.0, abs=0.5)


def test_a_page_newer_than_our_totals_gives_no_tokens_of_ours_to_others(
    live: Live, clock: list[float]
) -> None:
    """Totals come at 5 Hz: the last page may count tokens that we have not told yet."""
    both(live, clock, ours=2000.0, theirs=10.0)
    live._take(page(1010.0, 2010.0 * 10.0, 3))
    assert live.totals[-1].t < 1010.0
    assert live.figures().others_tok_s == pytest.approx(10.0, abs=0.5)


def test_without_others_there_are_none(live: Live, clock: list[float]) -> None:
    both(live, clock, ours=200.0, theirs=0.0, running=2)
    figures = live.figures()
    assert (figures.others_running, figures.others_tok_s) == (0, None)


@pytest.mark.parametrize("usage", ["none", "final"])
def test_others_tokens_are_not_known_where_ours_are_not_in_time(
    live: Live, clock: list[float], usage: Usage
) -> None:
    both(live, clock, ours=200.0, theirs=50.0, usage=usage)
    figures = live.figures()
    assert (figures.others_running, figures.others_tok_s) == (1, None)


def test_without_a_load_all_is_of_others(live: Live, clock: list[float]) -> None:
    for seconds in range(6):
        clock[0] = 1000.0 + seconds
        live._take(page(clock[0], 80 * seconds, 2))
    figures = live.figures()
    assert (figures.others_running, figures.others_tok_s) == (2, 80.0)


def test_requests_that_have_just_ended_are_still_ours(live: Live, clock: list[float]) -> None:
    """From eight to none: the page counts them until the server has heard of it."""
    live.add_totals(totals(1000.0, 8, 0))
    for i in range(4):
        clock[0] = 1000.3 + i * 0.4
        live.add_totals(totals(clock[0], 0, 0))
        live._take(page(clock[0], 100 + i, running=8))
    assert live.others_running == 0


@pytest.mark.parametrize(("silent_s", "others"), [(4.0, 0), (20.0, 8)])
def test_a_load_process_that_is_late_has_what_it_last_said(
    live: Live, clock: list[float], silent_s: float, others: int
) -> None:
    live.add_totals(totals(1000.0, 8, 0))
    for i in range(3):
        live._take(page(1000.0 + silent_s + i, 100 + i, running=8))
    assert live.others_running == others


def test_engines_are_shown_one_by_one_where_there_are_several(live: Live, clock: list[float]) -> None:
    live._take(page_of(MID, 999.0))
    assert live.figures().kv_usage_each == ()
    live._take(beside(MID, "0.32.0-cpu/on_after.txt", t=1000.0))
    assert live.figures().kv_usage_each == (0.5079365079365079, 0.0)


def test_memory_reads_and_their_share_of_the_roof(clock: list[float]) -> None:
    live = Live(lambda _: None, Roof(bandwidth_gb_s=273.0, gb_per_step=20.0))
    for seconds in range(4):
        clock[0] = 1000.0 + seconds
        text = made_text(num_requests_running=1, generation_tokens_total=10 * seconds,
                         estimated_read_bytes_per_gpu_total=200e9 * (seconds + 1))  # fmt: skip
        live._take(parse(text, clock[0]))
    figures = live.figures()
    assert figures.read_gb_s == pytest.approx(200.0)
    assert figures.roof_share == pytest.approx(200 / 273)


def test_tpot_of_one_bucket_is_a_bound(live: Live, clock: list[float]) -> None:
    """537 requests of an H200, all within the first bucket of 10 ms."""
    names = (f"0.24.0-h200/metrics_fi_ngram_{when}.txt" for when in ("idle", "after"))
    for t, name in zip((998.0, 1000.0), names, strict=True):
        live._take(page_of(name, t))
    figures = live.figures()
    assert (figures.server_tpot_ms, figures.server_tpot_bound) == (10.0, True)


def test_vllm_s_own_figures_of_a_request_are_exact_where_its_histograms_only_bound(
    live: Live, clock: list[float]
) -> None:
    """--enable-per-request-metrics: its TTFT begins when a request is scheduled, the queue comes on top."""
    names = (f"0.24.0-h200/metrics_fi_ngram_{when}.txt" for when in ("idle", "after"))
    for t, name in zip((998.0, 1000.0), names, strict=True):
        live._take(page_of(name, t))
    assert live.figures().server_tpot_bound
    old = ServerTimes(ttft_ms=900.0, queue_ms=0.0, mean_itl_ms=90.0)
    live.add_row(RequestRow(0, 980.0, True, total_ms=1000.0, server=old))
    for index, ttft in enumerate((20.0, 30.0, 70.0), 1):
        own = ServerTimes(ttft_ms=ttft, queue_ms=5.0, mean_itl_ms=ttft / 10)
        live.add_row(RequestRow(index, 998.0, True, total_ms=500.0, server=own))
    live.add_row(RequestRow(4, 998.0, True, total_ms=600.0))  # a server may say nothing of some
    figures = live.figures()
    assert (figures.server_ttft_ms, figures.server_ttft_bound) == (35.0, False)
    assert (figures.server_tpot_ms, figures.server_tpot_bound) == (3.0, False)

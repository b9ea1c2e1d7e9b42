"""Truth tests of DESIGN's definitions: TTFT, chunk gaps, requests in flight. The clock is injected."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparktui.load.counts import Counts, Standing, standing
from sparktui.load.meter import StreamMeter
from sparktui.schema.gaps import bucket
from tests.load.timeline import Arrival, chunk, gap_counts, play, usage_only

# --- TTFT ---------------------------------------------------------------------------------------------


def test_ttft_is_the_first_text_and_not_the_role() -> None:
    row = play(chunk(10.25, "", 0), chunk(10.5, "a", 1), chunk(11.0, "b", 2), start=10.0).row(12.0)
    assert (row.ttft_ms, row.ttfc_ms, row.total_ms) == (500.0, 500.0, 2000.0)


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_a_first_text_and_the_content_has_a_time_of_its_own(field: str) -> None:
    row = play(
        chunk(1.0, "", 0), chunk(1.5, "Hm", 1, field=field), chunk(2.0, "so", 3, field=field),
        chunk(4.0, "Yes", 4, "stop"),
    ).row(5.0)  # fmt: skip
    assert (row.ttft_ms, row.ttfc_ms) == (1500.0, 4000.0)
    assert (row.completion_tokens, row.decode_tokens, row.decode_s, row.chunks) == (4, 3, 2.5, 3)


def test_both_names_of_reasoning_in_one_chunk_are_one_chunk() -> None:
    delta = {"reasoning": "Hm", "reasoning_content": "Hm"}
    row = play((2.0, json.dumps({"choices": [{"delta": delta}]}).encode())).row(5.0)
    assert (row.ttft_ms, row.ttfc_ms, row.chunks) == (2000.0, None, 1)


def tool_call(t: float, arguments: str, tokens: int) -> Arrival:
    call = {"index": 0, "function": {"arguments": arguments}}
    value = {"choices": [{"delta": {"tool_calls": [call]}}], "usage": {"completion_tokens": tokens}}
    return t, json.dumps(value).encode()


def test_a_tool_call_is_text_but_no_content() -> None:
    row = play(tool_call(1.0, "{", 2), tool_call(2.0, "}", 5), chunk(2.0, "", 5, "tool_calls")).row(9.0)
    assert (row.ttft_ms, row.ttfc_ms, row.finish_reason) == (1000.0, None, "tool_calls")
    assert (row.completion_tokens, row.decode_tokens, row.decode_s, row.chunks) == (5, 3, 1.0, 2)


def test_a_ttft_is_told_when_the_text_comes_and_once() -> None:
    counts = Counts()
    meter = play(chunk(1.0, "", 0), counts=counts)
    assert counts.take() == ((), {})
    meter.event(chunk(1.5, "a", 1)[1], 1.5)
    assert counts.take()[0] == (1500.0,)
    meter.event(chunk(2.0, "b", 2)[1], 2.0)
    meter.row(3.0)
    assert counts.take()[0] == ()


# --- chunk gaps ---------------------------------------------------------------------------------------


def test_a_gap_is_between_token_chunks_whatever_they_hold() -> None:
    """Text without a new count, a count without text, several tokens: 250, 500 and 125 ms."""
    counts = Counts()
    row = play(
        chunk(1.0, "", 0), chunk(2.0, "a", 1), chunk(2.25, "b", 1), chunk(2.75, "", 4), chunk(2.875, "cd", 7),
        chunk(3.5, "", 7, "stop"), usage_only(4.0, 7), counts=counts,
    ).row(5.0)  # fmt: skip
    assert counts.take()[1] == gap_counts(250, 500, 125)
    assert row.gap_max_ms == 500.0


def test_chunks_of_one_read_are_one_advance() -> None:
    """Two chunks together every 40 ms are seen every 40 ms: not every 20, and not 0 and 40."""
    counts = Counts()
    row = play(
        *[chunk(1.0 + n // 2 * 0.04, "a", n + 1) for n in range(8)], counts=counts
    ).row(5.0)  # fmt: skip
    assert counts.take()[1] == {str(bucket(40.0)): 3}
    assert (row.chunks, counts.chunks) == (8, 8)
    assert row.gap_max_ms == pytest.approx(40.0)


def test_one_chunk_has_no_gap() -> None:
    counts = Counts()
    assert play(chunk(1.0, "a", 5, "stop"), counts=counts).row(2.0).gap_max_ms is None
    assert counts.take()[1] == {}


def test_gaps_of_streams_do_not_mix() -> None:
    counts = Counts()
    one, other = play(chunk(1.0, "a", 1), counts=counts), play(chunk(1.1, "a", 1), counts=counts)
    one.event(chunk(1.5, "b", 2)[1], 1.5)
    other.event(chunk(1.6, "b", 2)[1], 1.6)
    ((key, count),) = counts.take()[1].items()
    assert abs(int(key) - bucket(500.0)) <= 1
    assert count == 2


# --- requests in flight -------------------------------------------------------------------------------


def live(meters: list[StreamMeter], now: float) -> float:
    """Stream-seconds as a line of totals at ``now`` has them."""
    return meters[0].counts.stream_seconds + standing(meters, now).open_gaps_s


def test_the_open_gap_of_a_stream_counts_before_its_next_chunk() -> None:
    meter = play(chunk(1.0, "a", 1), chunk(1.5, "b", 2))
    assert live([meter], 1.75) == 0.75
    meter.event(chunk(2.0, "c", 3)[1], 2.0)
    assert live([meter], 2.0) == 1.0


def test_a_stream_that_stalls_pulls_the_live_figure_down_at_once() -> None:
    """Two streams of 8 tokens/s; one stops at 5 s. Over the 2 s after it: 16 tokens in 4 stream-seconds."""
    counts = Counts()
    steady = play(*[chunk(1 + n / 8, "x", n + 1) for n in range(33)], counts=counts)
    stalled = play(*[chunk(1 + n / 8, "x", n + 1) for n in range(33)], counts=counts)
    before = counts.decode_tokens, live([steady, stalled], 5.0)
    assert before[0] / before[1] == 8.0
    for n in range(33, 49):
        steady.event(chunk(1 + n / 8, "x", n + 1)[1], 1 + n / 8)
    after = counts.decode_tokens, live([steady, stalled], 7.0)
    assert (after[0] - before[0]) / (after[1] - before[1]) == 4.0


def test_a_normal_end_counts_up_to_the_last_token_chunk() -> None:
    meter = play(chunk(1.0, "a", 1), chunk(2.0, "b", 2, "length"))
    assert live([meter], 5.0) == 1.0  # nothing more is coming
    meter.event(usage_only(6.0, 2)[1], 6.0)
    meter.end(6.0)
    meter.row(6.5)
    assert meter.counts.stream_seconds == 1.0


@pytest.mark.parametrize("cancelled", [False, True], ids=["failed", "cancelled"])
def test_a_stream_that_broke_off_decoded_up_to_its_end(cancelled: bool) -> None:
    meter = play(chunk(1.0, "a", 1), chunk(2.0, "b", 2))
    assert live([meter], 4.0) == 3.0
    meter.row(4.0, error="" if cancelled else "no data for 2 s", cancelled=cancelled)
    assert meter.counts.stream_seconds == 3.0


def test_a_request_that_waits_is_not_decoding() -> None:
    meters = [play(start=1.0), play(chunk(3.0, "", 0), start=2.0), play(chunk(2.5, "a", 1), start=0.5)]
    assert standing(meters, 4.0) == Standing(waiting=2, longest_wait_s=3.0, open_gaps_s=1.5)
    assert standing(meters[2:], 4.0) == Standing(waiting=0, longest_wait_s=0.0, open_gaps_s=1.5)
    assert standing([], 4.0) == Standing()


def test_a_stream_whose_tokens_are_not_known_yet_adds_no_seconds_without_them() -> None:
    meter = play(chunk(1.0, "a"), chunk(2.0, "b"))
    assert live([meter], 9.0) == 0.0
    meter.event(usage_only(10.0, 9)[1], 10.0)
    assert (meter.counts.decode_tokens, live([meter], 10.0)) == (8, 1.0)


@pytest.mark.parametrize("asked", [1.25, 3.0])
def test_the_end_is_when_the_stream_says_so(asked: float) -> None:
    """A server that holds the connection open after [DONE] adds nothing to the request."""
    meter = play(chunk(1.0, "a", 1, "stop"))
    meter.end(1.25)
    row = meter.row(asked, cancelled=True)
    assert (row.total_ms, row.ok, row.cancelled) == (1250.0, True, False)
    assert (meter.counts.ok, meter.counts.cancelled) == (1, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(1, 24)), min_size=1, max_size=60))
def test_live_totals_of_many_streams_are_the_sums_of_their_timetables(
    arrivals: list[tuple[int, int, int]],
) -> None:
    """(stream, tokens, eighths since the arrival before), over four streams; looked at 1 s after the last."""
    counts = Counts()
    meters = [StreamMeter(n, 0.0, counts) for n in range(4)]
    times: list[list[float]] = [[], [], [], []]
    tokens: list[list[int]] = [[], [], [], []]
    t = 1.0
    for stream, step, eighths in arrivals:
        t += eighths / 8
        times[stream].append(t)
        tokens[stream].append(step)
        meters[stream].event(chunk(t, "x", sum(tokens[stream]))[1], t)
    now = t + 1.0
    begun = [some for some in times if some]
    gaps = [b - a for some in begun for a, b in itertools.pairwise(some)]
    assert counts.output_tokens == sum(map(sum, tokens))
    assert counts.decode_tokens == sum(sum(some[1:]) for some in tokens)
    assert live(meters, now) == sum(now - some[0] for some in begun)
    assert standing(meters, now).waiting == 4 - len(begun)
    ttft_ms, found = counts.take()
    assert sorted(ttft_ms) == sorted(some[0] * 1000 for some in begun)
    assert found == gap_counts(*(gap * 1000 for gap in gaps))

"""Truth tests of DESIGN's definitions: tokens and decode rates. Times are eighths of a second, so exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparktui.load.counts import Counts
from sparktui.load.errors import StreamError
from sparktui.schema.records import RequestRow, Usage
from tests.load.timeline import Arrival, chunk, play, usage_only


def rate(row: RequestRow) -> float:
    assert row.decode_tokens is not None
    assert row.decode_s
    return row.decode_tokens / row.decode_s


def answer(steps: list[int], *, first: float = 1.0, gap: float = 0.125) -> list[Arrival]:
    """As vLLM streams: a role, one chunk an engine step with its tokens, the count once more."""
    arrivals, total = [chunk(first, "", 0)], 0
    for number, step in enumerate(steps):
        total += step
        finish = "length" if number == len(steps) - 1 else None
        arrivals.append(chunk(first + number * gap, "x" * step, total, finish))
    return [*arrivals, usage_only(first + (len(steps) - 1) * gap, total)]


def test_without_speculation_a_chunk_is_a_token() -> None:
    row = play(*answer([1] * 33)).row(9.0)
    assert (row.completion_tokens, row.decode_tokens, row.chunks) == (33, 32, 33)
    assert row.decode_s == 32 * 0.125
    assert rate(row) == 8.0


def test_with_speculation_a_chunk_holds_several_tokens() -> None:
    """17 steps of 3, 1, 3, 1, … tokens: 8 a second are the chunks, 16 the tokens."""
    steps = [3 if step % 2 == 0 else 1 for step in range(17)]
    row = play(*answer(steps)).row(9.0)
    assert (row.completion_tokens, row.chunks) == (9 * 3 + 8 * 1, 17)
    assert row.decode_tokens == 35 - 3
    assert row.decode_s == 16 * 0.125
    assert rate(row) == 16.0


@pytest.mark.parametrize("first", [1, 4])
def test_tokens_of_the_first_chunk_came_before_the_decoding(first: int) -> None:
    """Whatever the first chunk held, the rate is that of the steps after it."""
    row = play(*answer([first, 2, 2, 2, 2])).row(9.0)
    assert (row.completion_tokens, row.decode_tokens) == (first + 8, 8)
    assert rate(row) == 8 / 0.5


def test_chunks_that_a_busy_server_merged_keep_the_rate() -> None:
    """The same 24 tokens in 3 s, step by step and with four steps in one chunk now and then."""
    even = play(*answer([1] * 25)).row(9.0)
    merged = play(
        chunk(1.0, "x", 1), chunk(1.5, "xxxx", 5), chunk(1.625, "x", 6), chunk(2.625, "x" * 8, 14),
        chunk(4.0, "x" * 11, 25, "length"), usage_only(4.0, 25),
    ).row(9.0)  # fmt: skip
    assert (even.chunks, merged.chunks) == (25, 5)
    assert even.decode_tokens == merged.decode_tokens == 24
    assert rate(even) == rate(merged) == 8.0


def test_events_of_one_read_share_its_time_and_keep_their_tokens() -> None:
    row = play(
        chunk(1.0, "a", 1), chunk(1.5, "b", 2), chunk(1.5, "cd", 4), chunk(2.0, "e", 5, "stop")
    ).row(9.0)  # fmt: skip
    assert (row.completion_tokens, row.decode_tokens, row.decode_s, row.chunks) == (5, 4, 1.0, 4)


def test_stream_interval_bundles_tokens_and_keeps_the_rate() -> None:
    """--stream-interval 8: the first token by itself, then eight at a time, the rest at the end."""
    row = play(*answer([1, 8, 8, 8, 8], gap=1.0)).row(9.0)
    assert (row.chunks, row.decode_tokens) == (5, 32)
    assert rate(row) == 8.0


def test_a_count_at_the_end_is_spread_over_the_text() -> None:
    """A proxy that passes ``usage`` only once: 65 tokens, one at least in the first chunk."""
    text = [chunk(1.0 + n / 8, "word ") for n in range(33)]
    meter = play(*text, chunk(5.25, "", None, "stop"))
    assert (meter.counts.output_tokens, meter.counts.decode_tokens, meter.counts.stream_seconds) == (0, 0, 0)
    meter.event(usage_only(6.0, 65)[1], 6.0)
    row = meter.row(6.0)
    assert (row.completion_tokens, row.decode_tokens, row.decode_s) == (65, 64, 32 / 8)
    assert rate(row) == 16.0
    assert (row.usage, row.chunks) == ("final", 33)
    assert (meter.counts.output_tokens, meter.counts.decode_tokens, meter.counts.stream_seconds) == (
        65,
        64,
        4,
    )


@pytest.mark.parametrize("last_text", ["", "end"], ids=["without text", "with text"])
def test_a_count_in_the_finish_chunk_only_is_a_final_one(last_text: str) -> None:
    row = play(chunk(1.0, "a"), chunk(2.0, "b"), chunk(3.0, last_text, 41, "stop")).row(9.0)
    assert (row.usage, row.completion_tokens, row.decode_tokens) == ("final", 41, 40)
    assert row.decode_s == (2.0 if last_text else 1.0)


def test_a_count_now_and_then_is_for_the_text_before_it() -> None:
    """Two chunks, then a count with text; two more, then a count in the finish chunk without text."""
    row = play(
        chunk(1.0, "a"), chunk(1.5, "b"), chunk(2.0, "c", 9), chunk(2.5, "d"), chunk(3.0, "e"),
        chunk(7.0, "", 17, "stop"), usage_only(7.0, 17),
    ).row(9.0)  # fmt: skip
    assert (row.usage, row.completion_tokens, row.decode_tokens) == ("continuous", 17, 16)
    assert row.decode_s == 2.0


def test_without_any_count_tokens_are_not_known() -> None:
    counts = Counts()
    row = play(chunk(1.0, "a"), chunk(2.0, "b"), chunk(3.0, "", None, "stop"), counts=counts).row(9.0)
    assert (row.completion_tokens, row.decode_tokens, row.decode_s) == (None, None, None)
    assert (row.usage, row.chunks, row.ok) == ("none", 2, True)
    assert (counts.usage(9.0), counts.output_tokens, counts.chunks, counts.stream_seconds) == (
        "none",
        0,
        2,
        0.0,
    )


def test_a_count_that_stays_zero_beside_text_is_no_count() -> None:
    row = play(chunk(1.0, "a", 0), chunk(2.0, "b", 0, "stop"), usage_only(2.0, 0)).row(9.0)
    assert (row.completion_tokens, row.decode_tokens, row.usage) == (None, None, "none")


@pytest.mark.parametrize(
    "arrivals",
    [
        (chunk(1.0, "", 0), chunk(1.0, "", 0, "stop"), usage_only(1.0, 0)),
        (chunk(1.0, "", None, "stop"), usage_only(1.0, 0)),
    ],
    ids=["continuous", "at the end"],
)
def test_an_empty_completion_has_no_tokens_and_says_nothing_of_the_counting(
    arrivals: tuple[Arrival, ...],
) -> None:
    row = play(*arrivals).row(9.0)
    assert (row.ok, row.completion_tokens, row.decode_tokens, row.chunks) == (True, 0, 0, 0)
    assert (row.ttft_ms, row.decode_s, row.usage) == (None, None, "")


def test_an_end_without_text_is_a_token_of_its_own() -> None:
    """vLLM counts the end-of-sequence token, which has no text."""
    row = play(chunk(1.0, "", 0), chunk(1.0, "", 1, "stop"), usage_only(1.0, 1)).row(9.0)
    assert (row.completion_tokens, row.decode_tokens, row.ttft_ms) == (1, 0, None)
    row = play(chunk(1.0, "a", 1), chunk(2.0, "", 2, "stop"), usage_only(2.0, 2)).row(9.0)
    assert (row.completion_tokens, row.decode_tokens, row.decode_s) == (2, 1, 1.0)


def test_the_finish_chunk_before_the_usage_chunk_counts_once() -> None:
    counts = Counts()
    row = play(
        chunk(1.0, "a", 1), chunk(2.0, "b", 2), chunk(2.0, "", 2, "length"), usage_only(2.5, 2), counts=counts
    ).row(9.0)
    assert (row.completion_tokens, row.chunks, row.finish_reason) == (2, 2, "length")
    assert (counts.output_tokens, counts.decode_tokens, counts.stream_seconds) == (2, 1, 1.0)


def test_tokens_before_an_error_stay_counted_and_the_request_is_no_figure() -> None:
    counts = Counts()
    meter = play(chunk(1.0, "a", 1), chunk(2.0, "b", 4), counts=counts)
    with pytest.raises(StreamError, match="the engine died"):
        meter.event(b'{"error":{"message":"the engine died"}}', 2.5)
    row = meter.row(2.5, error="the engine died")
    assert (row.ok, row.completion_tokens, row.decode_tokens, row.decode_s) == (False, 4, 3, 1.0)
    assert (counts.output_tokens, counts.decode_tokens, counts.errors) == (4, 3, 1)
    assert counts.stream_seconds == 1.5  # it decoded up to its end


KINDS: list[tuple[Usage, tuple[Arrival, ...]]] = [
    ("continuous", (chunk(1.0, "a", 1), usage_only(1.0, 1))),
    ("final", (chunk(1.0, "a"), usage_only(1.0, 1))),
    ("none", (chunk(1.0, "a"),)),
]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=["down", "up", "mixed"])
def test_the_poorest_kind_of_usage_stands(order: tuple[int, ...]) -> None:
    counts = Counts()
    for number, kind in enumerate(order, 1):
        name, arrivals = KINDS[kind]
        assert play(*arrivals, counts=counts).row(9.0).usage == name
        assert counts.usage(9.0) == KINDS[max(order[:number])][0]


@pytest.mark.parametrize(
    ("now", "kind"), [(2.0, "none"), (6.9, "none"), (7.1, "continuous"), (600.0, "continuous")]
)
def test_poor_usage_is_forgotten_after_a_while(now: float, kind: Usage) -> None:
    """Three seconds of a proxy without usage must not spoil the life of the load process. Nothing new for a
    long while: what was last told stands, for the answers in flight are likely of that kind."""
    counts = Counts()
    play(chunk(1.0, "a"), counts=counts).row(2.0)
    play(chunk(1.0, "a", 1), counts=counts).row(8.0)
    assert counts.usage(now) == kind


@pytest.mark.parametrize("end", [{"error": "broken"}, {"cancelled": True}], ids=["error", "cancelled"])
def test_an_answer_that_broke_off_before_its_count_does_not_tell_the_kind(end: dict[str, object]) -> None:
    counts = Counts()
    row = play(chunk(1.0, "a"), counts=counts).row(2.0, **end)  # type: ignore[arg-type]
    assert (row.usage, counts.usage(2.0), row.completion_tokens) == ("", "", None)


def test_a_continuous_count_is_known_before_the_first_answer_ends() -> None:
    counts = Counts()
    play(chunk(1.0, "", 0), counts=counts)
    seen = [counts.usage(1.0)]
    play(chunk(1.0, "a", 1), counts=counts)
    assert [*seen, counts.usage(1.0)] == ["", "continuous"]


STEPS = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 40)), min_size=1, max_size=30)


@given(STEPS, st.booleans())
def test_any_stream_gives_the_formulas_of_the_table(steps: list[tuple[int, int]], continuous: bool) -> None:
    """Steps of so many tokens after so many eighths; 0 eighths: in the same read as the one before."""
    t, total, arrivals = 1.0, 0, []
    for tokens, eighths in steps:
        t += eighths / 8
        total += tokens
        arrivals.append(chunk(t, "x" * tokens, total if continuous else None))
    first = arrivals[0][0]
    row = play(
        *arrivals, chunk(t + 1, "", total if continuous else None, "stop"), usage_only(t + 2, total)
    ).row(t + 2)
    in_first = steps[0][0] if continuous else 1
    assert row.completion_tokens == sum(tokens for tokens, _ in steps)
    assert row.decode_tokens == row.completion_tokens - in_first
    assert row.decode_s == t - first
    assert row.ttft_ms == first * 1000
    assert row.chunks == len(steps)

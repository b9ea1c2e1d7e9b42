"""Whose tokens, and when they came: by hand-made numbers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sparktui.compare.accounting import (
    account,
    prefix_flags,
    tokens_between,
    untold,
    usage_of_rows,
    usage_over,
)
from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import RequestRow, Usage


def line(t: float, usage: Usage) -> LoadTotals:
    return LoadTotals(t, 1, 1, 0, 0, 0, 0, 0, 0, 0.0, 0.5, 0.1, usage=usage)


def row(start: float, first: float, last: float, tokens: int | None, **more: Any) -> RequestRow:
    """The first text at ``first``, the last at ``last``, where it ends."""
    made: dict[str, Any] = {
        "ok": tokens is not None, "ttft_ms": (first - start) * 1000, "total_ms": (last - start) * 1000,
        "usage": "" if tokens is None else "final",
    }  # fmt: skip
    if tokens is not None:
        made |= {"completion_tokens": tokens, "decode_tokens": tokens - 1, "decode_s": last - first}
    return RequestRow(0, start, **made | more)


@pytest.mark.parametrize(
    ("generated", "ours", "streams", "foreign", "behind"),
    [
        (1000, 1000, 1, False, False),
        (1018, 1000, 1, False, False),  # on its way: 8 tokens a stream
        (1019, 1000, 1, False, True),
        (1028, 1000, 1, False, True),
        (1029, 1000, 1, True, True),
        (1029, 1000, 2, False, True),
        (900, 1000, 1, False, False),
    ],
)
def test_the_edges_of_the_rule(
    generated: float, ours: float, streams: int, foreign: bool, behind: bool
) -> None:
    told = account(generated, ours, streams)
    assert (told.others, told.foreign, told.behind) == (generated - ours, foreign, behind)


def test_usage_over_a_window_leaves_out_what_was_before_it() -> None:
    """A line remembers five seconds."""
    before: list[LoadTotals] = [line(10.0, "none"), line(14.0, "none")]
    assert usage_over([*before, line(15.0, "continuous"), line(16.0, "continuous")]) == "continuous"
    assert usage_over([*before, line(15.0, "final"), line(16.0, "continuous")]) == "final"
    assert usage_over(before) == "none"
    assert usage_over([]) == ""


def test_usage_of_requests_that_ran_in_a_window() -> None:
    rows = [row(0.0, 0.5, 1.0, None, usage="none"), row(1.0, 2.0, 9.0, 10), row(3.0, 4.0, 5.0, None)]
    assert usage_of_rows(rows, 0.5, 6.0) == "none"
    assert usage_of_rows(rows, 1.0, 6.0) == "final"
    assert usage_of_rows(rows[2:], 1.0, 6.0) == ""


@pytest.mark.parametrize(
    ("begun", "ended", "tokens"),
    [
        (0.0, 20.0, 101.0), (2.0, 12.0, 100.0), (0.0, 2.0, 1.0), (4.0, 9.0, 50.0), (9.5, 30.0, 25.0),
        (0.0, 1.0, 0.0),
    ],
    ids=["whole", "decode only", "first token", "middle", "end", "before"],
)  # fmt: skip
def test_tokens_of_an_answer_are_spread_over_its_decode_time(
    begun: float, ended: float, tokens: float
) -> None:
    """One token at 2 s, a hundred up to 12 s; it ended and told them later."""
    answer = row(1.0, 2.0, 12.0, 101, total_ms=14_000.0)
    assert tokens_between([answer], begun, ended) == pytest.approx(tokens)


def test_windows_side_by_side_share_no_token_and_lose_none() -> None:
    rows = [row(t / 3, t / 3 + 0.4, t / 3 + 2.9, 40 + t) for t in range(30)]
    edges = [0.0, 0.4, 1.7, 5.0, 20.0]
    parts = [tokens_between(rows, a, b) or 0.0 for a, b in itertools.pairwise(edges)]
    assert sum(parts) == pytest.approx(sum(row.completion_tokens or 0 for row in rows))


def test_an_answer_of_one_chunk_came_at_once() -> None:
    once = row(1.0, 2.0, 2.0, 8)
    assert tokens_between([once], 1.0, 3.0) == 8
    assert tokens_between([once], 3.0, 4.0) == 0


def test_answers_that_broke_off_before_their_count_stream_as_the_others_did() -> None:
    told, cut = row(0.0, 1.0, 11.0, 101), row(0.0, 1.0, 6.0, None)
    assert tokens_between([told, cut], 1.0, 11.0) == pytest.approx(100 * 1.5)
    assert untold([told, cut], 1.0, 11.0) == 1
    assert untold([told, cut], 6.0, 11.0) == 0
    assert tokens_between([cut], 1.0, 11.0) is None


def test_prefix_hits_are_told_only_where_none_are_meant() -> None:
    assert prefix_flags("chat", 0.05) == ("prefix hits 5%",)
    assert prefix_flags("chat", 0.01) == ()
    assert prefix_flags("chat", None) == ()
    for meant in ("shared-prefix", "repeat", "file:/prompts.jsonl"):
        assert prefix_flags(meant, 0.9) == ()

"""Whose tokens the server counted: ours against its counter, and when ours came. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import RequestRow, Usage
from sparktui.schema.usage import USAGE_S, poorest
from sparktui.schema.workloads import WORKLOADS

MIN_DECODE_TOKENS = 32  # under that a request's decode tok/s says nothing
FOREIGN_SHARE, BEHIND_SHARE = 0.02, 0.01
SLACK_TOKENS = 8.0  # a stream: what the server counted and is still on its way
PREFIX_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Account:
    """``others``: tokens that the server counted and we did not receive, below zero where more came than it
    counted. ``foreign``: they are more than 2 % of ours; ``behind``: we are more than 1 % behind the server.
    Both may hold: whether others' requests ran at the time tells which of the two it was. ``elsewhere``: the
    half of ours are not in its counter, which then is another server's."""

    others: float
    foreign: bool
    behind: bool
    elsewhere: bool


def account(generated: float, ours: float, streams: int) -> Account:
    """``generated`` by the server and received by us, tokens of one time, on so many streams of ours. Only
    where ``usage`` is continuous: a count at an answer's end has tokens of another time."""
    slack = SLACK_TOKENS * streams
    return Account(
        others=generated - ours,
        foreign=generated > ours * (1 + FOREIGN_SHARE) + slack,
        behind=generated * (1 - BEHIND_SHARE) > ours + slack,
        elsewhere=generated < ours / 2 - slack,
    )


def usage_over(lines: Sequence[LoadTotals]) -> Usage:
    """The poorest usage of the answers over these lines. Each remembers ``USAGE_S``: those of the first
    moments have what was before the window, and none is lost without them."""
    if not lines:
        return ""
    whole = [line for line in lines if line.t >= lines[0].t + USAGE_S] or lines[-1:]
    return poorest(line.usage for line in whole)


def usage_of_rows(rows: Sequence[RequestRow], begun: float, ended: float) -> Usage:
    """The poorest usage of the requests that ran between these two times; empty where none told."""
    return poorest(row.usage for row in rows if row.start < ended and _end(row) > begun)


def tokens_between(rows: Sequence[RequestRow], begun: float, ended: float) -> float | None:
    """Tokens that came between two times (CLOCK_MONOTONIC seconds), from counts at each answer's end: the
    first chunk's at its time, the others evenly up to the last chunk's. Answers that broke off before their
    count are taken to have streamed as the counted ones did; None where only such there are."""
    tokens = seconds = untold_s = 0.0
    for row in rows:
        if row.ttft_ms is None:
            continue
        first = row.start + row.ttft_ms / 1000
        if row.completion_tokens is None:
            untold_s += _overlap(first, _end(row), begun, ended)
            continue
        decoded, decode_s = row.decode_tokens or 0, row.decode_s or 0.0
        shared = _overlap(first, first + decode_s, begun, ended)
        seconds += shared
        if begun < first <= ended:
            tokens += row.completion_tokens - (decoded if decode_s else 0)
        if decode_s:
            tokens += decoded * shared / decode_s
    if untold_s and not seconds:
        return None
    return tokens * (1 + untold_s / seconds) if untold_s else tokens


def untold(rows: Sequence[RequestRow], begun: float, ended: float) -> int:
    """How many answers gave text between these times, and broke off before their count."""
    cut = [row for row in rows if row.ttft_ms is not None and row.completion_tokens is None]
    return sum(_overlap(row.start + (row.ttft_ms or 0.0) / 1000, _end(row), begun, ended) > 0 for row in cut)


def prefix_flags(workload: str, hit_rate: float | None) -> tuple[str, ...]:
    """Prefix hits that a workload isn't meant to have; what a file's prompts share is their own."""
    known = WORKLOADS.get(workload)
    unwanted = known is not None and known.nonce and (hit_rate or 0.0) > PREFIX_SHARE
    return (f"prefix hits {hit_rate:.0%}",) if unwanted else ()


def _end(row: RequestRow) -> float:
    return row.start + (row.total_ms or 0.0) / 1000


def _overlap(a: float, b: float, begun: float, ended: float) -> float:
    return max(0.0, min(b, ended) - max(a, begun))

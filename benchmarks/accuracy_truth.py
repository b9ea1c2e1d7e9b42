"""What a client noted against what the stand-in's clock says: pure arithmetic for load_accuracy.py.

Errors are absolute, seconds. *TTFT error*: the client's own figure less (first write with a token less
arrival of the request). *Chunk-gap error*: time between two events here less time between the same two there.
"""

from __future__ import annotations

import itertools
import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Window = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Answer:
    """One request on both sides. ``wrote``, ``tokens``: by the server's clock; ``came``: at the client."""

    start: float
    ttft: float | None
    came: tuple[float, ...]
    counted: int | None  # tokens by the client
    arrival: float
    wrote: tuple[float, ...]
    tokens: tuple[int, ...]
    counts_role: bool  # the client takes the event with the role for the first token

    @property
    def true_ttft(self) -> float:
        first = 0 if self.counts_role else next(i for i, tokens in enumerate(self.tokens) if tokens)
        return self.wrote[first] - self.arrival

    def gap_errors(self, window: Window) -> Iterator[float]:
        """Of the gaps that ended here within the window; the role is no chunk that a reader sees."""
        pairs = list(zip(self.came, self.wrote, strict=False))[1:]
        for (came, wrote), (later, later_wrote) in itertools.pairwise(pairs):
            if window[0] <= later < window[1]:
                yield abs((later - came) - (later_wrote - wrote))


def answers(records: Path, clock: Path, *, counts_role: bool) -> tuple[list[Answer], list[str]]:
    """Both sides' notes joined by the answer's id, and what went wrong: errors, requests of one side only."""
    theirs: dict[str, Mapping[str, Any]] = {}
    for line in clock.read_bytes().splitlines():
        told = json.loads(line)
        theirs[told["id"]] = told
    found, problems = [], []
    for record in json.loads(records.read_text("utf-8")):
        told = theirs.pop(record["id"], {})
        if record["error"] or not told or not told["t"]:
            problems.append(record["error"] or f"no line for {record['id'] or 'an unnamed answer'}")
            continue
        found.append(
            Answer(
                record["start"],
                record["ttft"],
                tuple(record["t"]),
                record["tokens"],
                told["arrival"],
                tuple(told["t"]),
                tuple(told["tokens"]),
                counts_role,
            )
        )
    problems += [f"{key}: unknown to the client" for key in theirs]
    return found, problems


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of one window. Seconds; shares 0 to 1; None where nothing happened."""

    ttft_p50: float | None
    ttft_p99: float | None
    gap_p50: float | None
    gap_p99: float | None
    ttfts: int
    chunks: int  # that came in the window
    lost: int  # tokens that were written to finished requests and that the client didn't count
    delivered: float  # tokens that came, of those that the server would have given to streams never idle
    rate: float  # tok/s that came
    true_rate: float  # tok/s that were written


def judge(found: list[Answer], window: Window, streams: int) -> Accuracy:
    """All figures of one client in one window."""
    inside = [a for a in found if a.ttft is not None and window[0] <= a.start + a.ttft < window[1]]
    ttfts = [abs(a.ttft - a.true_ttft) for a in inside if a.ttft is not None]
    gaps = [error for answer in found for error in answer.gap_errors(window)]
    seconds = window[1] - window[0]
    came, wrote = tokens_between(found, window, "came"), tokens_between(found, window, "wrote")
    return Accuracy(
        percentile(ttfts, 0.5),
        percentile(ttfts, 0.99),
        percentile(gaps, 0.5),
        percentile(gaps, 0.99),
        len(ttfts),
        sum(window[0] <= t < window[1] for answer in found for t in answer.came),
        sum(abs(sum(a.tokens) - (a.counted or 0)) for a in found),
        came / possible(inside, seconds, streams) if inside else 0.0,
        came / seconds,
        wrote / seconds,
    )


def tokens_between(found: Iterable[Answer], window: Window, side: str) -> int:
    """Tokens that came to the client, or that the server wrote, within the window."""
    total = 0
    for answer in found:
        times = getattr(answer, side)
        low, high = (bisect_left(times, end) for end in window)
        total += sum(answer.tokens[low:high])
    return total


def possible(found: Iterable[Answer], seconds: float, streams: int) -> float:
    """Tokens that so many streams get when each asks again in the instant its last token is written."""
    tokens = spent = 0.0
    for answer in found:
        tokens += sum(answer.tokens)
        spent += answer.wrote[-1] - answer.arrival
    return streams * seconds * tokens / spent


def percentile(values: list[float], share: float) -> float | None:
    """Nearest rank; None without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None

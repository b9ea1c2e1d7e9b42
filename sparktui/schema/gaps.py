"""Counts of durations in logarithmic buckets, 1 % wide: small enough to send, exact enough to quote.

A bucket is the integer part of log(ms / 1 µs) / log(1.01); its value is its geometric middle, so a
percentile is at most 0.5 % off. Keys are decimal strings, as JSON has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

_LEAST_MS = 0.001
_WIDTH = math.log(1.01)


def bucket(ms: float) -> int:
    """The bucket of a duration in milliseconds; everything up to 1 µs is in bucket 0."""
    return int(math.log(ms / _LEAST_MS) / _WIDTH) if ms > _LEAST_MS else 0


def middle(index: int) -> float:
    """The value of a bucket, in milliseconds."""
    return _LEAST_MS * math.exp((index + 0.5) * _WIDTH)


def merged(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Several counts as one."""
    total: dict[str, int] = {}
    for some in counts:
        for key, count in some.items():
            total[key] = total.get(key, 0) + count
    return total


def quantile(counts: Mapping[str, int], q: float) -> float | None:
    """The ``q`` quantile in milliseconds (nearest rank); None without counts."""
    rank = max(1, math.ceil(q * sum(counts.values())))
    seen = 0
    for index, count in sorted((int(key), count) for key, count in counts.items()):
        seen += count
        if seen >= rank:
            return middle(index)
    return None

"""Cumulative histograms of a page: their difference, and a quantile of it. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative: ``buckets`` maps the upper bound (seconds) to the count at or under it."""

    sum: float = 0.0
    count: float = 0.0
    buckets: dict[float, float] = field(default_factory=dict)

    def since(self, old: Histogram) -> Histogram:
        """What came after ``old``, an earlier state of the same histogram."""
        buckets = {bound: count - old.buckets.get(bound, 0.0) for bound, count in self.buckets.items()}
        return Histogram(self.sum - old.sum, self.count - old.count, buckets)

    @property
    def mean(self) -> float | None:
        """Exact, whatever the buckets; None of nothing."""
        return self.sum / self.count if self.count > 0 else None

    def quantile(self, q: float) -> tuple[float | None, bool]:
        """Linear interpolation inside the bucket, as Prometheus's histogram_quantile does. True beside it
        where one bucket holds everything: then its upper bound is all that is known.

        None where the rank lies past the last bound: histogram_quantile says the bound there, but the truth
        is anything above it.
        """
        rank = q * self.buckets.get(math.inf, self.count)
        if rank <= 0:
            return None, False
        low, below = 0.0, 0.0
        held: list[float] = []
        found: float | None = None
        for bound, cumulative in sorted(self.buckets.items()):
            inside = cumulative - below
            if inside > 0:
                held.append(bound)
                if found is None and cumulative >= rank:
                    found = low + (bound - low) * (rank - below) / inside
            low, below = bound, cumulative
        if found is None or not math.isfinite(found):
            return None, False
        return (held[0], True) if len(held) == 1 else (found, False)

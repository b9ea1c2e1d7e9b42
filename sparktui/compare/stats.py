"""Statistics of one run and of two. Pure; formulas with their sources.

Unit of evidence is one server start. A run's value is log(Σ decode tokens / Σ decoding stream-seconds) over
wall-clock batches, its error comes from the batch means (Law & Kelton, Simulation Modeling and Analysis,
"batch means"), inflated by their lag-1 autocorrelation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from sparktui.schema.records import Batch

# 97.5 % quantiles of Student's t for 1…30 degrees of freedom, and for 40, 60, 120, infinity
_T975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_T975_FAR = ((30.0, 2.042), (40.0, 2.021), (60.0, 2.000), (120.0, 1.980), (math.inf, 1.960))
_MAX_AUTOCORRELATION = 0.9


@dataclass(frozen=True, slots=True)
class RunValue:
    """Log of a rate, its standard error and the degrees of freedom behind that error."""

    log_rate: float
    error: float
    df: float

    @property
    def rate(self) -> float:
        return math.exp(self.log_rate)

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval, relative (0.015 is 1.5 %)."""
        return math.exp(t975(self.df) * self.error) - 1


def t975(df: float) -> float:
    """97.5 % quantile of Student's t; between table rows linear in 1/df, as is customary."""
    if df < 1:
        return math.inf
    if df < 30:
        low = math.floor(df)
        a, b = _T975[low - 1], _T975[low]
        return a + (b - a) * (1 / low - 1 / df) / (1 / low - 1 / (low + 1))
    for (low_df, a), (high_df, b) in itertools.pairwise(_T975_FAR):
        if df <= high_df:
            return a + (b - a) * (1 / low_df - 1 / df) / (1 / low_df - 1 / high_df)
    return _T975_FAR[-1][1]


def decode_rate(batch: Batch) -> float | None:
    """Decode tok/s per stream of one batch."""
    return batch.decode_tokens / batch.stream_seconds if batch.stream_seconds > 0 else None


def decode_value(batches: Sequence[Batch]) -> RunValue | None:
    """The run's decode tok/s per stream; None when fewer than two batches decoded anything."""
    return _run_value([(batch.decode_tokens, batch.stream_seconds) for batch in batches])


def output_value(batches: Sequence[Batch]) -> RunValue | None:
    """The run's output tok/s over all streams; None as for ``decode_value``."""
    return _run_value([(batch.output_tokens, batch.seconds) for batch in batches])


def _run_value(batches: Sequence[tuple[float, float]]) -> RunValue | None:
    """Ratio of sums; its error by linearisation (Cochran, Sampling Techniques, "ratio estimator"), which
    lets a batch without a token count too: a stall is part of the noise."""
    tokens, seconds = sum(t for t, _ in batches), sum(s for _, s in batches)
    if sum(t > 0 for t, _ in batches) < 2 or seconds <= 0:
        return None
    rate, mean_seconds = tokens / seconds, seconds / len(batches)
    residuals = [(t - rate * s) / (rate * mean_seconds) for t, s in batches]
    return RunValue(math.log(rate), mean_error(residuals), len(batches) - 1)


def mean_error(values: Sequence[float]) -> float:
    """Standard error of the mean of a short, possibly autocorrelated series (AR(1) inflation)."""
    n = len(values)
    mean = sum(values) / n
    squares = sum((v - mean) ** 2 for v in values)
    if squares == 0:
        return 0.0
    lagged = sum((a - mean) * (b - mean) for a, b in itertools.pairwise(values))
    rho = min(max(lagged / squares, 0.0), _MAX_AUTOCORRELATION)
    return math.sqrt(squares / (n - 1) / n * (1 + rho) / (1 - rho))


def slope_is_significant(values: Sequence[float]) -> bool:
    """Whether a least-squares line through equally spaced values rises or falls at the 5 % level."""
    n = len(values)
    if n < 3:
        return True
    mean_x, mean_y = (n - 1) / 2, sum(values) / n
    sxx = sum((i - mean_x) ** 2 for i in range(n))
    slope = sum((i - mean_x) * (y - mean_y) for i, y in enumerate(values)) / sxx
    residuals = sum((y - mean_y - slope * (i - mean_x)) ** 2 for i, y in enumerate(values))
    error = math.sqrt(residuals / (n - 2) / sxx)
    return abs(slope) > t975(n - 2) * error if error > 0 else slope != 0


def percentile(values: Sequence[float], q: float) -> float | None:
    """Linear interpolation between order statistics (numpy's default); q in 0..1."""
    if not values:
        return None
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

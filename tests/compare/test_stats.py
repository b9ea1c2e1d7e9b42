"""Statistics of one run, against tables, hand calculations and simulation."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparktui.compare.stats import (
    RunValue,
    decode_value,
    mean_error,
    output_value,
    percentile,
    slope_is_significant,
    t975,
)
from sparktui.schema.records import Batch
from tests.compare.made import batches

TABLE = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 15: 2.131, 20: 2.086, 29: 2.045,
    30: 2.042, 35: 2.030, 40: 2.021, 50: 2.009, 60: 2.000, 80: 1.990, 100: 1.984, 120: 1.980, 1000: 1.962,
    math.inf: 1.960,
}  # fmt: skip


def exact(df: float) -> float:
    """97.5 % quantile of Student's t from its density: bisection over Simpson's rule."""
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)

    def area(upto: float, steps: int = 400) -> float:
        h = upto / steps
        ys = [scale * math.pow(1 + (i * h) ** 2 / df, -(df + 1) / 2) for i in range(steps + 1)]
        return h / 3 * (ys[0] + ys[-1] + 4 * sum(ys[1:-1:2]) + 2 * sum(ys[2:-1:2]))

    low, high = 1.0, 20.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if area(middle) < 0.475 else (low, middle)
    return low


@pytest.mark.parametrize(("df", "value"), TABLE.items())
def test_t_is_that_of_the_tables(df: float, value: float) -> None:
    assert t975(df) == pytest.approx(value, abs=0.0006)


@pytest.mark.parametrize("df", [4.5, 6.3, 9.7, 16.157, 24.5, 29.5, 33.3, 47.0, 90.0, 300.0])
def test_t_of_a_fractional_df_lies_close_to_the_exact_quantile(df: float) -> None:
    assert t975(df) == pytest.approx(exact(df), rel=0.005)


@pytest.mark.parametrize("df", [1.2, 1.5, 1.8, 2.2, 2.5, 3.5])
def test_t_of_a_very_small_fractional_df_is_never_too_narrow(df: float) -> None:
    assert exact(df) - 0.001 <= t975(df) <= t975(math.floor(df))


@given(st.floats(1, 500), st.floats(1, 500))
def test_t_falls_with_more_evidence(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert t975(low) >= t975(high) >= 1.959


@pytest.mark.parametrize("df", [0.99, 0.5, 0.0, -1.0])
def test_without_a_degree_of_freedom_there_is_no_bound(df: float) -> None:
    assert t975(df) == math.inf


def test_the_error_of_a_mean_by_hand() -> None:
    assert mean_error([1, -1, 1, -1]) == pytest.approx(math.sqrt(4 / 3 / 4))  # negative correlation: none
    assert mean_error([1, 1, -1, -1]) == pytest.approx(math.sqrt(4 / 3 / 4 * 1.25 / 0.75))  # rho 1/4
    assert mean_error([7.0, 7.0, 7.0]) == 0.0
    assert mean_error([7.0]) == 0.0


def test_correlation_is_bounded() -> None:
    """A pure ramp has rho near 1; its error must stay finite: at most sqrt(19) of the plain one."""
    values = [float(i) for i in range(100)]
    plain = statistics.stdev(values) / 10
    assert mean_error(values) == pytest.approx(plain * math.sqrt(1.9 / 0.1))


def series(rng: random.Random, rho: float, n: int) -> list[float]:
    """A stationary AR(1) series of variance 1."""
    values = [rng.gauss(0, 1)]
    for _ in range(n - 1):
        values.append(rho * values[-1] + rng.gauss(0, math.sqrt(1 - rho**2)))
    return values


@pytest.mark.parametrize(("rho", "tolerance"), [(0.0, 0.1), (0.5, 0.15), (0.7, 0.2)])
def test_the_error_is_how_much_means_scatter(rho: float, tolerance: float) -> None:
    rng = random.Random(11)
    runs = [series(rng, rho, 100) for _ in range(400)]
    scatter = statistics.stdev(statistics.fmean(run) for run in runs)
    assert statistics.fmean(map(mean_error, runs)) == pytest.approx(scatter, rel=tolerance)


def test_correlated_batches_are_worth_less() -> None:
    rng = random.Random(5)
    run = series(rng, 0.8, 200)
    plain = statistics.stdev(run) / math.sqrt(200)
    assert 2.0 < mean_error(run) / plain < 4.0  # theory: 3
    shuffled = rng.sample(run, 200)
    assert mean_error(shuffled) / plain < 1.25


def test_a_runs_value_is_the_ratio_of_sums() -> None:
    run = (Batch(5.0, 130, 100, 1.0), Batch(5.0, 110, 100, 4.0))
    value = decode_value(run)
    assert value is not None
    assert value.rate == pytest.approx(40.0)  # 200 tokens in 5 stream-seconds, not the mean of 100 and 25
    assert value.df == 1
    # residuals (100 - 40·1) and (100 - 40·4) over the mean batch of 100 tokens: ±0.6; √(0.72 / 1 / 2)
    assert value.error == pytest.approx(0.6)
    assert value.half_width == pytest.approx(math.exp(12.706 * 0.6) - 1)
    output = output_value(run)
    assert output is not None
    assert output.rate == pytest.approx(24.0)


def test_the_precision_of_a_run_by_hand() -> None:
    assert RunValue(3.0, 0.005, 11).half_width == pytest.approx(math.exp(2.201 * 0.005) - 1)
    assert RunValue(math.log(77.5), 0.0, 1).rate == pytest.approx(77.5)


@pytest.mark.parametrize(
    "run",
    [(), batches(50.0), batches(0.0, 0.0, 0.0), (Batch(5.0, 0, 0, 0.0),) * 4, batches(50.0, 0.0)],
    ids=["nothing", "one batch", "no token", "no stream", "one batch with tokens"],
)
def test_without_two_batches_that_decoded_there_is_no_value(run: tuple[Batch, ...]) -> None:
    assert decode_value(run) is None
    assert output_value(run) is None


@pytest.mark.parametrize(
    ("values", "significant"),
    [
        ([40.0] * 6, False),
        ([0.1] * 6, False),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], True),
        ([6.0, 5.0, 4.0, 3.0, 2.0, 1.0], True),
        ([10.0, 11.2, 11.9, 13.1, 13.8, 15.2], True),
        ([10.0, 11.0, 9.5, 10.6, 9.8, 10.4], False),
        ([1.0, 2.0], True),
        ([], True),
    ],
)
def test_slope(values: list[float], significant: bool) -> None:
    """Fewer than three batches can't be called settled."""
    assert slope_is_significant(values) is significant


def test_slope_of_noise_is_called_at_the_five_percent_level() -> None:
    rng = random.Random(3)
    called = sum(slope_is_significant([rng.gauss(50, 1) for _ in range(6)]) for _ in range(2000))
    assert 60 <= called <= 140


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [([], 0.5, None), ([3.0], 0.95, 3.0), ([4, 1, 3, 2], 0.5, 2.5), ([1, 2, 3, 4, 5], 0.95, 4.8),
     ([1, 2, 3], 0.0, 1.0), ([1, 2, 3], 1.0, 3.0)],
)  # fmt: skip
def test_percentile(values: list[float], q: float, expected: float | None) -> None:
    assert percentile(values, q) == (None if expected is None else pytest.approx(expected))


def test_a_stalled_batch_makes_a_run_less_sure() -> None:
    steady = [Batch(5.0, 500, 490, 5.0)] * 8
    stalled = [*steady[:4], Batch(5.0, 0, 0, 0.0), *steady[4:]]
    calm, shaken = output_value(steady), output_value(stalled)
    assert calm is not None
    assert shaken is not None
    assert calm.error == 0.0
    assert shaken.error > 0.05
    assert shaken.df == 8

"""Two runs to an interval and a call: by hand, and how often it is wrong."""

from __future__ import annotations

import math
import random

import pytest

from sparktui.compare.stats import RunValue, decode_value
from sparktui.compare.verdict import Comparison, compare, equivalent, pooled, quick
from sparktui.schema.records import Batch


def exactly(rate: float, error: float = 0.0, df: float = 11) -> RunValue:
    return RunValue(math.log(rate), error, df)


def test_two_noiseless_runs_leave_the_restart_floor() -> None:
    """Two per cent a start: 1.960 · √2 · 0.02 = 0.0554, so 5.7 % up and 5.4 % down."""
    result = quick([exactly(50)], [exactly(50)])
    assert result.ratio == 1.0
    assert result.ci95 == pytest.approx((0.94607, 1.05700), abs=1e-5)
    assert result.call == "not settled"


@pytest.mark.parametrize(
    ("ratio", "call"),
    [
        (1.058, "faster"),
        (1.056, "not settled"),
        (1.0, "not settled"),
        (0.947, "not settled"),
        (0.945, "slower"),
    ],
)
def test_the_floor_decides_what_one_start_each_can_tell(ratio: float, call: str) -> None:
    assert quick([exactly(50)], [exactly(50 * ratio)]).call == call


def test_quick_by_hand() -> None:
    result = quick([exactly(50, 0.03, 5)], [exactly(60, 0.04, 5)])
    assert result.error == pytest.approx(math.sqrt(0.0009 + 0.0016 + 0.0008))
    assert result.df == pytest.approx(0.0033**2 / ((0.03**4 + 0.04**4) / 5))  # 16.2: the floor is known
    half = 2.1187 * 0.0574456
    assert result.ci95 == pytest.approx((1.2 * math.exp(-half), 1.2 * math.exp(half)), rel=1e-4)
    assert result.call == "faster"


def test_a_calibrated_floor_is_used() -> None:
    assert quick([exactly(50)], [exactly(51)], floor=0.005).ci95 == pytest.approx(
        (1.02 * math.exp(-1.96 * 0.005 * math.sqrt(2)), 1.02 * math.exp(1.96 * 0.005 * math.sqrt(2))),
        rel=1e-6,
    )


def test_the_ratio_is_b_over_a() -> None:
    result = quick([exactly(77.5)], [exactly(41)])
    assert result.ratio == pytest.approx(41 / 77.5)
    assert result.call == "slower"


def test_pooled_by_hand() -> None:
    """Means 0.01 and 0.12; squares 0.0002 + 0.0008 over 2 df; t = 4.303."""
    a = [RunValue(0.00, 0.0, 9), RunValue(0.02, 0.0, 9)]
    b = [RunValue(0.10, 0.0, 9), RunValue(0.14, 0.0, 9)]
    result = pooled(a, b)
    assert result.df == 2
    assert result.log_ratio == pytest.approx(0.11)
    assert result.error == pytest.approx(math.sqrt(0.0005))
    half = 4.303 * math.sqrt(0.0005)
    assert result.ci95 == pytest.approx((math.exp(0.11 - half), math.exp(0.11 + half)))
    assert result.call == "faster"


def test_pooled_is_never_narrower_than_within_the_runs() -> None:
    runs = [RunValue(1.0, 0.1, 9), RunValue(1.0, 0.1, 9)]
    result = pooled(runs, runs)
    assert result.error == pytest.approx(0.1)  # √(2 · 0.01 / 4 + 2 · 0.01 / 4)
    unequal = pooled([RunValue(1.0, 0.3, 9)] * 3, [RunValue(1.0, 0.2, 9)] * 2)
    assert unequal.error == pytest.approx(math.sqrt(3 * 0.09 / 9 + 2 * 0.04 / 4))
    assert unequal.df == 3


def test_several_starts_on_both_sides_are_pooled_and_one_on_a_side_is_not() -> None:
    a, b = [exactly(50), exactly(51)], [exactly(60), exactly(61)]
    assert compare(a, b) == pooled(a, b)
    assert compare(a[:1], b[:1]) == quick(a[:1], b[:1])
    two = compare(a[:1], b)  # all three starts count, each with its floor
    assert two.ratio == pytest.approx(math.sqrt(60 * 61) / 50)
    assert two.error == pytest.approx(math.sqrt(0.02**2 + 0.02**2 / 2))


@pytest.mark.parametrize(
    ("log_ratio", "call"),
    [(0.21, "faster"), (0.19, "not settled"), (-0.19, "not settled"), (-0.21, "slower")],
)
def test_the_call_is_whether_the_interval_excludes_one(log_ratio: float, call: str) -> None:
    assert Comparison(log_ratio, 0.2 / 1.96, math.inf).call == call


def start(rng: random.Random, rate: float, restart: float = 0.01, noise: float = 0.02) -> RunValue:
    """One server start: its own speed, twelve batches of 5 s."""
    own = rate * math.exp(rng.gauss(0, restart))
    made = [own * math.exp(rng.gauss(0, noise)) for _ in range(12)]
    value = decode_value([Batch(5.0, round(r * 500), round(r * 500), 500.0) for r in made])
    assert value is not None
    return value


def calls(seed: int, ratio: float, pairs: int = 1500) -> dict[str, float]:
    rng = random.Random(seed)
    made = [quick([start(rng, 50)], [start(rng, 50 * ratio)]).call for _ in range(pairs)]
    return {call: made.count(call) / pairs for call in ("faster", "slower", "not settled")}


def test_false_alarms_of_one_start_each_stay_under_five_percent() -> None:
    shares = calls(1, 1.0)
    assert shares["faster"] + shares["slower"] <= 0.05


def test_a_fifth_more_is_seen_with_one_start_each() -> None:
    shares = calls(2, 1.2, 500)
    assert shares["faster"] >= 0.95
    assert shares["slower"] == 0


def test_false_alarms_of_two_starts_each_stay_at_five_percent() -> None:
    rng = random.Random(4)
    called = [
        pooled([start(rng, 50) for _ in range(2)], [start(rng, 50) for _ in range(2)]).call != "not settled"
        for _ in range(800)
    ]
    assert sum(called) / 800 <= 0.07


def test_the_interval_holds_the_truth() -> None:
    rng = random.Random(6)
    held = 0
    for _ in range(500):
        low, high = quick([start(rng, 50)], [start(rng, 65)]).ci95
        held += low <= 1.3 <= high
    assert held >= 475


def test_equivalence_needs_four_starts_each_and_a_narrow_interval() -> None:
    close = Comparison(0.0, 0.01, math.inf)  # [0.98, 1.02]
    wide = Comparison(0.0, 0.02, math.inf)  # [0.96, 1.04]
    assert equivalent(close, (4, 4))
    assert not equivalent(close, (3, 4))
    assert not equivalent(wide, (4, 4))

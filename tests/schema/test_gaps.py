"""Logarithmic buckets: how far off a quantile may be."""

from __future__ import annotations

import pytest

from sparktui.schema.gaps import bucket, merged, middle, quantile


@pytest.mark.parametrize("ms", [0.0011, 0.02, 1.0, 12.9, 20.0, 333.0, 60_000.0])
def test_a_bucket_s_value_is_half_a_per_cent_off_at_most(ms: float) -> None:
    assert middle(bucket(ms)) == pytest.approx(ms, rel=0.005)


@pytest.mark.parametrize("ms", [0.0, 0.0005, 0.001, -3.0])
def test_nothing_is_below_the_first_bucket(ms: float) -> None:
    assert bucket(ms) == 0


def test_quantiles_are_nearest_ranks() -> None:
    counts = {str(bucket(ms)): 1 for ms in (10.0, 20.0, 30.0, 40.0)}
    found = [quantile(counts, q) for q in (0.25, 0.26, 0.5, 0.75, 0.99, 1.0)]
    assert found == pytest.approx([10.0, 20.0, 20.0, 30.0, 40.0, 40.0], rel=0.005)
    assert quantile({}, 0.5) is None


def test_merged_adds_counts_by_bucket() -> None:
    assert merged([{"10": 1, "12": 2}, {}, {"12": 3}]) == {"10": 1, "12": 5}

"""Mean power and energy over a span."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from sparktui.gpu.sampler import PowerMeter
from sparktui.schema.live import GpuView
from tests.gpu.drivers import NVML


def fed(*readings: tuple[float, tuple[GpuView, ...]]) -> PowerMeter:
    meter = PowerMeter()
    for t, gpus in readings:
        meter.add(gpus, t)
    return meter


def watts(*values: float | None) -> tuple[GpuView, ...]:
    return tuple(GpuView(i, power_w=value) for i, value in enumerate(values))


def test_a_ramp_integrates_exactly() -> None:
    """P(t) = 100 + 20 t over 10 s is 2,000 J, however unevenly it is read."""
    meter = fed(*((t, watts(100 + 20 * t)) for t in (0.0, 0.5, 0.75, 3.0, 9.5, 10.0)))
    assert meter.joules == pytest.approx(2000.0)
    assert meter.mean_w == pytest.approx(200.0)


def test_gpus_count_together() -> None:
    meter = fed((5.0, watts(100, 50)), (7.0, watts(200, 50)))
    assert meter.joules == pytest.approx(2 * (150 + 250) / 2)
    assert meter.mean_w == pytest.approx(200.0)


def test_the_energy_counter_is_preferred_to_integration() -> None:
    first = (GpuView(0, power_w=100, energy_j=5000.0), GpuView(1, power_w=100, energy_j=70.0))
    last = (GpuView(0, power_w=100, energy_j=5900.0), GpuView(1, power_w=100, energy_j=370.0))
    meter = fed((0.0, first), (5.0, last))
    assert meter.joules == 1200.0
    assert meter.mean_w == pytest.approx(200.0)


def test_a_span_longer_than_its_readings_gets_its_share() -> None:
    """Readings at 0.4 and 5.4 s of a window of 6 s: 200 W all along are 1,200 J, by counter or by power."""
    counter = fed((0.4, (GpuView(0, energy_j=80.0),)), (5.4, (GpuView(0, energy_j=1080.0),)))
    assert counter.joules_over(6.0) == pytest.approx(1200.0)
    assert fed((0.4, watts(200)), (5.4, watts(200))).joules_over(6.0) == pytest.approx(1200.0)
    assert PowerMeter().joules_over(6.0) is None


def test_a_counter_that_only_one_of_two_has_is_not_the_sum() -> None:
    first = (GpuView(0, power_w=100, energy_j=5000.0), GpuView(1, power_w=100))
    last = (GpuView(0, power_w=100, energy_j=5900.0), GpuView(1, power_w=100))
    assert fed((0.0, first), (5.0, last)).joules == pytest.approx(1000.0)


def test_a_counter_that_begins_again_falls_back_to_integration() -> None:
    meter = fed(
        (0.0, (GpuView(0, power_w=50, energy_j=9000.0),)), (4.0, (GpuView(0, power_w=50, energy_j=10.0),))
    )
    assert meter.joules == pytest.approx(200.0)


def test_a_counter_without_power_gives_energy_and_no_mean() -> None:
    meter = fed((0.0, (GpuView(0, energy_j=10.0),)), (1.0, (GpuView(0, energy_j=42.5),)))
    assert meter.joules == 32.5
    assert meter.mean_w is None


@pytest.mark.parametrize("gpus", [(), watts(None), watts(100, None)], ids=["none", "no power", "one of two"])
def test_power_that_is_not_all_known_is_not_known(gpus: tuple[GpuView, ...]) -> None:
    meter = fed((0.0, gpus), (1.0, gpus))
    assert meter.mean_w is None
    assert meter.joules is None


def test_one_reading_is_no_span() -> None:
    meter = fed((3.0, watts(100)))
    assert meter.mean_w is None
    assert meter.joules is None
    assert PowerMeter().joules is None


def test_a_reading_that_failed_in_between_is_bridged() -> None:
    assert fed((0.0, watts(100)), (1.0, watts(None)), (2.0, watts(200))).joules == pytest.approx(300.0)


def test_samples_of_an_h200_lie_between_its_idle_and_its_peak() -> None:
    rows = json.loads((NVML / "gpu_samples.json").read_text("utf-8"))
    meter = fed(*((t, watts(power)) for t, power, *_ in rows))
    span = rows[-1][0] - rows[0][0]
    means = [(b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(rows)]
    assert len(rows) > 100
    assert meter.joules == pytest.approx(sum(means))
    assert meter.mean_w == pytest.approx(sum(means) / span)
    assert min(row[1] for row in rows) < (meter.mean_w or 0) < max(row[1] for row in rows)

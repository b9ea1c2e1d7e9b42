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
    meter = fed(*((t, watts(100 + 20 * t)) for t in (0.0, 0.5, 0.75, 3.0, 7.5, 10.0)))
    assert meter.joules == pytest.approx(2000.0)
    assert meter.mean_w == pytest.approx(200.0)


def test_power_is_not_guessed_across_a_long_silence() -> None:
    """100 W, twenty seconds of nothing, 300 W: the mean is of what was measured, not of a line between."""
    meter = fed((0.0, watts(100)), (4.0, watts(100)), (24.0, watts(300)), (26.0, watts(300)))
    assert meter.mean_w == pytest.approx((400 + 600) / 6)
    assert meter.joules == pytest.approx(26 * 1000 / 6)


def test_gpus_count_together() -> None:
    meter = fed((5.0, watts(100, 50)), (7.0, watts(200, 50)))
    assert meter.joules == pytest.approx(2 * (150 + 250) / 2)
    assert meter.mean_w == pytest.approx(200.0)


def test_the_energy_counter_is_preferred_to_integration() -> None:
    """Bursts that no reading sees: 50 and 20 W whenever they are read, 200 and 70 W by the counters. Until a
    counter's first move it is power that counts."""
    meter = fed(
        *(
            (t / 2, (GpuView(0, power_w=50, energy_j=100.0 * t), GpuView(1, power_w=20, energy_j=35.0 * t)))
            for t in range(21)
        )
    )
    assert meter.joules == pytest.approx(0.5 * (50 + 20) + 9.5 * (200 + 70))
    assert meter.mean_w == pytest.approx((meter.joules or 0) / 10)


def test_a_span_longer_than_its_readings_gets_its_share() -> None:
    """Readings at 0.4 and 5.4 s of a window of 6 s: 200 W all along are 1,200 J, by counter or by power."""
    counter = fed((0.4, (GpuView(0, energy_j=80.0),)), (5.4, (GpuView(0, energy_j=1080.0),)))
    assert counter.joules_over(6.0) == pytest.approx(1200.0)
    assert fed((0.4, watts(200)), (5.4, watts(200))).joules_over(6.0) == pytest.approx(1200.0)
    assert PowerMeter().joules_over(6.0) is None


def test_each_gpu_counts_by_what_it_has() -> None:
    """One of two has a counter: its 200 W, from its first move on, and 100 W of the other."""
    meter = fed(
        *((t, (GpuView(0, power_w=100, energy_j=200.0 * t), GpuView(1, power_w=100))) for t in range(5))
    )
    assert meter.joules == pytest.approx(100 + 3 * 200 + 4 * 100)


def counted(*readings: tuple[float, float | None, float]) -> PowerMeter:
    return fed(*((t, (GpuView(0, power_w=power, energy_j=energy),)) for t, power, energy in readings))


def test_a_counter_that_begins_again_goes_on_from_there() -> None:
    """A driver's reload: 100 W by power for a second, 250 J by the counter, the reload's second and the one
    after it by power, 450 J by the new counter."""
    meter = counted((0, 100, 9000), (1, 100, 9100), (2, 100, 9350), (3, 50, 10), (4, 50, 60), (5, 50, 510))
    assert meter.joules == pytest.approx(100 + 250 + 75 + 50 + 450)


def test_a_counter_that_stands_still_leaves_it_to_power() -> None:
    assert counted(*((t, 80, 5000) for t in range(11))).joules == pytest.approx(800.0)
    assert counted(*((t, 100, 1000 + min(100 * t, 300)) for t in range(11))).joules == pytest.approx(1000.0)


@pytest.mark.parametrize("phase", [0.0, 0.3, 2.5, 5.0, 7.5, 9.7])
def test_a_counter_that_moves_in_large_steps_counts_no_step_twice(phase: float) -> None:
    """100 W all along in steps of 1,000 J every ten seconds, the first of them before we looked."""
    times = [i / 2 for i in range(121)]
    meter = counted(*((t, 100.0, 1000.0 * int((t + phase) // 10)) for t in times))
    assert meter.mean_w == pytest.approx(100.0, rel=0.01)


def test_a_counter_alone_gives_mean_and_energy() -> None:
    meter = counted((0.0, None, 10.0), (1.0, None, 42.5))
    assert meter.joules == pytest.approx(32.5)
    assert meter.mean_w == pytest.approx(32.5)


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

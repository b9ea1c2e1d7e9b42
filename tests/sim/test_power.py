"""Sensors from load."""

from __future__ import annotations

import pytest

from sparktui.sim.model.curve import Curve
from sparktui.sim.model.power import GpuMeter
from sparktui.sim.model.truth import GpuShape

SHAPE = GpuShape(
    idle_w=10,
    power_w=Curve(((1, 50.0), (4, 100.0))),
    clock_mhz=2000,
    idle_clock_mhz=200,
    utilization=0.9,
    idle_c=30,
    busy_c=50,
)


def test_idle_is_cool_and_slow() -> None:
    reading = GpuMeter(SHAPE).read(5.0)
    assert (reading.power_w, reading.utilization, reading.sm_clock_mhz) == (10, 0.0, 200)
    assert (reading.temperature_c, reading.energy_j) == (30, 0.0)


def test_power_follows_the_running_requests_and_energy_adds_it_up() -> None:
    meter = GpuMeter(SHAPE)
    meter.load(0.0, 1, 1.0)
    meter.load(10.0, 4, 1.0)
    meter.load(12.0, 0, 1.0)
    reading = meter.read(22.0)
    assert reading.energy_j == pytest.approx(10 * 50 + 2 * 100 + 10 * 10)
    assert reading.power_w == 10


def test_utilisation_and_temperature_lag() -> None:
    meter = GpuMeter(SHAPE)
    meter.load(0.0, 1, 1.0)
    early, late = meter.read(0.1), meter.read(600.0)
    assert 0 < early.utilization < 0.45
    assert 30 < early.temperature_c < 31
    assert late.utilization == pytest.approx(0.9)
    assert late.temperature_c == pytest.approx(50, abs=0.1)
    meter.load(600.0, 0, 1.0)
    assert 45 < meter.read(601.0).temperature_c < 50


def test_a_slower_clock_takes_less_power() -> None:
    meter = GpuMeter(SHAPE)
    meter.load(0.0, 1, 2.0)
    reading = meter.read(1.0)
    assert reading.sm_clock_mhz == 1000
    assert 10 < reading.power_w < 50


def test_a_reader_behind_the_engines_clock_changes_nothing() -> None:
    meter = GpuMeter(SHAPE)
    meter.load(0.0, 1, 1.0)
    now = meter.read(10.0)
    assert meter.read(9.0) == now

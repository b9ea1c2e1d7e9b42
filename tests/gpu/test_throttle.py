"""Clocks event reasons: what lowers the clocks now, and for how long it did since the last reading."""

from __future__ import annotations

from typing import Any

import pytest

from sparktui.gpu.nvml import Nvml
from sparktui.gpu.throttle import ThrottleClock, reasons
from tests.gpu.drivers import Driver, Lost, gb10, recorded_h200

EVENT = "nvmlDeviceGetCurrentClocksEventReasons"
OLD = "nvmlDeviceGetCurrentClocksThrottleReasons"
POWER_CAP = "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP"
HEAT = "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN"


@pytest.mark.parametrize(
    ("bits", "named"),
    [
        (0, ()),
        (0x1, ()),  # idle, as an H200 at rest says
        (0x2 | 0x100, ()),  # clocks that the user has set
        (0x4, ("sw power cap",)),
        (0x8, ("hw slowdown",)),
        (0x8 | 0x40, ("hw thermal slowdown",)),
        (0x8 | 0x80, ("hw power brake",)),
        (0x4 | 0x20, ("sw power cap", "sw thermal slowdown")),
        (1 << 40, ()),
    ],
)
def test_a_mask_in_words(bits: int, named: tuple[str, ...]) -> None:
    assert reasons(bits) == named


def test_the_binding_s_constants_are_the_bits_that_we_name() -> None:
    import pynvml

    assert reasons(pynvml.nvmlClocksEventReasonSwPowerCap) == ("sw power cap",)
    assert reasons(pynvml.nvmlClocksThrottleReasonHwThermalSlowdown) == ("hw thermal slowdown",)
    assert reasons(pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown) == ("hw power brake",)
    assert reasons(pynvml.nvmlClocksEventReasonSwThermalSlowdown) == ("sw thermal slowdown",)
    assert reasons(pynvml.nvmlClocksEventReasonGpuIdle) == ()


def test_a_counter_tells_the_milliseconds_since_the_reading_before() -> None:
    clock = ThrottleClock()
    assert clock.advance({"sw power cap": 7_000_000_000}, 10.0) == {}
    assert clock.advance({"sw power cap": 7_120_000_000}, 10.5) == pytest.approx({"sw power cap": 120.0})
    assert clock.advance({"sw power cap": 7_120_000_000}, 11.0) == {}
    assert clock.advance({"sw power cap": 7_200_000_000}, 11.5) == pytest.approx({"sw power cap": 80.0})


def test_a_counter_that_begins_anew_or_outruns_the_clock_says_nothing() -> None:
    """A reloaded driver; a field of an older header that counts something else."""
    clock = ThrottleClock()
    clock.advance({"a": 900, "b": 0, "c": 0}, 0.0)
    risen = clock.advance({"a": 5, "b": 2_000_000_000, "c": 500_000_000}, 0.5)
    assert risen == pytest.approx({"c": 500.0})


def test_a_counter_that_was_not_there_before_says_nothing() -> None:
    clock = ThrottleClock()
    clock.advance({}, 0.0)
    assert clock.advance({"a": 1_000_000}, 0.5) == {}


def test_a_gpu_s_reasons_and_counters_come_with_its_reading() -> None:
    answers: dict[str, Any] = gb10() | {EVENT: 0x4, "counters": {POWER_CAP: 5_000_000, HEAT: 0}}
    now = iter(range(100))
    nvml = Nvml(Driver(answers), lambda: float(next(now)))
    (first,) = nvml.read()
    assert (first.throttle, first.throttled_ms) == (("sw power cap",), {})
    answers["counters"] = {POWER_CAP: 405_000_000, HEAT: 0}
    (second,) = nvml.read()
    assert second.throttled_ms == pytest.approx({"sw power cap": 400.0})


def test_the_old_name_of_the_call_still_counts() -> None:
    (view,) = Nvml(Driver(gb10() | {EVENT: Lost(), OLD: 0x40})).read()
    assert view.throttle == ("hw thermal slowdown",)


def test_two_gpus_count_by_themselves() -> None:
    one, two = recorded_h200() | {"counters": {HEAT: 0}}, recorded_h200() | {"counters": {HEAT: 50}}
    now = iter(range(100))
    nvml = Nvml(Driver(one, two), lambda: float(next(now)))
    nvml.read()
    one["counters"], two["counters"] = {HEAT: 300_000_000}, {HEAT: 50}
    assert [view.throttled_ms for view in nvml.read()] == [pytest.approx({"hw thermal slowdown": 300.0}), {}]


def test_without_the_fields_only_the_counters_are_missing() -> None:
    class Old(Driver):
        def nvmlDeviceGetFieldValues(self, handle: int, fields: list[int]) -> Any:
            raise Lost()

    (view,) = Nvml(Old(gb10() | {EVENT: 0x4})).read()
    assert (view.throttle, view.throttled_ms) == (("sw power cap",), {})
    assert view.power_w == pytest.approx(32.15)

"""What readings say together: each rule where it speaks, and where it must not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparktui.gpu.health import (
    BRAKES,
    CAP,
    Moment,
    full_power_w,
    kernel_bound,
    power_delivery_fault,
    spin_wait,
    throttling,
)
from sparktui.schema.live import GpuView
from tests.gpu.drivers import NVML


def spark(**said: Any) -> GpuView:
    """A GB10 that decodes, with what the case says otherwise."""
    usual: dict[str, Any] = {"power_w": 32.0, "utilization_pct": 96.0, "sm_mhz": 2405.0}
    return GpuView(0, "NVIDIA GB10", **(usual | said))


def h200(**said: Any) -> GpuView:
    usual: dict[str, Any] = {"power_w": 210.0, "utilization_pct": 96.0, "sm_mhz": 1980.0}
    return GpuView(0, "NVIDIA H200", power_limit_w=700.0, **(usual | said))


def each(gpu: GpuView, seconds: float, **work: Any) -> list[Moment]:
    """Readings twice a second for so long."""
    return [Moment(t / 2, gpu, **work) for t in range(int(2 * seconds) + 1)]


def pairs(gpu: GpuView, seconds: float) -> list[tuple[float, GpuView]]:
    return [(moment.t, moment.gpu) for moment in each(gpu, seconds)]


def test_a_power_delivery_fault_states_its_clocks_and_seconds() -> None:
    said = power_delivery_fault(
        [*pairs(spark(sm_mhz=507.0), 6), (8.0, spark(sm_mhz=858.0)), (10.0, spark(sm_mhz=695.0))]
    )
    assert said == "GPU 0: over 90 % busy at 507 to 858 MHz for 10 s"


@pytest.mark.parametrize(
    "gpu",
    [
        spark(sm_mhz=900.0),
        spark(sm_mhz=507.0, utilization_pct=90.0),
        spark(sm_mhz=507.0, utilization_pct=None),
        spark(sm_mhz=None),
        spark(sm_mhz=507.0, throttle=("hw thermal slowdown",)),  # the driver names a reason: not that fault
        h200(sm_mhz=507.0),
    ],
)
def test_other_low_clocks_are_no_power_delivery_fault(gpu: GpuView) -> None:
    assert power_delivery_fault(pairs(gpu, 30)) is None


def test_it_must_last_without_a_break_and_without_a_gap() -> None:
    low = spark(sm_mhz=507.0)
    assert power_delivery_fault(pairs(low, 9.5)) is None
    assert power_delivery_fault(pairs(low, 10)) is not None
    assert power_delivery_fault([*pairs(low, 20), (20.5, spark())]) is None
    silent = [(0.0, low), (1.0, low), (12.0, low)]
    assert power_delivery_fault(silent) is None
    assert power_delivery_fault([]) is None


def test_a_spin_wait_is_busy_near_idle_power_with_requests_and_no_token() -> None:
    said = spin_wait(each(spark(power_w=18.0), 12, running=3, tok_s=0.0))
    assert said == "GPU 0: 96 % busy at 18 W of 100 for 12 s, 3 requests run and no token comes"
    said = spin_wait(each(h200(power_w=121.0), 12, running=1, tok_s=0.0))
    assert said is not None
    assert "121 W of 700" in said


@pytest.mark.parametrize(
    ("gpu", "running", "tok_s"),
    [
        (spark(power_w=18.0), 3, 0.5),  # a token came
        (spark(power_w=18.0), 3, None),  # nobody knows
        (spark(power_w=18.0), 0, 0.0),
        (spark(power_w=18.0), None, 0.0),
        (spark(power_w=32.0), 3, 0.0),  # a long prefill works
        (spark(power_w=18.0, utilization_pct=20.0), 3, 0.0),
        (spark(power_w=None), 3, 0.0),
        (GpuView(0, "NVIDIA Thor", power_w=18.0, utilization_pct=96.0), 3, 0.0),  # of how much?
    ],
)
def test_what_is_no_spin_wait(gpu: GpuView, running: int | None, tok_s: float | None) -> None:
    assert spin_wait(each(gpu, 30, running=running, tok_s=tok_s)) is None


def test_kernel_bound_is_busy_at_low_power_while_tokens_come() -> None:
    moments = [*each(spark(), 29, running=1, tok_s=77.0), Moment(30.0, spark(power_w=33.4), 1, 78.4)]
    assert kernel_bound(moments) == "GPU 0: 96 % busy at 32 to 33 W of 100 for 30 s, with 77 to 78 tok/s"


@pytest.mark.parametrize(
    ("gpu", "seconds", "tok_s"),
    [
        (spark(), 29.5, 77.0),
        (spark(), 60, 0.0),
        (spark(), 60, None),
        (spark(power_w=41.0), 60, 77.0),
        (h200(power_w=281.0), 60, 500.0),
        (h200(utilization_pct=60.0), 60, 500.0),
    ],
)
def test_what_is_not_kernel_bound(gpu: GpuView, seconds: float, tok_s: float | None) -> None:
    assert kernel_bound(each(gpu, seconds, running=1, tok_s=tok_s)) is None


def test_throttling_states_clocks_heat_share_and_counted_time() -> None:
    hot = h200(sm_mhz=1410.0, temperature_c=88.0, throttle=("sw thermal slowdown",))
    counted = h200(
        sm_mhz=1500.0, temperature_c=90.0, throttled_ms={"sw thermal slowdown": 480.5, "sw power cap": 9.0}
    )
    said = throttling([(0.0, hot), (4.0, counted), (8.0, counted), (10.0, hot)])
    assert said == (
        "GPU 0: clocks held down at 1,410 to 1,500 MHz, 88 to 90 °C for 10 s: sw thermal slowdown in 4 of 4 "
        "readings; 961 ms or more by the driver's counters"
    )


def test_a_gpu_at_its_power_cap_is_another_matter_than_heat() -> None:
    capped = pairs(h200(power_w=700.0, sm_mhz=1600.0, throttle=("sw power cap",)), 10)
    assert throttling(capped) is None
    said = throttling(capped, CAP)
    assert said == "GPU 0: clocks held down at 1,600 MHz for 10 s: sw power cap in 21 of 21 readings"
    assert not CAP & BRAKES


def test_without_clocks_and_heat_the_reasons_are_enough() -> None:
    said = throttling(pairs(GpuView(2, throttle=("hw power brake",)), 10))
    assert said == "GPU 2: clocks held down for 10 s: hw power brake in 21 of 21 readings"


def test_a_moment_s_throttling_is_no_finding() -> None:
    hot = h200(throttle=("hw thermal slowdown",))
    assert throttling([*pairs(hot, 5), (5.5, h200()), *((6 + t / 2, hot) for t in range(10))]) is None


def test_full_power_is_the_limit_or_what_is_known_of_the_kind() -> None:
    assert full_power_w(h200()) == 700.0
    assert full_power_w(spark()) == 100.0
    assert full_power_w(GpuView(0, "NVIDIA Thor")) is None
    assert full_power_w(GpuView(0)) is None


def test_an_h200_that_really_decoded_was_well() -> None:
    """A recorded run at 40 to 60 % use and 200 to 260 W: nothing to tell."""
    rows = json.loads((NVML / "gpu_samples.json").read_text("utf-8"))
    assert max(row[2] for row in rows) > 30
    moments = [
        Moment(t, h200(power_w=watts, utilization_pct=float(use), sm_mhz=float(mhz)), 1, 400.0)
        for t, watts, use, mhz, _ in rows
    ]
    for end in range(len(moments)):
        seen = moments[: end + 1]
        told = [(moment.t, moment.gpu) for moment in seen]
        assert not any((power_delivery_fault(told), spin_wait(seen), kernel_bound(seen), throttling(told)))

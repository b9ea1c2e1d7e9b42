"""What nvml_check.py writes down of a machine says the same when it is read again."""

from __future__ import annotations

import json
from typing import Any

import pynvml
import pytest

from benchmarks.nvml_check import answers, naive, text, watch
from sparktui.gpu.nvml import Nvml
from sparktui.gpu.throttle import COUNTERS
from sparktui.schema.live import GpuView
from tests.gpu.drivers import Driver, gb10, process, recorded_h200, thor
from tests.gpu.replay import driver_answers

HEAT = "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN"
BUSY = {
    "nvmlDeviceGetComputeRunningProcesses": [process(4242, 63931.0), process(7, None)],
    "nvmlDeviceGetGraphicsRunningProcesses": [],
    "nvmlDeviceGetCurrentClocksEventReasons": 0x4,
}


class Numbered(Driver):
    """A driver that is asked for fields as nvml_check asks: by the binding's numbers, with a scope."""

    def nvmlDeviceGetFieldValues(self, handle: int, fields: list[Any]) -> Any:
        if not isinstance(fields[0], tuple):
            return super().nvmlDeviceGetFieldValues(handle, fields)
        names = {getattr(pynvml, name): name for name in COUNTERS}
        asked = [number for number, _ in fields]
        own = [getattr(self, names[number]) if number in names else -1 for number in asked]
        values = super().nvmlDeviceGetFieldValues(handle, own)
        for value, number in zip(values, asked, strict=True):
            value.fieldId, value.valueType = number, 3
        return values


@pytest.mark.parametrize("machine", [recorded_h200, gb10, thor])
def test_a_machine_reads_the_same_from_its_record(machine: Any) -> None:
    driver = Numbered(machine() | BUSY | {"counters": {HEAT: 5}})
    written = json.loads(text({"calls": [answers(driver, 0)]}))
    again = driver_answers(written["calls"][0])
    assert again["counters"] == {HEAT: 5}
    assert Nvml(Driver(again)).read() == Nvml(driver).read()


def test_the_check_s_energy_is_by_no_code_of_ours() -> None:
    read = [(t, GpuView(0, power_w=100.0 + 20 * t, energy_j=5.0 + 200 * t)) for t in (0.0, 4.0, 10.0)]
    assert naive(read) == {"trapezoids_j": 2000.0, "delta_j": 2000.0, "ratio": 1.0}
    assert naive([]) == {"trapezoids_j": 0, "delta_j": None, "ratio": None}
    assert naive([(0.0, GpuView(0, power_w=5.0)), (1.0, GpuView(0, power_w=5.0))])["ratio"] is None


def test_a_machine_without_a_driver_has_rows_of_nothing() -> None:
    watched = watch(Nvml(Driver(gb10(), init=RuntimeError("Driver Not Loaded"))), 0.01)
    assert (watched["rows"], watched["problem"]) == ([], "Driver Not Loaded")
    assert watched["energy"]["ratio"] is None

"""Each field by itself: what one machine can't answer hides nothing else."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pytest

from sparktui.gpu.nvml import Nvml
from sparktui.schema.live import GpuView
from tests.gpu.drivers import Driver, NotSupported, gb10, recorded_h200

H200 = GpuView(
    index=0, name="NVIDIA H200", power_w=79.358, power_limit_w=700.0, utilization_pct=0.0, sm_mhz=345.0,
    sm_max_mhz=1980.0, memory_used_mib=644939776 / 1024**2, memory_total_mib=150754820096 / 1024**2,
    temperature_c=36.0, energy_j=21772.726,
)  # fmt: skip
GB10 = GpuView(
    index=0, name="NVIDIA GB10", power_w=32.15, utilization_pct=94.0, sm_mhz=2405.0, sm_max_mhz=3003.0,
    temperature_c=61.0, energy_j=5000.5, unified=True,
)  # fmt: skip
CALLS = {
    "nvmlDeviceGetName": ("name",),
    "nvmlDeviceGetPowerUsage": ("power_w",),
    "nvmlDeviceGetEnforcedPowerLimit": ("power_limit_w",),
    "nvmlDeviceGetUtilizationRates": ("utilization_pct",),
    "nvmlDeviceGetClockInfo(1)": ("sm_mhz",),
    "nvmlDeviceGetMaxClockInfo(1)": ("sm_max_mhz",),
    "nvmlDeviceGetMemoryInfo": ("memory_used_mib", "memory_total_mib"),
    "nvmlDeviceGetTemperature(0)": ("temperature_c",),
    "nvmlDeviceGetTotalEnergyConsumption": ("energy_j",),
}


def read(*gpus: dict[str, Any]) -> tuple[GpuView, ...]:
    return Nvml(Driver(*gpus)).read()


def close_to(view: GpuView, expected: GpuView) -> bool:
    pairs = zip(dataclasses.astuple(view), dataclasses.astuple(expected), strict=True)
    return all(a == (pytest.approx(b) if isinstance(b, float) else b) for a, b in pairs)


def test_what_an_h200_answered() -> None:
    (view,) = read(recorded_h200())
    assert close_to(view, H200)


def test_what_unified_memory_leaves_out_hides_nothing_else() -> None:
    (view,) = read(gb10())
    assert close_to(view, GB10)


@pytest.mark.parametrize("error", [NotSupported(), RuntimeError("GPU is lost"), OSError("library unloaded")])
@pytest.mark.parametrize("call", CALLS)
def test_every_call_may_fail_by_itself(call: str, error: Exception) -> None:
    (view,) = read(recorded_h200() | {call: error})
    missing: dict[str, Any] = dict.fromkeys(CALLS[call])
    if call == "nvmlDeviceGetMemoryInfo" and isinstance(error, NotSupported):
        missing["unified"] = True  # that is how unified memory says itself
    assert close_to(view, dataclasses.replace(H200, **missing))


def test_of_a_call_that_the_binding_lacks_only_its_field_is_missing() -> None:
    driver = Driver(recorded_h200())

    class Old:
        def __getattr__(self, name: str) -> Any:
            if name in ("NVML_TEMPERATURE_GPU", "nvmlDeviceGetTotalEnergyConsumption"):
                raise AttributeError(name)
            return getattr(driver, name)

    (view,) = Nvml(Old()).read()
    assert close_to(view, dataclasses.replace(H200, temperature_c=None, energy_j=None))


def test_several_gpus_keep_their_order_and_their_own_figures() -> None:
    views = read(recorded_h200(), {}, gb10())
    assert [view.index for view in views] == [0, 1, 2]
    assert [view.name for view in views] == ["NVIDIA H200", None, "NVIDIA GB10"]
    assert [view.power_w for view in views] == [pytest.approx(79.358), None, pytest.approx(32.15)]
    assert [view.memory_total_mib for view in views] == [143771.0, None, None]


@pytest.mark.parametrize(
    ("error", "says"),
    [(RuntimeError("Driver Not Loaded"), "Driver Not Loaded"), (NotSupported(), "Not Supported"),
     (OSError(), "OSError")],
)  # fmt: skip
def test_a_driver_that_does_not_start_is_a_problem_and_no_gpu(error: Exception, says: str) -> None:
    nvml = Nvml(Driver(recorded_h200(), init=error))
    assert nvml.problem == says
    assert nvml.read() == ()
    nvml.close()


def test_without_the_library_it_is_a_problem_and_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml = Nvml()
    assert "pynvml" in nvml.problem
    assert nvml.read() == ()
    nvml.close()


def test_close_lets_go_of_the_driver() -> None:
    driver = Driver(recorded_h200())
    nvml = Nvml(driver)
    nvml.close()
    assert driver.calls[-1] == "nvmlShutdown"
    assert nvml.read() == ()

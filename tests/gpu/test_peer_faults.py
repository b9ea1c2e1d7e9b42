"""GPU faults that other monitors of vLLM have on a GB10: none of them is ours."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import sparktui.gpu
from sparktui.gpu.nvml import Nvml
from sparktui.gpu.sampler import PowerMeter
from sparktui.schema.live import GpuView
from tests.gpu.drivers import Driver, Lost, NotSupported, gb10, process, recorded_h200

MEMORY = "nvmlDeviceGetMemoryInfo"
COMPUTE = "nvmlDeviceGetComputeRunningProcesses"


@pytest.fixture
def no_fork(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Any process that is started fails the test."""
    started: list[str] = []

    def refuse(*args: Any, **kwargs: Any) -> None:
        started.append(repr(args))
        raise AssertionError(f"started {args}")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr("os.posix_spawn", refuse)
    monkeypatch.setattr("os.fork", refuse)
    return started


@pytest.mark.parametrize("machine", [gb10, recorded_h200])
def test_memory_that_is_not_supported_costs_neither_power_nor_temperature(machine: Any) -> None:
    """vllmstat, vllmpytop: the call stands outside their guard, and the whole reading is lost."""
    driver = Driver(machine() | {MEMORY: NotSupported()})
    nvml = Nvml(driver)
    (view,) = nvml.read()
    assert MEMORY in driver.calls
    assert None not in (view.power_w, view.temperature_c, view.utilization_pct, view.sm_mhz, view.energy_j)
    assert nvml.problem == ""


def test_no_reading_starts_nvidia_smi(no_fork: list[str]) -> None:
    """vllmstat: a process a second once NVML has failed. Ours has no other source than NVML, in any state."""
    for driver in (
        Driver(gb10()),
        Driver(recorded_h200() | {MEMORY: NotSupported()}),
        Driver({}),
        Driver(gb10(), init=RuntimeError("Driver Not Loaded")),
    ):
        nvml = Nvml(driver)
        nvml.read()
        driver.gone = Lost()
        nvml.read()
        nvml.close()
    assert no_fork == []


def test_the_gpu_room_knows_no_way_to_start_a_process() -> None:
    sources = [path.read_text("utf-8") for path in Path(sparktui.gpu.__file__).parent.glob("*.py")]
    assert len(sources) >= 8
    assert not [
        word for text in sources for word in ("subprocess", "os.system", "nvidia-smi") if word in text
    ]


def test_memory_of_a_gb10_is_no_dash_where_a_process_tells_it() -> None:
    """vllmstat, vllmops: `—`. What the processes hold is known there."""
    (view,) = Nvml(Driver(gb10() | {COMPUTE: [process(4242, 63931.0)]})).read()
    assert view.memory_used_mib == 63931.0


def test_energy_is_there_where_the_counter_is_missing() -> None:
    meter = PowerMeter()
    for t in range(11):
        meter.add((GpuView(0, "NVIDIA Thor", power_w=25.0),), float(t))
    assert meter.joules == pytest.approx(250.0)


def test_with_no_limit_told_there_is_none_to_draw_a_bar_against() -> None:
    (view,) = Nvml(Driver(gb10())).read()
    assert view.power_limit_w is None
    assert view.power_w is not None


def test_a_dead_driver_leaves_no_zero_and_no_old_figure() -> None:
    """vllmpytop: rates of 0.00. A figure that is not known is not there."""
    driver = Driver(gb10())
    nvml = Nvml(driver)
    assert nvml.read()[0].power_w is not None
    driver.gone = Lost()
    assert nvml.read() == ()

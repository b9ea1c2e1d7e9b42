"""Whose memory, and how much: HBM, unified memory, processes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sparktui.gpu.nvml import Nvml
from sparktui.schema.live import GpuProcess, GpuView
from tests.gpu.drivers import MIB, NOT_AVAILABLE, Driver, Lost, gb10, process, recorded_h200, thor

COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses"


def read(answers: dict[str, Any]) -> GpuView:
    (view,) = Nvml(Driver(answers)).read()
    return view


def test_thor_tells_use_and_its_processes_memory_only() -> None:
    assert read(thor()) == GpuView(
        index=0,
        name="NVIDIA Thor",
        utilization_pct=71.0,
        memory_used_mib=63931.0,
        unified=True,
        processes=(GpuProcess(4242, 63931.0),),
    )


def test_on_a_gb10_used_is_what_processes_hold_and_there_is_no_total() -> None:
    view = read(gb10() | {COMPUTE: [process(7, 96.0), process(4242, 63931.0)], GRAPHICS: []})
    assert (view.memory_used_mib, view.memory_total_mib, view.unified) == (64027.0, None, True)
    assert view.processes == (GpuProcess(4242, 63931.0), GpuProcess(7, 96.0))
    assert view.power_w == pytest.approx(32.15)


def test_a_total_that_a_gb10_s_driver_makes_up_is_not_believed() -> None:
    answer = SimpleNamespace(total=128 * MIB, used=128 * MIB, free=0)
    view = read(gb10() | {"nvmlDeviceGetMemoryInfo": answer, COMPUTE: [process(1, 500.0)]})
    assert (view.memory_used_mib, view.memory_total_mib) == (500.0, None)


def test_a_process_that_computes_and_draws_holds_its_memory_once() -> None:
    view = read(gb10() | {COMPUTE: [process(7, 96.0)], GRAPHICS: [process(7, 96.0), process(8, 4.0)]})
    assert view.memory_used_mib == 100.0
    assert [held.pid for held in view.processes] == [7, 8]


@pytest.mark.parametrize("listed", [[process(7, 96.0), process(8, None)], [process(7, None)], []])
def test_a_sum_that_is_not_all_known_is_not_known(listed: list[Any]) -> None:
    """Another container's process may be there without its size, or not be there at all."""
    view = read(gb10() | {COMPUTE: listed, GRAPHICS: []})
    assert view.memory_used_mib is None
    assert [held.pid for held in view.processes] == [p.pid for p in listed if p.usedGpuMemory]


def test_nvml_s_own_number_for_not_available_is_no_size() -> None:
    hidden = SimpleNamespace(pid=8, usedGpuMemory=NOT_AVAILABLE)
    view = read(recorded_h200() | {COMPUTE: [process(7, 96.0), hidden]})
    assert view.processes == (GpuProcess(7, 96.0),)


def test_hbm_is_the_driver_s_figure_whoever_holds_it() -> None:
    view = read(recorded_h200() | {COMPUTE: [process(7, 96.0)]})
    assert (view.memory_used_mib, view.memory_total_mib, view.unified) == (615.0625, 143771.0, False)


def test_an_error_that_is_not_the_gpu_s_nature_makes_no_unified_memory() -> None:
    view = read(recorded_h200() | {"nvmlDeviceGetMemoryInfo": Lost(), COMPUTE: [process(7, 96.0)]})
    assert (view.memory_used_mib, view.memory_total_mib, view.unified) == (None, None, False)
    assert view.power_w is not None


def test_one_list_of_processes_is_enough() -> None:
    assert read(gb10() | {COMPUTE: [process(7, 96.0)], GRAPHICS: Lost()}).memory_used_mib == 96.0
    assert read(gb10() | {COMPUTE: Lost(), GRAPHICS: [process(7, 4.0)]}).memory_used_mib == 4.0

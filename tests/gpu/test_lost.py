"""A driver that goes away, comes back, or loses one of its GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from sparktui.gpu.nvml import ABSENT_RETRY_S, LOST_RETRY_S, Nvml
from sparktui.schema.live import GpuView
from tests.gpu.drivers import Driver, Lost, gb10, recorded_h200


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.t = 100.0

    def __call__(self) -> float:
        return self.t


@pytest.fixture
def clock() -> Clock:
    return Clock()


def names(views: tuple[GpuView, ...]) -> list[str | None]:
    return [view.name for view in views]


def test_a_lost_driver_is_a_problem_and_no_reading_of_nothing(clock: Clock) -> None:
    driver = Driver(recorded_h200())
    nvml = Nvml(driver, clock)
    assert nvml.problem == ""
    driver.gone = Lost()
    assert nvml.read() == ()
    assert nvml.problem == "GPU 0: GPU is lost"


def test_a_driver_that_is_reloaded_is_asked_again_five_seconds_later_and_not_before(clock: Clock) -> None:
    driver = Driver(recorded_h200())
    nvml = Nvml(driver, clock)
    driver.gone = Lost()
    nvml.read()
    begun = driver.calls.count("nvmlInit")
    clock.t += LOST_RETRY_S - 0.1
    nvml.read()
    assert driver.calls.count("nvmlInit") == begun
    clock.t += 0.2
    driver.gone = None
    assert names(nvml.read()) == ["NVIDIA H200"]
    assert driver.calls.count("nvmlInit") == begun + 1
    assert nvml.problem == ""


def test_while_a_driver_stays_away_it_is_asked_every_five_seconds(clock: Clock) -> None:
    driver = Driver(recorded_h200())
    nvml = Nvml(driver, clock)
    driver.gone, driver.init = Lost(), RuntimeError("Driver Not Loaded")
    for _ in range(30):
        nvml.read()
        clock.t += 1.0
    assert nvml.problem == "Driver Not Loaded"
    assert 5 <= driver.calls.count("nvmlInit") <= 7


def test_a_driver_that_was_never_there_is_asked_once_a_minute(clock: Clock) -> None:
    driver = Driver(recorded_h200(), init=RuntimeError("Driver Not Loaded"))
    nvml = Nvml(driver, clock)
    clock.t += ABSENT_RETRY_S - 1
    assert nvml.read() == ()
    assert driver.calls.count("nvmlInit") == 1
    driver.init = None
    clock.t += 2
    assert names(nvml.read()) == ["NVIDIA H200"]


def test_a_gpu_that_falls_off_the_bus_leaves_the_others_and_is_named(clock: Clock) -> None:
    driver = Driver(recorded_h200(), gb10())
    nvml = Nvml(driver, clock)
    nvml.read()
    driver.gpus[0] = LostGpu({"nvmlDeviceGetName": "NVIDIA H200"})  # the name is all that it still knows
    first, second = nvml.read()
    assert first == GpuView(0)
    assert second.power_w == pytest.approx(32.15)
    assert nvml.problem == "GPU 0: GPU is lost"


def test_a_handle_that_is_refused_is_a_lost_gpu(clock: Clock) -> None:
    class Refusing(Driver):
        def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
            if index == 1:
                raise Lost()
            return index

    nvml = Nvml(Refusing(recorded_h200(), gb10()), clock)
    assert [view.power_w is None for view in nvml.read()] == [False, True]
    assert nvml.problem == "GPU 1: GPU is lost"


def test_a_gpu_that_supports_nothing_is_there_and_not_lost(clock: Clock) -> None:
    nvml = Nvml(Driver({"nvmlDeviceGetName": "NVIDIA Something"}), clock)
    assert names(nvml.read()) == ["NVIDIA Something"]
    assert nvml.problem == ""


def test_a_machine_without_a_gpu_says_so(clock: Clock) -> None:
    nvml = Nvml(Driver(), clock)
    assert nvml.read() == ()
    assert nvml.problem == "no GPU found"


class LostGpu(dict[str, Any]):
    """Whatever is not listed fails as a GPU does that fell off the bus."""

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, {} if key == "counters" else Lost())

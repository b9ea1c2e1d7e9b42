"""The sampling thread, stepped by the driver it reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from sparktui.gpu.nvml import Nvml
from sparktui.gpu.sampler import GpuSampler
from sparktui.schema.live import GpuView
from tests.gpu.drivers import Driver, gb10

PATIENCE_S = 10.0


class Stepped(Nvml):
    """Hands out one reading each time the test lets it; ``asked`` counts how often it was asked."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._go = threading.Semaphore(0)
        self._asked = threading.Semaphore(0)
        self.closed = threading.Event()
        self.thread: threading.Thread | None = None

    def read(self) -> tuple[GpuView, ...]:
        self.thread = threading.current_thread()
        self._asked.release()
        assert self._go.acquire(timeout=PATIENCE_S)
        return super().read()

    def close(self) -> None:
        super().close()
        self.closed.set()

    def step(self) -> None:
        """Let the reading that was asked for finish, and wait until the next is asked for."""
        self.release()
        self.wait()

    def wait(self) -> None:
        assert self._asked.acquire(timeout=PATIENCE_S), "nobody reads"

    def release(self) -> None:
        self._go.release()


def powers(sampler: GpuSampler) -> list[float | None]:
    return [gpu.power_w for gpu in sampler.latest]


Make = Callable[[Driver], tuple[GpuSampler, Stepped]]


@pytest.fixture
def begin() -> Iterator[Make]:
    made: list[tuple[GpuSampler, Stepped]] = []

    def start(driver: Driver) -> tuple[GpuSampler, Stepped]:
        nvml = Stepped(driver)
        sampler = GpuSampler(0.001, lambda: nvml)
        made.append((sampler, nvml))
        sampler.start()
        nvml.wait()
        return sampler, nvml

    yield start
    for sampler, nvml in made:
        sampler.stop()
        nvml.release()
        assert nvml.closed.wait(PATIENCE_S), "the thread did not end"


def test_the_latest_reading_is_there_after_each_step(begin: Make) -> None:
    answers = gb10()
    sampler, nvml = begin(Driver(answers))
    assert powers(sampler) == []
    nvml.step()
    assert powers(sampler) == pytest.approx([32.15])
    answers["nvmlDeviceGetPowerUsage"] = 41000
    nvml.step()
    assert powers(sampler) == pytest.approx([41.0])
    assert sampler.problem == ""


def test_reading_happens_in_a_thread_of_its_own_that_ends_nothing(begin: Make) -> None:
    _, nvml = begin(Driver(gb10()))
    assert nvml.thread is not None
    assert nvml.thread is not threading.main_thread()
    assert nvml.thread.daemon


def test_a_meter_is_fed_until_it_is_released(begin: Make) -> None:
    answers = gb10()
    sampler, nvml = begin(Driver(answers))
    meter = sampler.measure()
    nvml.step()
    answers["nvmlDeviceGetTotalEnergyConsumption"] += 7000
    nvml.step()
    assert meter.joules == pytest.approx(7.0)
    assert meter.mean_w == pytest.approx(32.15)
    sampler.release(meter)
    answers["nvmlDeviceGetTotalEnergyConsumption"] += 90000
    nvml.step()
    assert meter.joules == pytest.approx(7.0)


def test_two_meters_begin_and_end_by_themselves(begin: Make) -> None:
    answers = gb10()
    sampler, nvml = begin(Driver(answers))
    first = sampler.measure()
    nvml.step()
    second = sampler.measure()
    for _ in range(2):
        answers["nvmlDeviceGetTotalEnergyConsumption"] += 1000
        nvml.step()
    sampler.release(first)
    answers["nvmlDeviceGetTotalEnergyConsumption"] += 1000
    nvml.step()
    assert [first.joules, second.joules] == pytest.approx([2.0, 2.0])


def test_a_driver_that_goes_away_stops_the_figures_and_not_the_thread(begin: Make) -> None:
    driver = Driver(gb10())
    sampler, nvml = begin(driver)
    nvml.step()
    assert sampler.latest[0].power_w is not None
    driver.gone = RuntimeError("GPU is lost")
    nvml.step()
    assert sampler.latest == (GpuView(0),)
    driver.gone = None
    nvml.step()
    assert sampler.latest[0].name == "NVIDIA GB10"


def test_stop_ends_the_thread_and_lets_go_of_the_driver(begin: Make) -> None:
    driver = Driver(gb10())
    sampler, nvml = begin(driver)
    sampler.stop()
    nvml.release()
    assert nvml.closed.wait(PATIENCE_S)
    assert driver.calls[-1] == "nvmlShutdown"


def test_without_a_driver_there_is_a_problem_and_the_thread_ends() -> None:
    ended = threading.Event()

    class Broken(Nvml):
        def __init__(self) -> None:
            super().__init__(Driver(gb10(), init=RuntimeError("Driver Not Loaded")))
            self.thread = threading.current_thread()
            broken.append(self)
            ended.set()

    broken: list[Broken] = []
    sampler = GpuSampler(0.001, Broken)
    sampler.start()
    assert ended.wait(PATIENCE_S)
    broken[0].thread.join(PATIENCE_S)
    assert not broken[0].thread.is_alive()
    assert sampler.problem == "Driver Not Loaded"
    assert sampler.latest == ()

"""The sampling thread, stepped by the driver it reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Protocol

import pytest

from sparktui.gpu.nvml import ABSENT_RETRY_S, LOST_RETRY_S, Nvml
from sparktui.gpu.sampler import STALE_S, GpuSampler
from sparktui.schema.live import GpuView
from tests.gpu.drivers import Driver, Lost, gb10

PATIENCE_S = 10.0


class Stepped(Nvml):
    """Hands out one reading each time the test lets it; ``asked`` counts how often it was asked."""

    def __init__(self, driver: Driver, clock: Callable[[], float]) -> None:
        super().__init__(driver, clock)
        self.error: Exception | None = None
        self._go = threading.Semaphore(0)
        self._asked = threading.Semaphore(0)
        self.closed = threading.Event()
        self.thread: threading.Thread | None = None

    def read(self) -> tuple[GpuView, ...]:
        self.thread = threading.current_thread()
        self._asked.release()
        assert self._go.acquire(timeout=PATIENCE_S)
        if self.error is not None:
            raise self.error
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


class Clock:
    """Seconds that pass when the test says so."""

    t = 100.0

    def __call__(self) -> float:
        return self.t


def powers(sampler: GpuSampler) -> list[float | None]:
    return [gpu.power_w for gpu in sampler.latest]


class Make(Protocol):
    def __call__(self, driver: Driver, clock: Clock | None = None) -> tuple[GpuSampler, Stepped]: ...


@pytest.fixture
def begin() -> Iterator[Make]:
    made: list[tuple[GpuSampler, Stepped]] = []

    def start(driver: Driver, clock: Clock | None = None) -> tuple[GpuSampler, Stepped]:
        now = clock or monotonic
        nvml = Stepped(driver, now)
        sampler = GpuSampler(0.001, lambda: nvml, now)
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
    del answers["nvmlDeviceGetPowerUsage"]  # the counter alone
    meter = sampler.measure()
    nvml.step()
    answers["nvmlDeviceGetTotalEnergyConsumption"] += 7000
    nvml.step()
    assert meter.joules == pytest.approx(7.0)
    sampler.release(meter)
    answers["nvmlDeviceGetTotalEnergyConsumption"] += 90000
    nvml.step()
    assert meter.joules == pytest.approx(7.0)


def test_two_meters_begin_and_end_by_themselves(begin: Make) -> None:
    answers = gb10()
    sampler, nvml = begin(Driver(answers))
    del answers["nvmlDeviceGetPowerUsage"]
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
    clock = Clock()
    sampler, nvml = begin(driver, clock)
    nvml.step()
    assert sampler.latest[0].power_w is not None
    driver.gone = Lost()
    nvml.step()
    assert sampler.latest == ()
    assert sampler.problem == "GPU 0: GPU is lost"
    driver.gone = None
    clock.t += LOST_RETRY_S
    nvml.step()
    assert powers(sampler) == pytest.approx([32.15])
    assert sampler.problem == ""


def test_a_driver_that_hangs_leaves_no_old_figure_on_show(begin: Make) -> None:
    clock = Clock()
    sampler, nvml = begin(Driver(gb10()), clock)
    assert sampler.age_s() is None
    nvml.step()  # and the next reading never comes back
    clock.t += STALE_S - 0.5
    assert powers(sampler) == pytest.approx([32.15])
    assert sampler.age_s() == pytest.approx(STALE_S - 0.5)
    assert sampler.problem == ""
    clock.t += 1.5
    assert sampler.latest == ()
    assert sampler.problem == "no answer from the driver for 6 s"
    nvml.step()
    assert powers(sampler) == pytest.approx([32.15])
    assert sampler.problem == ""


def test_a_reading_that_raises_is_a_problem_and_the_next_is_tried(begin: Make) -> None:
    sampler, nvml = begin(Driver(gb10()))
    nvml.error = OSError("library unloaded")
    nvml.step()
    assert (sampler.latest, sampler.problem) == ((), "library unloaded")
    nvml.error = None
    nvml.step()
    assert powers(sampler) == pytest.approx([32.15])


def test_stop_ends_the_thread_and_lets_go_of_the_driver(begin: Make) -> None:
    driver = Driver(gb10())
    sampler, nvml = begin(driver)
    sampler.stop()
    nvml.release()
    assert nvml.closed.wait(PATIENCE_S)
    assert driver.calls[-1] == "nvmlShutdown"


def test_without_a_driver_there_is_a_problem_and_the_thread_goes_on_asking(begin: Make) -> None:
    driver = Driver(gb10(), init=RuntimeError("Driver Not Loaded"))
    clock = Clock()
    sampler, nvml = begin(driver, clock)
    nvml.step()
    assert (sampler.latest, sampler.problem) == ((), "Driver Not Loaded")
    driver.init = None
    clock.t += ABSENT_RETRY_S
    nvml.step()
    assert powers(sampler) == pytest.approx([32.15])

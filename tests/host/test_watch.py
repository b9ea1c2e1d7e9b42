"""When findings of the GPU's readings are told, and when their end is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sparktui.host.watch import GpuWatch
from sparktui.schema.live import Finding, GpuView


def busy(mhz: float, index: int = 0) -> GpuView:
    """A new reading of a GB10 that works hard, and neither hot nor at low power."""
    return GpuView(index, "NVIDIA GB10", power_w=60.0, sm_mhz=mhz, utilization_pct=96.0)


class Watched:
    """A watch, a reading a second, and what it told."""

    def __init__(self) -> None:
        self.told: list[Finding] = []
        self.notes: list[str] = []
        self.now = 0.0
        self._watch = GpuWatch(self.told.append, self.notes.append)

    def see(self, make: Callable[[], GpuView], seconds: int, **work: Any) -> None:
        for _ in range(seconds):
            self._watch.look((make(),), self.now, **work)
            self.now += 1.0

    def look(self, *gpus: GpuView) -> None:
        self._watch.look(gpus, self.now)
        self.now += 1.0


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_fault_is_told_once_its_end_too_and_again_when_it_comes_back(watched: Watched) -> None:
    watched.see(lambda: busy(2400.0), 60)
    assert (watched.told, watched.notes) == ([], [])
    watched.see(lambda: busy(700.0), 60)
    assert [(f.id, f.severity, f.line) for f in watched.told] == [("gpu-power-fault", "costs speed", 0)]
    assert watched.told[0].text == "GPU 0: over 90 % busy at 700 MHz for 10 s"
    assert watched.told[0].remedy
    assert watched.notes == []
    watched.see(lambda: busy(2400.0), 30)
    assert watched.notes == ["GPU 0: the suspected power fault is over after 59 s"]
    watched.see(lambda: busy(700.0), 20)
    assert len(watched.told) == 2


def test_one_good_reading_ends_nothing(watched: Watched) -> None:
    for _ in range(5):
        watched.see(lambda: busy(700.0), 20)
        watched.see(lambda: busy(2400.0), 1)
    assert len(watched.told) == 1
    assert watched.notes == []


def test_gpus_are_told_apart_and_an_idle_one_is_silent(watched: Watched) -> None:
    for _ in range(30):
        watched.look(busy(700.0, 1), GpuView(0, sm_mhz=210.0, utilization_pct=0.0))
    assert [finding.text.split(":")[0] for finding in watched.told] == ["GPU 1"]


def test_a_reading_that_stands_still_is_one_reading(watched: Watched) -> None:
    """The driver hangs, and its last answer is there for some seconds yet."""
    gpu = busy(700.0)
    watched.see(lambda: gpu, 60)
    assert watched.told == []


def test_a_hang_with_a_busy_gpu_is_told_and_a_prefill_is_not(watched: Watched) -> None:
    watched.see(lambda: busy(2400.0), 30, running=2, tok_s=0.0)
    assert watched.told == []

    def spinning() -> GpuView:
        return GpuView(0, "NVIDIA GB10", power_w=18.0, sm_mhz=2400.0, utilization_pct=96.0)

    watched.see(spinning, 30, running=2, tok_s=0.0)
    assert [f.id for f in watched.told] == ["gpu-spin-wait"]
    watched.see(lambda: busy(2400.0), 20, running=0, tok_s=0.0)
    assert watched.notes == ["GPU 0: the suspected spin wait is over after 29 s"]


def test_heat_is_told_with_its_numbers(watched: Watched) -> None:
    def hot() -> GpuView:
        return GpuView(0, "NVIDIA H200", sm_mhz=1200.0, temperature_c=90.0, throttle=("hw thermal slowdown",))

    watched.see(hot, 11)
    assert [(f.id, f.severity) for f in watched.told] == [("gpu-throttled", "costs speed")]
    assert "1,200 MHz, 90 °C for 10 s" in watched.told[0].text


def test_a_note_is_told_once_however_often_the_load_pauses(watched: Watched) -> None:
    def decoding() -> GpuView:
        return GpuView(0, "NVIDIA GB10", power_w=32.0, sm_mhz=2405.0, utilization_pct=94.0)

    for _ in range(4):
        watched.see(decoding, 60, running=1, tok_s=77.0)
        watched.see(lambda: GpuView(0, "NVIDIA GB10", power_w=4.0, utilization_pct=0.0), 60, running=0)
    assert [(f.id, f.severity) for f in watched.told] == [("gpu-kernel-bound", "note")]
    assert watched.notes == []


def test_a_gpu_at_its_power_cap_is_a_note(watched: Watched) -> None:
    def capped() -> GpuView:
        return GpuView(0, "NVIDIA H200", power_w=699.0, sm_mhz=1600.0, throttle=("sw power cap",))

    watched.see(capped, 30)
    assert [(f.id, f.severity) for f in watched.told] == [("gpu-power-cap", "note")]


def test_another_gpu_may_be_slow_for_reasons_of_its_own(watched: Watched) -> None:
    watched.see(lambda: GpuView(0, "NVIDIA H200", sm_mhz=700.0, utilization_pct=96.0), 60)
    assert watched.told == []

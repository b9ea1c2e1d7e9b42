from __future__ import annotations

from sparktui.host.watch import PowerWatch
from sparktui.schema.live import Finding, GpuView


def busy(mhz: float) -> tuple[GpuView, ...]:
    return (GpuView(0, "NVIDIA GB10", sm_mhz=mhz, utilization_pct=96.0),)


def test_a_fault_is_told_once_and_again_after_it_had_gone() -> None:
    told: list[Finding] = []
    watch = PowerWatch(told.append)
    for second in range(60):
        watch.look(busy(2400.0), float(second))
    assert told == []
    for second in range(60, 120):
        watch.look(busy(700.0), float(second))
    assert [(f.id, f.severity, f.line) for f in told] == [("gpu-power-fault", "costs speed", 0)]
    assert "700 MHz" in told[0].text
    watch.look(busy(2400.0), 120.0)
    for second in range(121, 140):
        watch.look(busy(700.0), float(second))
    assert len(told) == 2


def test_gpus_are_told_apart_and_an_idle_one_is_silent() -> None:
    told: list[Finding] = []
    watch = PowerWatch(told.append)
    for second in range(30):
        idle = GpuView(1, sm_mhz=210.0, utilization_pct=0.0)
        watch.look((*busy(700.0), idle), float(second))
    assert len(told) == 1
    assert told[0].text.startswith("GPU 0: ")


def test_another_gpu_may_be_slow_for_reasons_of_its_own() -> None:
    told: list[Finding] = []
    watch = PowerWatch(told.append)
    for second in range(60):
        watch.look((GpuView(0, "NVIDIA H200", sm_mhz=700.0, utilization_pct=96.0),), float(second))
    assert told == []

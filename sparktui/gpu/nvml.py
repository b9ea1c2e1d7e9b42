"""NVIDIA GPUs through NVML (nvidia-ml-py). Each field is asked for by itself: on unified-memory machines
and passive boards several are not supported, and one missing field must not hide the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from sparktui.gpu.calls import Calls, said
from sparktui.gpu.throttle import COUNTERS, ThrottleClock, reasons
from sparktui.schema.live import GpuProcess, GpuView

LOST_RETRY_S = 5.0  # a driver that was there: it is being reloaded, or its GPU reset
ABSENT_RETRY_S = 60.0  # there never was one
_MIB = 1024 * 1024
_UNIFIED = re.compile(r"\b(GB10|Thor|Orin)\b")
_PROCESSES = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")
_NOT_AVAILABLE = (1 << 64) - 1  # NVML_VALUE_NOT_AVAILABLE; newer bindings say None


class Nvml:
    """Reads every GPU. ``problem`` says why there is nothing to read, or which GPU is lost; else it is empty.

    Without a driver ``read`` gives an empty tuple. The driver is asked anew once a minute, and every five
    seconds when it had been there before. ``now``: CLOCK_MONOTONIC seconds.
    """

    def __init__(self, library: Any = None, now: Callable[[], float] = monotonic) -> None:
        self.problem = ""
        self._library = library
        self._now = now
        self._gpus: list[_Gpu] = []
        self._retry_s = ABSENT_RETRY_S
        self._retry_at = 0.0
        self._begin()

    def read(self) -> tuple[GpuView, ...]:
        """One view a GPU. Blocks for milliseconds, longer when a driver is ill: call it in a thread."""
        if self.problem and self._now() >= self._retry_at:
            self.close()
            self._begin()
        if not self._gpus:
            return ()
        views = tuple(gpu.view(self._now()) for gpu in self._gpus)
        lost = [f"GPU {gpu.index}: {gpu.lost}" for gpu in self._gpus if gpu.lost]
        if lost and not self.problem:
            self._retry_at = self._now() + self._retry_s
        self.problem = "; ".join(lost)
        return () if len(lost) == len(views) else views

    def close(self) -> None:
        """Let go of the driver."""
        self._gpus = []
        try:
            self._library.nvmlShutdown()
        except Exception:  # it may be gone already, or never have come
            return

    def _begin(self) -> None:
        try:
            if self._library is None:
                import pynvml

                self._library = pynvml
            self._library.nvmlInit()
            count = self._library.nvmlDeviceGetCount()
        except Exception as exc:  # a driver may fail in any way it likes
            self.problem = said(exc)
        else:
            self.problem = "" if count else "no GPU found"
            self._gpus = [_Gpu(self._library, i) for i in range(count)]
        if self._gpus:
            self._retry_s = LOST_RETRY_S
        self._retry_at = self._now() + self._retry_s


class _Gpu:
    """One GPU. ``lost``: why its last reading had nothing; else empty."""

    def __init__(self, library: Any, index: int) -> None:
        self.index = index
        self.lost = ""
        self._library = library
        self._throttle = ThrottleClock()

    def view(self, t: float) -> GpuView:
        """A reading at ``t`` (seconds on any clock). Of a lost GPU: the index alone."""
        try:
            calls = Calls(self._library, self._library.nvmlDeviceGetHandleByIndex(self.index))
        except Exception as exc:
            self.lost = said(exc)
            return GpuView(self.index)
        counted = {COUNTERS[name]: ns for name, ns in calls.fields(tuple(COUNTERS)).items()}
        view = _view(self.index, calls, self._throttle.advance(counted, t))
        self.lost = "" if _moves(view) else calls.failure
        return GpuView(self.index) if self.lost else view


def _moves(view: GpuView) -> bool:
    """A driver that lost its GPU may still know its name and limits: what moves shows that it is there."""
    moving = (view.power_w, view.utilization_pct, view.sm_mhz, view.temperature_c, view.energy_j)
    return any(value is not None for value in (*moving, view.memory_used_mib))


def _view(index: int, calls: Calls, throttled_ms: dict[str, float]) -> GpuView:
    name = _text(calls.ask("nvmlDeviceGetName"))
    used, total, unified, processes = _memory(calls, name or "")
    rates = calls.ask("nvmlDeviceGetUtilizationRates")
    return GpuView(
        index=index,
        name=name,
        power_w=calls.number("nvmlDeviceGetPowerUsage", scale=1e-3),
        power_limit_w=calls.number("nvmlDeviceGetEnforcedPowerLimit", scale=1e-3),
        utilization_pct=None if rates is None else float(rates.gpu),
        sm_mhz=calls.number("nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"),
        sm_max_mhz=calls.number("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
        memory_used_mib=used,
        memory_total_mib=total,
        temperature_c=calls.number("nvmlDeviceGetTemperature", "NVML_TEMPERATURE_GPU"),
        energy_j=calls.number("nvmlDeviceGetTotalEnergyConsumption", scale=1e-3),
        unified=unified,
        processes=processes,
        throttle=_reasons(calls),
        throttled_ms=throttled_ms,
    )


def _memory(calls: Calls, name: str) -> tuple[float | None, float | None, bool, tuple[GpuProcess, ...]]:
    """MiB used and in all, whether the memory is the host's, and who holds how much.

    Unified memory: NVML has no total there (some drivers answer, and wrongly), and what is used is what the
    processes hold. A driver that names no process may be hiding those of other containers: that is not 0.
    """
    memory = calls.ask("nvmlDeviceGetMemoryInfo")
    held = _held(calls)
    known = {pid: mib for pid, mib in (held or {}).items() if mib is not None}
    ranked = sorted(known.items(), key=lambda item: (-item[1], item[0]))
    processes = tuple(GpuProcess(pid, mib) for pid, mib in ranked)
    if _UNIFIED.search(name) or calls.unsupported("nvmlDeviceGetMemoryInfo"):
        complete = bool(held) and len(known) == len(held or {})
        return (sum(known.values()) if complete else None), None, True, processes
    if memory is None:
        return None, None, False, processes
    return memory.used / _MIB, memory.total / _MIB, False, processes


def _held(calls: Calls) -> Mapping[int, float | None] | None:
    """MiB by process, None where the driver can't tell. A process that computes and draws is listed twice,
    with the same memory."""
    lists = [listed for listed in map(calls.ask, _PROCESSES) if listed is not None]
    if not lists:
        return None
    held: dict[int, float | None] = {}
    for process in (process for listed in lists for process in listed):
        size = process.usedGpuMemory
        held[process.pid] = None if size in (None, _NOT_AVAILABLE) else size / _MIB
    return held


def _reasons(calls: Calls) -> tuple[str, ...]:
    bits = calls.ask("nvmlDeviceGetCurrentClocksEventReasons")
    if bits is None:  # the name of before CUDA 12.2
        bits = calls.ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    return () if bits is None else reasons(int(bits))


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

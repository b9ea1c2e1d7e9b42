"""NVIDIA GPUs through NVML (nvidia-ml-py). Each field is asked for by itself: on unified-memory machines
and passive boards several are not supported, and one missing field must not hide the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sparktui.schema.live import GpuView

_MIB = 1024 * 1024


class Nvml:
    """Reads every GPU. Without a driver ``read`` gives an empty tuple and ``problem`` says why."""

    def __init__(self, library: Any = None) -> None:
        self.problem = ""
        self._library = library
        self._handles: list[Any] = []
        try:
            if library is None:
                import pynvml

                self._library = pynvml
            self._library.nvmlInit()
            count = self._library.nvmlDeviceGetCount()
            self._handles = [self._library.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
        except Exception as exc:  # a driver may fail in any way it likes
            self.problem = str(exc) or type(exc).__name__

    def read(self) -> tuple[GpuView, ...]:
        """One view a GPU. Blocks for milliseconds, longer when a driver is ill: call it in a thread."""
        return tuple(self._view(i, handle) for i, handle in enumerate(self._handles))

    def _view(self, index: int, handle: Any) -> GpuView:
        n = self._library

        def ask(read: Callable[[], Any], scale: float = 1.0) -> float | None:
            value = _guarded(read)
            return None if value is None else float(value) * scale

        memory = _guarded(lambda: n.nvmlDeviceGetMemoryInfo(handle))
        rates = _guarded(lambda: n.nvmlDeviceGetUtilizationRates(handle))
        return GpuView(
            index=index,
            name=_text(_guarded(lambda: n.nvmlDeviceGetName(handle))),
            power_w=ask(lambda: n.nvmlDeviceGetPowerUsage(handle), 1e-3),
            power_limit_w=ask(lambda: n.nvmlDeviceGetEnforcedPowerLimit(handle), 1e-3),
            utilization_pct=None if rates is None else float(rates.gpu),
            sm_mhz=ask(lambda: n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_SM)),
            sm_max_mhz=ask(lambda: n.nvmlDeviceGetMaxClockInfo(handle, n.NVML_CLOCK_SM)),
            memory_used_mib=None if memory is None else memory.used / _MIB,
            memory_total_mib=None if memory is None else memory.total / _MIB,
            temperature_c=ask(lambda: n.nvmlDeviceGetTemperature(handle, n.NVML_TEMPERATURE_GPU)),
            energy_j=ask(lambda: n.nvmlDeviceGetTotalEnergyConsumption(handle), 1e-3),
        )

    def close(self) -> None:
        """Let go of the driver."""
        _guarded(lambda: self._library.nvmlShutdown())
        self._handles = []


def _guarded(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception:  # NVMLError of any kind, or a driver that went away
        return None


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

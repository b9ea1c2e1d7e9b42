"""Findings that no log line states: what the GPU's readings say while a server runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from sparktui.gpu.health import LASTS_S, Reading, power_delivery_fault
from sparktui.schema.live import Finding, GpuView

_MEANING = (
    "The GPU is busy at a fraction of its clock and its driver names no reason: a fault in how power reaches "
    "it, seen on DGX Spark. vLLM is not to blame."
)
_REMEDY = "Take the power supply off the wall and off the machine for a minute; a reboot does not clear it."


class PowerWatch:
    """Tells a suspected fault once, and again only after the clock had come back."""

    def __init__(self, tell: Callable[[Finding], object]) -> None:
        self._tell = tell
        self._readings: dict[int, deque[Reading]] = {}
        self._told: set[int] = set()

    def look(self, gpus: tuple[GpuView, ...], now: float) -> None:
        """The newest readings. ``now``: seconds on any clock."""
        for gpu in gpus:
            readings = self._readings.setdefault(gpu.index, deque(maxlen=120))
            readings.append((now, gpu))
            while now - readings[0][0] > 3 * LASTS_S:
                readings.popleft()
            told = power_delivery_fault(readings)
            if told is None:
                self._told.discard(gpu.index)
            elif gpu.index not in self._told:
                self._told.add(gpu.index)
                self._tell(_finding(told))


def _finding(told: str) -> Finding:
    return Finding(
        id="gpu-power-fault",
        severity="costs speed",
        line=0,
        text=told,
        meaning=_MEANING,
        cost="Half the speed and less, in every step.",
        remedy=_REMEDY,
        source="several reports from GB10 owners",
    )

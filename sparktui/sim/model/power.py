"""The GPU's sensors, from the engine's load: power, clock, utilisation, temperature, energy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sparktui.sim.model.truth import GpuShape

_UTILIZATION_S = 0.5  # NVML averages over a fraction of a second
_THERMAL_S = 40.0
_THROTTLED_POWER = 0.7  # share of the dynamic power that follows the clock


@dataclass(frozen=True, slots=True)
class GpuReading:
    """``utilization``: 0 to 1. ``energy_j``: since the process began."""

    power_w: float
    utilization: float
    sm_clock_mhz: float
    temperature_c: float
    energy_j: float
    max_sm_clock_mhz: float


class GpuMeter:
    """Sensors of one GPU. Time is the engine's; between two changes of load it draws constant power."""

    def __init__(self, shape: GpuShape) -> None:
        self._shape = shape
        self._at: float | None = None
        self._running = 0
        self._slowdown = 1.0
        self._busy = 0.0
        self._celsius = shape.idle_c
        self._energy = 0.0
        single = shape.power_w.at(1) - shape.idle_w
        self._per_watt = (shape.busy_c - shape.idle_c) / single if single > 0 else 0.0

    def load(self, now: float, running: int, slowdown: float) -> None:
        """From ``now`` on so many requests run, on clocks lower by ``slowdown``."""
        if running == self._running and slowdown == self._slowdown:
            return
        self._advance(now)
        self._running, self._slowdown = running, slowdown

    def read(self, now: float) -> GpuReading:
        """What the sensors show at ``now``."""
        self._advance(now)
        shape = self._shape
        clock = shape.clock_mhz / self._slowdown if self._running else shape.idle_clock_mhz
        return GpuReading(
            power_w=self._watts(),
            utilization=self._busy * shape.utilization,
            sm_clock_mhz=min(clock, shape.max_clock_mhz),
            temperature_c=self._celsius,
            energy_j=self._energy,
            max_sm_clock_mhz=shape.max_clock_mhz,
        )

    def _watts(self) -> float:
        shape = self._shape
        if not self._running:
            return shape.idle_w
        dynamic = shape.power_w.at(self._running) - shape.idle_w
        return shape.idle_w + dynamic * (1.0 - _THROTTLED_POWER * (1.0 - 1.0 / self._slowdown))

    def _advance(self, now: float) -> None:
        """Nothing happens when ``now`` is in the past: readers and steps need not agree on the instant."""
        if self._at is None:
            self._at = now
        seconds = now - self._at
        if seconds <= 0:
            return
        self._at = now
        watts = self._watts()
        self._energy += watts * seconds
        busy = 1.0 if self._running else 0.0
        self._busy = busy + (self._busy - busy) * math.exp(-seconds / _UTILIZATION_S)
        rest = self._shape.idle_c + self._per_watt * (watts - self._shape.idle_w)
        self._celsius = rest + (self._celsius - rest) * math.exp(-seconds / _THERMAL_S)

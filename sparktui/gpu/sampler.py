"""A thread that reads the GPUs at 2 Hz: an ill driver blocks for seconds and must block nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from sparktui.gpu.nvml import Nvml
from sparktui.schema.live import GpuView


class Sensors(Protocol):
    """What is sampled: NVML, or the stand-in's. ``problem``: why there is nothing to read, else empty."""

    problem: str

    def read(self) -> tuple[GpuView, ...]: ...

    def close(self) -> None: ...


class PowerMeter:
    """Mean power and energy over a span, all GPUs together: the NVML energy counter where every GPU has
    one, else power integrated over time (trapezoids)."""

    def __init__(self) -> None:
        self._begun: tuple[float, float] | None = None
        self._counted: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None
        self._joules = 0.0
        self._seconds = 0.0

    def add(self, gpus: tuple[GpuView, ...], t: float) -> None:
        """One reading at ``t`` (CLOCK_MONOTONIC seconds)."""
        power = [gpu.power_w for gpu in gpus if gpu.power_w is not None]
        if power and len(power) == len(gpus):
            if self._last is not None:
                then, watts = self._last
                self._joules += (t - then) * (watts + sum(power)) / 2
                self._seconds += t - then
            self._last = (t, sum(power))
        counters = tuple(gpu.energy_j for gpu in gpus if gpu.energy_j is not None)
        if counters and len(counters) == len(gpus):
            if self._begun is None:
                self._begun = (t, sum(counters))
            then, joules = self._begun
            self._counted = (t - then, sum(counters) - joules)

    @property
    def mean_w(self) -> float | None:
        """Mean power in watts."""
        return self._joules / self._seconds if self._seconds > 0 else None

    @property
    def joules(self) -> float | None:
        """Energy between the first reading and the last, in joules."""
        if self._by_counter is not None:
            return self._by_counter[1]
        return self._joules if self._seconds > 0 else None

    def joules_over(self, seconds: float) -> float | None:
        """Energy of the measured span of ``seconds``: readings lie up to an interval inside its ends, and
        what they have in a second holds for all of it."""
        if self._by_counter is None:
            return None if self.mean_w is None else self.mean_w * seconds
        span, joules = self._by_counter
        return joules / span * seconds

    @property
    def _by_counter(self) -> tuple[float, float] | None:
        """Seconds and joules; None when it stood still or began anew, as after a driver's reload."""
        return self._counted if self._counted is not None and min(self._counted) > 0 else None


class GpuSampler:
    """``latest`` is the last reading; ``subscribe`` gets each one, called in the sampling thread."""

    def __init__(self, interval_s: float = 0.5, make: Callable[[], Sensors] = Nvml) -> None:
        self._interval_s = interval_s
        self._make = make
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._meters: list[PowerMeter] = []
        self._thread = threading.Thread(target=self._run, name="nvml", daemon=True)
        self.latest: tuple[GpuView, ...] = ()
        self.problem = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; does not wait for a driver that hangs."""
        self._stop.set()

    def measure(self) -> PowerMeter:
        """A meter that is fed until ``release``."""
        meter = PowerMeter()
        with self._lock:
            self._meters.append(meter)
        return meter

    def release(self, meter: PowerMeter) -> None:
        with self._lock:
            self._meters.remove(meter)

    def _run(self) -> None:
        sensors = self._make()
        self.problem = sensors.problem
        if self.problem:
            return
        while not self._stop.wait(self._interval_s):
            self.latest = sensors.read()
            with self._lock:
                for meter in self._meters:
                    meter.add(self.latest, monotonic())
        sensors.close()

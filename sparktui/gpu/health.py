"""What GPU readings say when they are taken together. Pure: readings with their times in, a sentence out.

Every rule wants its condition without a break up to the last reading; a gap of five seconds is a break.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from sparktui.schema.live import GpuView

BUSY_PCT = 90.0
LOW_MHZ = 900.0  # a GB10 under load runs at some 2,400 MHz; in the fault at 500 to 890
LASTS_S = 10.0
STEADY_S = 30.0  # for what is no fault: a ramp says nothing
IDLE_SHARE = 0.2  # of full power; a GB10 idles at 3 to 11 W, spins at 18 and decodes at 30 to 40
LOW_SHARE = 0.4
GAP_S = 5.0
_POWER_FAULT_ON = "GB10"  # elsewhere low clocks are a power limit's or the user's own
_FULL_W = {"GB10": 100.0}  # what owners measure at most, where the driver tells no limit

CAP = frozenset({"sw power cap"})  # a GPU at its own limit under full load: as built
BRAKES = frozenset(
    {"hw slowdown", "sw thermal slowdown", "hw thermal slowdown", "hw power brake", "reliability"}
)

Reading = tuple[float, GpuView]
"""Seconds on any clock, and what the GPU said then."""


class Moment(NamedTuple):
    """A reading, and what the server did then: requests that run, output tok/s. None: not known."""

    t: float
    gpu: GpuView
    running: int | None = None
    tok_s: float | None = None


_R = TypeVar("_R", bound=tuple[Any, ...])


def power_delivery_fault(readings: Sequence[Reading]) -> str | None:
    """The arithmetic of a suspected power delivery fault, or None.

    A GB10 that is over 90 % busy below 900 MHz for ten seconds while the driver names no reason. An idle GPU
    has low clocks too, and says nothing.
    """

    def holds(reading: Reading) -> bool:
        gpu = reading[1]
        if _POWER_FAULT_ON not in (gpu.name or "") or gpu.throttle or gpu.sm_mhz is None:
            return False
        return _busy(gpu) and gpu.sm_mhz < LOW_MHZ

    run = _unbroken(readings, holds, LASTS_S)
    if not run:
        return None
    return f"{_who(run)}: over {BUSY_PCT:.0f} % busy at {_span(run, 'sm_mhz')} MHz for {_seconds(run)}"


def spin_wait(moments: Sequence[Moment]) -> str | None:
    """The arithmetic of a kernel that waits in a loop, or None: over 90 % busy at a fifth of full power or
    less for ten seconds, while requests run and no token comes. A long prefill draws more."""

    def holds(moment: Moment) -> bool:
        return _low_power(moment.gpu, IDLE_SHARE) and bool(moment.running) and moment.tok_s == 0

    run = _unbroken(moments, holds, LASTS_S)
    if not run:
        return None
    return f"{_drawing(run)}, {run[-1].running} requests run and no token comes"


def kernel_bound(moments: Sequence[Moment]) -> str | None:
    """The arithmetic of a GPU that is held up by its kernels' own time, not by arithmetic, or None: over
    90 % busy at two fifths of full power or less for thirty seconds, while tokens come."""

    def holds(moment: Moment) -> bool:
        return _low_power(moment.gpu, LOW_SHARE) and (moment.tok_s or 0.0) > 0

    run = _unbroken(moments, holds, STEADY_S)
    if not run:
        return None
    rates = [moment.tok_s for moment in run if moment.tok_s is not None]
    return f"{_drawing(run)}, with {_from_to(rates)} tok/s"


def throttling(readings: Sequence[Reading], reasons: frozenset[str] = BRAKES) -> str | None:
    """The arithmetic of clocks that are held down for these reasons, or None: one of them is set, or its
    counter has risen, in every reading for ten seconds.

    The milliseconds are at least so many: a counter's rise is known for the readings that came here.
    """
    run = _unbroken(readings, lambda reading: bool(reasons & _named(reading[1])), LASTS_S)
    if not run:
        return None
    named = Counter(reason for _, gpu in run for reason in _named(gpu) & reasons)
    counted = sum(ms for _, gpu in run for reason, ms in gpu.throttled_ms.items() if reason in reasons)
    shares = ", ".join(f"{name} in {count} of {len(run)} readings" for name, count in named.most_common())
    clocks = f" at {_span(run, 'sm_mhz')} MHz" if run[-1][1].sm_mhz is not None else ""
    heat = f", {_span(run, 'temperature_c')} °C" if run[-1][1].temperature_c is not None else ""
    ms = f"; {counted:,.0f} ms or more by the driver's counters" if counted else ""
    return f"{_who(run)}: clocks held down{clocks}{heat} for {_seconds(run)}: {shares}{ms}"


def full_power_w(gpu: GpuView) -> float | None:
    """Watts that it may draw: its enforced limit, else what is known of its kind; None: not known."""
    known = next((watts for name, watts in _FULL_W.items() if name in (gpu.name or "")), None)
    return gpu.power_limit_w or known


def _unbroken(readings: Sequence[_R], holds: Callable[[_R], bool], lasts_s: float) -> list[_R]:
    """The readings of the run that lasts up to now, oldest first; empty when that is too short."""
    run: list[_R] = []
    for reading in reversed(readings):
        if not holds(reading) or (run and run[-1][0] - reading[0] > GAP_S):
            break
        run.append(reading)
    run.reverse()
    return run if run and run[-1][0] - run[0][0] >= lasts_s else []


def _busy(gpu: GpuView) -> bool:
    return gpu.utilization_pct is not None and gpu.utilization_pct > BUSY_PCT


def _low_power(gpu: GpuView, share: float) -> bool:
    full = full_power_w(gpu)
    return _busy(gpu) and full is not None and gpu.power_w is not None and gpu.power_w <= share * full


def _named(gpu: GpuView) -> frozenset[str]:
    return frozenset(gpu.throttle) | frozenset(name for name, ms in gpu.throttled_ms.items() if ms > 0)


def _drawing(run: Sequence[tuple[Any, ...]]) -> str:
    full = full_power_w(run[-1][1]) or 0.0
    drawn = f"{_span(run, 'power_w')} W of {full:,.0f}"
    return f"{_who(run)}: {_span(run, 'utilization_pct')} % busy at {drawn} for {_seconds(run)}"


def _who(run: Sequence[tuple[Any, ...]]) -> str:
    return f"GPU {run[-1][1].index}"


def _seconds(run: Sequence[tuple[Any, ...]]) -> str:
    return f"{run[-1][0] - run[0][0]:.0f} s"


def _span(run: Sequence[tuple[Any, ...]], name: str) -> str:
    values = [getattr(gpu, name) for _, gpu, *_ in run]
    return _from_to(value for value in values if value is not None)


def _from_to(values: Iterable[float]) -> str:
    known = sorted(values)
    low, high = f"{known[0]:,.0f}", f"{known[-1]:,.0f}"
    return low if low == high else f"{low} to {high}"

"""What GPU readings say when they are taken together. Pure: readings with their times in, a sentence out."""

from __future__ import annotations

from collections.abc import Sequence

from sparktui.schema.live import GpuView

BUSY_PCT = 90.0
LOW_MHZ = 1000.0  # a GB10 under load runs at some 2,400 MHz; in the fault at 500 to 900
LASTS_S = 10.0
_SEEN_ON = "GB10"  # elsewhere low clocks are a power limit's or the user's own

Reading = tuple[float, GpuView]
"""Seconds on any clock, and what the GPU said then."""


def power_delivery_fault(readings: Sequence[Reading]) -> str | None:
    """The arithmetic of a suspected power delivery fault, or None.

    A GB10 that is busy at a fraction of its clock, without a break for ten seconds up to the last reading.
    The driver gives no throttle reason then. An idle GPU has low clocks too, and says nothing.
    """
    run: list[Reading] = []
    for t, gpu in reversed(readings):
        if gpu.utilization_pct is None or gpu.sm_mhz is None or _SEEN_ON not in (gpu.name or ""):
            break
        if gpu.utilization_pct <= BUSY_PCT or gpu.sm_mhz >= LOW_MHZ:
            break
        run.append((t, gpu))
    if len(run) < 2 or run[0][0] - run[-1][0] < LASTS_S:
        return None
    clocks = [gpu.sm_mhz for _, gpu in run if gpu.sm_mhz is not None]
    return (
        f"GPU {run[0][1].index}: over {BUSY_PCT:.0f} % busy at {min(clocks):.0f} to {max(clocks):.0f} MHz "
        f"for {run[0][0] - run[-1][0]:.0f} s"
    )

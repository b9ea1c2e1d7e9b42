"""What lowers a GPU's clocks, now and since the reading before (NVML's clocks event reasons)."""

from __future__ import annotations

from collections.abc import Mapping

# Bits of nvmlDeviceGetCurrentClocksEventReasons. Left out: idle, and the user's own clock settings.
_REASONS = {
    0x0004: "sw power cap",
    0x0008: "hw slowdown",
    0x0010: "sync boost",
    0x0020: "sw thermal slowdown",
    0x0040: "hw thermal slowdown",
    0x0080: "hw power brake",
    0x0200: "board limit",
    0x0400: "reliability",
}
_ANY_HW, _HW_CAUSES = 0x0008, 0x0040 | 0x0080  # the first is set beside either of the others
# Fields of nvmlDeviceGetFieldValues that count nanoseconds. Their numbers differ between releases of NVML's
# header: the binding's are taken, and one that means something else gives no rise that fits the time.
COUNTERS = {
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP": "sw power cap",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST": "sync boost",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN": "sw thermal slowdown",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN": "hw thermal slowdown",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN": "hw power brake",
}
_SLACK = 1.2  # a counter is read a moment before or after the clock


def reasons(bits: int) -> tuple[str, ...]:
    """The names of the reasons that lower the clocks, of a bit mask of NVML's."""
    if bits & _HW_CAUSES:
        bits &= ~_ANY_HW
    return tuple(name for bit, name in _REASONS.items() if bits & bit)


class ThrottleClock:
    """Milliseconds by reason between one reading and the next, from counters in nanoseconds."""

    def __init__(self) -> None:
        self._last: tuple[float, Mapping[str, int]] | None = None

    def advance(self, counters: Mapping[str, int], t: float) -> dict[str, float]:
        """What rose since the reading before; ``t`` in seconds on any clock. A counter that began anew says
        nothing, nor does one that rose by more than the time that passed."""
        before, self._last = self._last, (t, counters)
        if before is None:
            return {}
        then, old = before
        limit = 1e3 * (t - then) * _SLACK
        risen = {name: (value - old[name]) * 1e-6 for name, value in counters.items() if name in old}
        return {name: ms for name, ms in risen.items() if 0 < ms <= limit}

"""Numbers and times as the screens show them. What is not known is ``—``, never 0."""

from __future__ import annotations

import time

from sparktui.schema.live import Figures, Snapshot

NOTHING = "—"


def number(value: float | None, digits: int = 1) -> str:
    """Three to four significant figures: 9.87, 98.7, 987, 9,870."""
    if value is None:
        return NOTHING
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 and digits < 2 else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    return NOTHING if value is None else f"{value * 100:.1f} %"


def duration(seconds: float) -> str:
    """``41 s``, ``3:07``, ``2 h 05``."""
    whole = int(seconds)
    if whole < 100:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600} h {whole % 3600 // 60:02}"


def clock(t: float) -> str:
    """Local time of day."""
    return time.strftime("%H:%M", time.localtime(t))


def watts(snapshot: Snapshot) -> float | None:
    """All GPUs together; None when none tells."""
    known = [gpu.power_w for gpu in snapshot.gpus if gpu.power_w is not None]
    return sum(known) if known else None


def acceptance_state(figures: Figures, speculating: bool) -> str:
    """Why there are no acceptance bars; empty when there are."""
    if figures.drafted is None:
        return "not enough data" if speculating else "speculation off"
    return "" if figures.drafted else "nothing drafted"

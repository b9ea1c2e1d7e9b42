"""Numbers and times as the screens show them. What is not known is ``—``, never 0."""

from __future__ import annotations

import time

from sparktui.client.freshness import gpu_silent_s
from sparktui.schema.live import Figures, GraphSteps, LoadView, Snapshot

NOTHING = "—"


def number(value: float | None, digits: int = 1) -> str:
    """Three to four significant figures: 9.87, 98.7, 987, 9,870."""
    if value is None:
        return NOTHING
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 and digits < 2 else f"{value:.{digits}f}"


def bounded(value: float | None, bound: bool, digits: int) -> str:
    """``≤ 10.0`` where no more is known than an upper bound."""
    return number(value, digits) if value is None or not bound else f"≤ {number(value, digits)}"


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


def gib(mib: float) -> str:
    """GiB without its unit: ``4.2``, ``119``."""
    return number(mib / 1024, 1)


def others_text(count: int) -> str:
    """``1 other``, ``3 others``."""
    return f"{count} other" if count == 1 else f"{count} others"


def requests_text(count: int) -> str:
    """``1 request``, ``3 requests``."""
    return f"{count} request" if count == 1 else f"{count} requests"


def per_stream(chunks_s: float | None, load: LoadView) -> float | None:
    """Chunks a second over the streams in flight: those that have just begun are among them."""
    return None if chunks_s is None or load.in_flight <= 0 else chunks_s / load.in_flight


def clock(t: float) -> str:
    """Local time of day."""
    return time.strftime("%H:%M", time.localtime(t))


def watts(snapshot: Snapshot) -> float | None:
    """All GPUs together; None when none tells now."""
    if gpu_silent_s(snapshot) is not None:
        return None
    known = [gpu.power_w for gpu in snapshot.gpus if gpu.power_w is not None]
    return sum(known) if known else None


def acceptance_state(figures: Figures, speculating: bool) -> str:
    """Why there are no acceptance bars; empty when there are."""
    if figures.drafted is None:
        return "not enough data" if speculating else "speculation off"
    return "" if figures.drafted else "nothing drafted"


def graph_share(steps: GraphSteps | None) -> str:
    """``graphs 96 % FULL``: the mode that most engine steps ran in, and the share of PIECEWISE where that is
    less; ``graphs ?`` while no table told. Steps that no graph could hold don't count."""
    total = 0 if steps is None else steps.full + steps.piecewise + steps.none
    if steps is None or not total:
        return "graphs ?"
    parts = [("FULL", steps.full), ("PIECEWISE", steps.piecewise), ("none", steps.none)]
    most = max(parts, key=lambda part: part[1])
    shown = [most, *(part for part in parts[1:2] if part is not most and part[1])]
    return "graphs " + ", ".join(f"{_share(count, total)} {name}" for name, count in shown)


def _share(count: int, total: int) -> str:
    """Whole per cent; neither 0 nor 100 unless it is so exactly."""
    rounded = round(100 * count / total)
    return f"{min(rounded, 99) if count < total else 100} %" if rounded or not count else "<1 %"

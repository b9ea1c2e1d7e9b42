"""What the server's counters say over a window, as fields of Figures. Pure; formulas are DESIGN's."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from sparktui.metrics.page import Page
from sparktui.metrics.window import Delta, difference
from sparktui.schema.launch import Roof


def gauges(page: Page) -> dict[str, Any]:
    """What holds at one instant."""
    each = getattr(page, "kv_usage_each", ())  # XXX
    return {
        "kv_usage": page.kv_usage,
        "kv_usage_each": each if len(each) > 1 else (),
        "running": None if page.running is None else int(page.running),
        "waiting": None if page.waiting is None else int(page.waiting),
    }


def server_figures(delta: Delta | None) -> dict[str, Any]:
    """Differences over the window; empty until there are two pages."""
    if delta is None:
        return {}
    return {
        "output_tok_s": delta.output_tok_s,
        "server_ttft_ms": delta.ttft_ms,
        "server_ttft_bound": delta.ttft_bound,
        "server_tpot_ms": getattr(delta, "tpot_ms", None),  # XXX
        "step_ms": delta.step_ms,
        "tokens_per_step": delta.tokens_per_step,
        "acceptance_rate": delta.acceptance_rate,
        "acceptance_by_position": delta.acceptance_by_position,
        "mean_acceptance_length": delta.mean_acceptance_length,
        "drafted": delta.drafted,
        "prefix_hit_rate": delta.prefix_hit_rate,
        "preemptions": delta.preemptions,
        "read_gb_s": getattr(delta, "read_gb_s", None),  # XXX
    }


def server_decode(pages: Sequence[Page]) -> float | None:
    """Decode tok/s per stream without a load of ours: generated tokens / ∫ running dt over the pages."""
    seconds = 0.0
    for a, b in itertools.pairwise(pages):
        if a.running is None or b.running is None:
            return None
        seconds += (a.running + b.running) / 2 * (b.t - a.t)
    generated = difference(pages[0], pages[-1]).generated if seconds > 0 else None
    return generated / seconds if generated else None


def roof_share(roof: Roof | None, figures: dict[str, Any], streams: int) -> float | None:
    """Share of the memory bandwidth: what vLLM estimates it reads, else at one stream the ideal step time
    (GB a step / bandwidth) over the measured one."""
    if roof is None:
        return None
    if figures.get("read_gb_s") is not None:
        return float(figures["read_gb_s"]) / roof.bandwidth_gb_s
    step_ms = figures.get("step_ms")
    if streams != 1 or not step_ms:
        return None
    return roof.gb_per_step / roof.bandwidth_gb_s * 1000 / float(step_ms)

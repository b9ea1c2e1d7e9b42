"""What the server's counters say over a window, as fields of Figures. Pure; formulas are DESIGN's."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from sparktui.compare.loadwindow import tokens_at
from sparktui.compare.stats import percentile
from sparktui.metrics.page import Page
from sparktui.metrics.window import Delta, difference
from sparktui.schema.launch import Roof
from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import RequestRow

_AROUND_S = 1.5  # a page's own time is not known better: a busy server takes so long for it
_GONE_S = 10.0  # without a line of totals for so long, a load process is gone and so are its requests


def gauges(page: Page) -> dict[str, Any]:
    """What holds at one instant."""
    return {
        "kv_usage": page.kv_usage,
        "kv_usage_each": page.kv_usage_each if len(page.kv_usage_each) > 1 else (),
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
        "server_tpot_ms": delta.tpot_ms,
        "server_tpot_bound": delta.tpot_bound,
        "step_ms": delta.step_ms,
        "tokens_per_step": delta.tokens_per_step,
        "acceptance_rate": delta.acceptance_rate,
        "acceptance_by_position": delta.acceptance_by_position,
        "mean_acceptance_length": delta.mean_acceptance_length,
        "drafted": delta.drafted,
        "prefix_hit_rate": delta.prefix_hit_rate,
        "preemptions": delta.preemptions,
        "read_gb_s": delta.read_gb_s,
    }


def told_by_answers(rows: Iterable[RequestRow], since: float) -> dict[str, Any]:
    """vLLM's own figures of the requests of ours that ended since then: exact, where the histograms only
    bound. Its TTFT begins when a request is scheduled, so its queue belongs to it. ``rows``: newest first."""
    told = []
    for row in rows:
        if row.start + (row.total_ms or 0.0) / 1000 < since:
            break
        if row.server is not None:
            told.append(row.server)
    ttft = [times.ttft_ms + (times.queue_ms or 0.0) for times in told if times.ttft_ms is not None]
    tpot = [times.mean_itl_ms for times in told if times.mean_itl_ms is not None]
    figures: dict[str, Any] = {}
    if ttft:
        figures |= {"server_ttft_ms": percentile(ttft, 0.5), "server_ttft_bound": False}
    if tpot:
        figures |= {"server_tpot_ms": percentile(tpot, 0.5), "server_tpot_bound": False}
    return figures


def server_decode(pages: Sequence[Page]) -> float | None:
    """Decode tok/s per stream without a load of ours: generated tokens / ∫ running dt over the pages."""
    seconds = 0.0
    for a, b in itertools.pairwise(pages):
        if a.running is None or b.running is None:
            return None
        seconds += (a.running + b.running) / 2 * (b.t - a.t)
    generated = difference(pages[0], pages[-1]).generated if seconds > 0 else None
    return generated / seconds if generated else None


def in_flight_around(totals: Sequence[LoadTotals], t: float) -> int:
    """The most requests of ours that a page dated ``t`` may count: those in flight a moment before and
    since. A load process that is late has as many as it last said, one that is silent has none."""
    near = [line.in_flight for line in totals if line.t >= t - _AROUND_S]
    if not near and totals and totals[-1].t >= t - _GONE_S:
        near = [totals[-1].in_flight]
    return max(near, default=0)


def others_tok_s(pages: Sequence[Page], totals: Sequence[LoadTotals]) -> float | None:
    """Output tok/s of the server that are not ours, over these pages, as far as ours are known. None where
    ours aren't known in time: no usage, or usage at an answer's end only. Not below zero: the server counts
    a token of ours a moment before it comes."""
    known = list(totals) if totals and pages and totals[-1].t >= pages[-1].t - _GONE_S else []
    if known and known[-1].in_flight:
        pages = [page for page in pages if page.t <= known[-1].t]
    if len(pages) < 2:
        return None
    a, b = pages[0], pages[-1]
    span = [line for line in known if line.t >= a.t - _AROUND_S]
    if any(line.in_flight and line.usage in ("none", "final") for line in span):
        return None
    ours = tokens_at(span, b.t) - tokens_at(span, a.t) if span else 0.0
    delta = difference(a, b)
    if delta.generated is None or delta.seconds <= 0:
        return None
    return max(0.0, (delta.generated - ours) / delta.seconds)


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

"""The statistics lines that vLLM logs every ten seconds while it works."""

from __future__ import annotations

import asyncio
import os
import time

from sparktui.sim.logfile import Log
from sparktui.sim.metrics import Totals
from sparktui.sim.service import EngineService


def interval_s() -> float:
    """VLLM_LOG_STATS_INTERVAL, else 10 s."""
    try:
        return max(0.1, float(os.environ.get("VLLM_LOG_STATS_INTERVAL", "10")))
    except ValueError:
        return 10.0


async def report(service: EngineService, log: Log, period: float) -> None:
    """Log until cancelled: each busy interval and the first idle one after it."""
    before, moment, was_busy = service.totals, time.monotonic(), False
    while True:
        await asyncio.sleep(period)
        after, now = service.totals, time.monotonic()
        busy = after != before or service.running + service.waiting > 0
        if busy or was_busy:
            log.api("loggers.py:273", engine_line(before, after, now - moment, service))
        if after.draft_tokens > before.draft_tokens:
            log.api("metrics.py:120", spec_line(before, after, now - moment))
        before, moment, was_busy = after, now, busy


def engine_line(before: Totals, after: Totals, seconds: float, service: EngineService) -> str:
    """``Engine 000: …``; rates over ``seconds``, hit rate since boot."""
    prompt = (after.prompt_tokens - before.prompt_tokens) / seconds
    generated = (after.generation_tokens - before.generation_tokens) / seconds
    hits = 100 * after.cache_hits / after.cache_queries if after.cache_queries else 0.0
    return (
        f"Engine 000: Avg prompt throughput: {prompt:.1f} tokens/s, "
        f"Avg generation throughput: {generated:.1f} tokens/s, "
        f"Running: {service.running} reqs, Waiting: {service.waiting} reqs, "
        f"GPU KV cache usage: {100 * service.kv_usage:.1f}%, Prefix cache hit rate: {hits:.1f}%"
    )


def spec_line(before: Totals, after: Totals, seconds: float) -> str:
    """``SpecDecoding metrics: …`` of one interval that drafted something."""
    drafts = after.drafts - before.drafts
    drafted = after.draft_tokens - before.draft_tokens
    positions = [b - a for a, b in zip(before.accepted, after.accepted, strict=True)]
    accepted = sum(positions)
    rates = ", ".join(f"{count / drafts:.3f}" for count in positions)
    return (
        f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / drafts:.2f}, "
        f"Accepted throughput: {accepted / seconds:.2f} tokens/s, "
        f"Drafted throughput: {drafted / seconds:.2f} tokens/s, "
        f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
        f"Per-position acceptance rate: {rates}, Avg Draft acceptance rate: {100 * accepted / drafted:.1f}%"
    )

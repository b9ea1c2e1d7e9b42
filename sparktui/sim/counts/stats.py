"""The statistics lines that vLLM logs every ten seconds while it works, for each of its engines.

Wording of 0.24.0 and 0.32.0 as recorded. "Preemptions" is never among it: vLLM resets that count before it
reads it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator

from sparktui.sim.boot.logfile import Log
from sparktui.sim.counts.graphtable import header_sizes
from sparktui.sim.counts.graphtable import table as graph_table
from sparktui.sim.counts.observed import Observed, Totals
from sparktui.sim.release import Release
from sparktui.sim.service import EngineService

_PERIOD_S = 10.0
_TABLE_SINCE = "0.13.0"
_COMPUTED_SINCE = "0.17.0"  # before, prompt throughput counted cached tokens too
_NO_EMPTY_RATE_SINCE = "0.32.0"  # before, the hit rate of no lookup was 0.0%
_ENGINE_LINE = {  # release: where its engine line is logged
    "0.13.0": "loggers.py:248",
    "0.17.1": "loggers.py:259",
    "0.24.0": "loggers.py:273",
    "0.32.0": "loggers.py:335",
}
_SPEC_LINE = "metrics.py:120"
_TABLE_LINE = "cuda_graph.py:123"


def interval_s() -> float:
    """VLLM_LOG_STATS_INTERVAL; 10 s without, and for what is not above 0."""
    try:
        period = float(os.environ.get("VLLM_LOG_STATS_INTERVAL", ""))
    except ValueError:
        return _PERIOD_S
    return period if period > 0 else _PERIOD_S


async def report(
    service: EngineService,
    log: Log,
    period: float,
    table: bool = False,
    wanted: str = "FULL_AND_PIECEWISE",
) -> None:
    """Log every ``period`` seconds until cancelled; nothing with --disable-log-stats.

    ``table``: the cudagraph table too; ``wanted``: the mode that its header names.
    """
    metrics = service.metrics
    if not metrics.log_stats:
        return
    sizes = header_sizes(service.engines[0].config, wanted)
    header = (wanted, sizes) if table and metrics.release.since(_TABLE_SINCE) else None
    engines = [
        EngineLog(index, seen, metrics.release, time.monotonic(), header)
        for index, seen in enumerate(metrics.observed)
    ]
    while True:
        await asyncio.sleep(period)
        for engine in engines:
            for file, message in engine.lines(time.monotonic()):
                log.api(file, message)


class EngineLog:
    """One engine's lines. ``now``: seconds on any clock; ``header``: mode and sizes of the table, if any."""

    def __init__(
        self,
        index: int,
        seen: Observed,
        release: Release,
        now: float,
        header: tuple[str, tuple[int, ...]] | None = None,
    ) -> None:
        self._index = index
        self._seen = seen
        self._release = release
        self._header = header
        self._before = seen.totals
        self._logged = now
        self._drafts_logged = now
        self._was_busy = False

    def lines(self, now: float) -> Iterator[tuple[str, str]]:
        """Source location and message of each line of the interval that ends now.

        Nothing when neither this interval nor the one before moved a token.
        """
        before, after = self._before, self._seen.totals
        seconds, self._logged = now - self._logged, now
        graphs = self._seen.take_graphs()
        self._before = after
        was_busy, self._was_busy = self._was_busy, self._worked(before, after)
        if not (self._was_busy or was_busy):
            return
        yield _ENGINE_LINE[self._release.nearest(tuple(_ENGINE_LINE))], self._line(before, after, seconds)
        if after.drafts > before.drafts:
            yield _SPEC_LINE, spec_line(before, after, now - self._drafts_logged)
            self._drafts_logged = now
        if self._header and graphs:
            yield _TABLE_LINE, graph_table(*self._header, graphs)

    def _worked(self, before: Totals, after: Totals) -> bool:
        return (
            self._prompt(after) > self._prompt(before) or after.generation_tokens > before.generation_tokens
        )

    def _prompt(self, totals: Totals) -> int:
        return totals.computed_tokens if self._release.since(_COMPUTED_SINCE) else totals.prompt_tokens

    def _line(self, before: Totals, after: Totals, seconds: float) -> str:
        prompt = (self._prompt(after) - self._prompt(before)) / seconds
        generated = (after.generation_tokens - before.generation_tokens) / seconds
        seen, rate = self._seen, self._seen.hit_rate
        parts = [
            f"Engine {self._index:03d}: Avg prompt throughput: {prompt:.1f} tokens/s",
            f"Avg generation throughput: {generated:.1f} tokens/s",
            f"Running: {seen.running} reqs",
            f"Waiting: {seen.waiting} reqs",
            f"GPU KV cache usage: {100 * seen.kv_usage:.1f}%",
        ]
        if rate is not None or not self._release.since(_NO_EMPTY_RATE_SINCE):
            parts.append(f"Prefix cache hit rate: {100 * (rate or 0.0):.1f}%")
        return ", ".join(parts)


def spec_line(before: Totals, after: Totals, seconds: float) -> str:
    """``SpecDecoding metrics: …`` of the ``seconds`` since the line before; something was drafted in them."""
    drafts = after.drafts - before.drafts
    drafted = after.draft_tokens - before.draft_tokens
    positions = [b - a for a, b in zip(before.accepted, after.accepted, strict=True)]
    accepted = sum(positions)
    rates = ", ".join(f"{count / drafts:.3f}" for count in positions)
    overall = 100 * accepted / drafted if drafted else float("nan")
    return (
        f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / drafts:.2f}, "
        f"Accepted throughput: {accepted / seconds:.2f} tokens/s, "
        f"Drafted throughput: {drafted / seconds:.2f} tokens/s, "
        f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
        f"Per-position acceptance rate: {rates}, Avg Draft acceptance rate: {overall:.1f}%"
    )

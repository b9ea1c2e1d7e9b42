"""What the load process's totals say over a window. Pure; formulas are those of DESIGN's table."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sparktui.compare.accounting import usage_over
from sparktui.compare.stats import percentile
from sparktui.schema.gaps import merged, quantile
from sparktui.schema.messages import LoadTotals

CPU_LIMIT, LAG_LIMIT_MS = 0.8, 5.0


@dataclass(frozen=True, slots=True)
class ClientFigures:
    """tok/s, chunks/s, ms. None: not known (yet)."""

    output_tok_s: float | None = None
    chunks_s: float | None = None  # only where the server sends no usage
    decode_tok_s: float | None = None
    ttft_ms: float | None = None
    gap_ms: float | None = None
    gap_p99_ms: float | None = None


def client_figures(span: Sequence[LoadTotals]) -> ClientFigures:
    """Over the lines of totals of a window, oldest first. An idle client has no rates."""
    if len(span) < 2:
        return ClientFigures()
    a, b = span[0], span[-1]
    seconds = b.t - a.t
    loaded = any(t.asked or t.in_flight for t in span)
    counted = usage_over(span) != "none"
    decoding = b.stream_seconds - a.stream_seconds
    gaps = merged(t.gaps for t in span[1:])
    ttft = list(itertools.chain.from_iterable(t.ttft_ms for t in span[1:]))
    return ClientFigures(
        output_tok_s=(b.output_tokens - a.output_tokens) / seconds if loaded and counted else None,
        chunks_s=(b.chunks - a.chunks) / seconds if loaded and not counted else None,
        decode_tok_s=(b.decode_tokens - a.decode_tokens) / decoding if decoding > 0 and counted else None,
        ttft_ms=percentile(ttft, 0.5),
        gap_ms=quantile(gaps, 0.5),
        gap_p99_ms=quantile(gaps, 0.99),
    )


def limited(totals: Sequence[LoadTotals]) -> bool:
    """Whether the load process itself was the limit: CPU over 80 % of a core, or p99 loop lag over 5 ms.

    A line of totals holds about ten lag samples, so its maximum is exceeded by a tenth of the lines where
    the p99 of single samples lies.
    """
    if not totals:
        return False
    lag = percentile([t.lag_ms_p99 for t in totals], 0.9) or 0.0
    cpu = percentile([t.cpu for t in totals], 0.5) or 0.0
    return cpu > CPU_LIMIT or lag > LAG_LIMIT_MS

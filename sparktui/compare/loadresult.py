"""The figures of one load on one server: from the load process's totals and rows to a LoadResult. Pure.

Figures are those of the steady window (loadwindow). Rates are increments inside it over its length, never
tokens of finished requests over the whole duration.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparktui.compare.accounting import (
    MIN_DECODE_TOKENS,
    prefix_flags,
    tokens_between,
    untold,
    usage_of_rows,
    usage_over,
)
from sparktui.compare.loadwindow import Window, tokens_at
from sparktui.compare.stats import percentile, slope_is_significant
from sparktui.schema.codec import SCHEMA_VERSION
from sparktui.schema.gaps import quantile
from sparktui.schema.launch import LoadSpec
from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import ClientHealth, LoadResult, RequestRow, ServerWindow, Usage
from sparktui.schema.workloads import lengths, sampling

FEW = 100  # requests: under that a tail percentile is a single answer's
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_QUIET_S = 5.0
_PAUSE_S = 2.0
_SLOPE_BATCHES, _SLOPE_FROM_S, _SLOPE_SHARE = 6, 12.0, 0.03
_KINDS = 10  # of errors, with one for all that are rarer
_ID = re.compile(r"(?=[a-f-]*\d)[0-9a-f]{6,}(?:-[0-9a-f]{2,})*", re.IGNORECASE)  # or each would be a kind

_Count = Callable[[float, float], float | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What was to be done. ``started``: unix seconds."""

    url: str
    model: str
    load: LoadSpec
    concurrency: int
    started: float


@dataclass(frozen=True, slots=True)
class Beside:
    """What others than the load process say of the window. ``flags``: what was wrong with it."""

    server: ServerWindow | None = None
    limited: bool = False
    power_w: float | None = None
    joules: float | None = None
    flags: tuple[str, ...] = ()


def load_result(
    asked: Asked,
    window: Window,
    rows: Sequence[RequestRow],
    final: LoadTotals,
    beside: Beside,
    complete: bool,
) -> LoadResult:
    """The figures. ``rows``: every request that ended; ``final``: the totals after the drain."""
    begun, ended = (span := window.span or [final])[0], span[-1]
    seconds = ended.t - begun.t if window.arrived else 0.0  # nothing came: no rate, not 0
    inside = [row for row in rows if row.ok and begun.t <= _end(row) <= ended.t]
    count = _counter(span, rows)
    tokens = _told(count(begun.t, ended.t), ended.chunks - begun.chunks)
    flags = _flags(asked, window, inside, final, beside, complete)
    known = lengths(asked.load)
    return LoadResult(
        schema=SCHEMA_VERSION,
        url=asked.url,
        model=asked.model,
        workload=asked.load.workload,
        input_tokens=known[0],
        output_tokens=known[1],
        concurrency=asked.concurrency,
        started=asked.started,
        seconds=window.seconds,
        window_s=seconds,
        requests=len(inside),
        errors=final.errors,
        cancelled=final.cancelled,
        excluded=sum(row.decode_tokens is not None and _speed(row) is None for row in inside),
        chunk_gap_ms=gap_percentiles(window.gaps),
        decode_tok_s=percentiles(_speeds(inside)) | _pooled(begun, ended),
        output_tok_s=_over(tokens, seconds),
        chunks_s=_over(ended.chunks - begun.chunks if tokens is None else None, seconds),
        client=client_health(span, beside.limited),
        server=beside.server,
        error_kinds=_error_kinds(rows),
        sampling=sent(asked.load),
        power_w=beside.power_w,
        joules_per_token=beside.joules / tokens if beside.joules and tokens else None,
        flags=flags + _of_counts(span, rows) + _drift(span, count),
        complete=complete,
        **_times(window, inside),
    )


def _times(window: Window, inside: Sequence[RequestRow]) -> dict[str, dict[str, float]]:
    return {
        "ttft_ms": percentiles(window.ttft_ms),
        "ttfc_ms": percentiles(_later_content(inside)),
        "server_ttft_ms": percentiles(_server_ttfts(inside)),
    }


def _told(tokens: float | None, chunks: int) -> float | None:
    """None where text came and no count with it."""
    return tokens if tokens or not chunks else None


def _end(row: RequestRow) -> float:
    return row.start + (row.total_ms or 0.0) / 1000


def _speed(row: RequestRow) -> float | None:
    """Decode tok/s of one request; None where it decoded too little to tell."""
    if not row.decode_s or (row.decode_tokens or 0) < MIN_DECODE_TOKENS:
        return None
    return (row.decode_tokens or 0) / row.decode_s


def _speeds(rows: Sequence[RequestRow]) -> list[float]:
    return [speed for row in rows if (speed := _speed(row)) is not None]


def _over(amount: float | None, seconds: float) -> float | None:
    return amount / seconds if amount is not None and seconds > 0 else None


def _server_ttfts(rows: Sequence[RequestRow]) -> list[float]:
    """As the server's own metrics in the answers have them, ms."""
    return [row.server.ttft_ms for row in rows if row.server and row.server.ttft_ms is not None]


def _pooled(begun: LoadTotals, ended: LoadTotals) -> dict[str, float]:
    """Σ decode tokens / Σ decoding stream-seconds, requests in flight included."""
    seconds = ended.stream_seconds - begun.stream_seconds
    tokens = ended.decode_tokens - begun.decode_tokens
    return {"pooled": tokens / seconds} if seconds > 0 and tokens > 0 else {}


def _usage(span: Sequence[LoadTotals], rows: Sequence[RequestRow]) -> Usage:
    """Of the answers in the window, also those that ended after it."""
    return usage_of_rows(rows, span[0].t, span[-1].t) or usage_over(span)


def _counter(span: Sequence[LoadTotals], rows: Sequence[RequestRow]) -> _Count:
    """Counts tokens between two times. None where the server counts none for us: a rate of tokens would be
    made up."""
    usage = _usage(span, rows)

    def count(a: float, b: float) -> float | None:
        if usage == "none":
            return None
        return tokens_between(rows, a, b) if usage == "final" else tokens_at(span, b) - tokens_at(span, a)

    return count


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, and p95 and p99 from two values on."""
    wanted = QUANTILES if len(values) > 1 else {"p50": 0.5}
    found = {name: percentile(values, q) for name, q in wanted.items()}
    return {name: value for name, value in found.items() if value is not None}


def gap_percentiles(gaps: Mapping[str, int]) -> dict[str, float]:
    """p50, p95 and p99 in ms of chunk gaps (buckets of schema.gaps); empty without any."""
    found = {name: quantile(gaps, q) for name, q in QUANTILES.items()}
    return {name: value for name, value in found.items() if value is not None}


def _later_content(rows: Sequence[RequestRow]) -> list[float]:
    """Times to first content, where any of them differs from the time to first text."""
    both = [(row.ttft_ms, row.ttfc_ms) for row in rows if row.ttfc_ms is not None]
    return [content for _, content in both] if any(text != content for text, content in both) else []


def client_health(span: Sequence[LoadTotals], limited: bool) -> ClientHealth:
    """Of the lines of a window. A line holds about ten lag samples and keeps the worst: the 90th percentile
    of those lies where the 99th of the samples does."""
    lines = span[1:] or span
    return ClientHealth(
        lag_ms_p99=percentile([line.lag_ms_p99 for line in lines], 0.9) or 0.0,
        cpu=percentile([line.cpu for line in lines], 0.5) or 0.0,
        limited=limited,
    )


def _error_kinds(rows: Sequence[RequestRow]) -> dict[str, int]:
    """How often each reason was given, the most frequent first; the rarest together as one."""
    kinds: dict[str, int] = {}
    for row in rows:
        if row.error:
            kind = _ID.sub("…", row.error)
            kinds[kind] = kinds.get(kind, 0) + 1
    ordered = sorted(kinds.items(), key=lambda kind: -kind[1])
    if len(ordered) <= _KINDS:
        return dict(ordered)
    rest = ordered[_KINDS - 1 :]
    return dict(ordered[: _KINDS - 1]) | {f"one of {len(rest)} other kinds": sum(n for _, n in rest)}


def sent(load: LoadSpec) -> dict[str, Any]:
    """What goes to the server with each request and decides what it answers."""
    more: dict[str, Any] = {"ignore_eos": True} if load.ignore_eos else {}
    if load.chat_template_kwargs:
        more["chat_template_kwargs"] = load.chat_template_kwargs
    return {**sampling(load), **more}


def _flags(
    asked: Asked,
    window: Window,
    inside: Sequence[RequestRow],
    final: LoadTotals,
    beside: Beside,
    complete: bool,
) -> tuple[str, ...]:
    span, server = window.span or [final], beside.server
    seconds = span[-1].t - span[0].t
    told = {
        f"ended early, after {window.seconds:.1f} s": not complete,
        "no steady window: not every stream had its first text in time; figures of the whole load, "
        "with its start": not window.steady,
        f"no request finished in the window of {seconds:.1f} s: let it last longer (-d)": not inside,
        f"few requests ({len(inside)}): tail percentiles are single answers": 0 < len(inside) < FEW,
        f"failed requests: {final.errors} of {final.done}": final.errors > 0,
        f"no answers at the end: for {window.silent_s:.1f} s every request failed": window.lost,
        f"nothing came for the last {window.silent_s:.0f} s": not window.lost and window.silent_s > _QUIET_S,
        f"nothing came for {window.pause_s:.1f} s in the window, while streams were decoding": (
            window.pause_s >= _PAUSE_S and window.pause_s > window.silent_s
        ),
        "client-limited": beside.limited,
        final.note: bool(final.note),
        **dict.fromkeys(beside.flags, True),
        **dict.fromkeys(prefix_flags(asked.load.workload, server.prefix_hit_rate if server else None), True),
    }
    return tuple(text for text, holds in told.items() if holds)


def _of_counts(span: Sequence[LoadTotals], rows: Sequence[RequestRow]) -> tuple[str, ...]:
    if _usage(span, rows) != "final":
        return ()
    cut = untold(rows, span[0].t, span[-1].t)
    spread = f"{cut} of them broke off before it: their tokens are taken to have come as the others' did"
    return ("token counts come only at each answer's end", *((spread,) if cut else ()))


def _drift(span: Sequence[LoadTotals], count: _Count) -> tuple[str, ...]:
    """Output rates of six equal parts that rise or fall together."""
    seconds = span[-1].t - span[0].t
    if seconds < _SLOPE_FROM_S:
        return ()
    part = seconds / _SLOPE_BATCHES
    edges = [span[0].t + i * part for i in range(_SLOPE_BATCHES + 1)]
    counts = [count(a, b) for a, b in itertools.pairwise(edges)]
    rates = [tokens / part for tokens in counts if tokens is not None]
    if len(rates) < _SLOPE_BATCHES:
        return ()
    half = _SLOPE_BATCHES // 2
    first, last = sum(rates[:half]), sum(rates[half:])
    if first <= 0 or abs(last / first - 1) <= _SLOPE_SHARE or not slope_is_significant(rates):
        return ()
    return (f"not steady: output tok/s moved by {last / first - 1:+.0%} between the window's halves",)

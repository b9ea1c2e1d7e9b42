"""A window's raw material to a cell. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparktui.compare.stats import decode_value, output_value, percentile
from sparktui.host.clientfigures import gap_quantiles, limited
from sparktui.metrics.page import Page
from sparktui.metrics.window import Delta, difference, restarted
from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import Batch, Cell, RequestRow

_MIN_DECODE_TOKENS = 32
_P95_FROM = 100  # requests; no tail percentile under that
_FOREIGN_SHARE = 0.02
_BEHIND_SHARE = 0.01
_PREFIX_SHARE = 0.01
_SLACK_TOKENS = 8.0  # a stream: what the server counted and is still on its way


class Foreign(Exception):
    """Somebody else used the server during the window, or it began anew."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which cell: arm, its label, boot number, load, and whether the rates had settled."""

    arm: int
    variant: str
    start: int
    concurrency: int
    steady: bool


@dataclass(frozen=True, slots=True)
class Energy:
    """Mean watts and joules of all GPUs over the window."""

    mean_w: float | None
    joules: float | None


@dataclass(frozen=True, slots=True)
class Measured:
    """A window's raw material."""

    batches: tuple[Batch, ...]
    begun: LoadTotals
    ended: LoadTotals
    series: list[LoadTotals]
    pages: list[Page]
    rows: list[RequestRow]
    kv_max: float | None

    def server(self) -> Delta | None:
        """The server's own counters over the scrapes inside the window. Raises Foreign on a restart."""
        if len(self.pages) < 2:
            return None
        if any(restarted(a, b) for a, b in itertools.pairwise(self.pages)):
            raise Foreign("the server's counters began anew during the window")
        return difference(self.pages[0], self.pages[-1])

    @property
    def seconds(self) -> float:
        return self.ended.t - self.begun.t

    @property
    def errors(self) -> int:
        return self.ended.errors - self.begun.errors


def cell(measured: Measured, place: Place, energy: Energy) -> Cell:
    """The cell of a window. Raises Foreign when the server counted more tokens than we received."""
    server = measured.server()
    decode, output = decode_value(measured.batches), output_value(measured.batches)
    ok = [row for row in measured.rows if row.ok]
    counted = measured.ended.output_tokens - measured.begun.output_tokens
    return Cell(
        arm=place.arm,
        variant=place.variant,
        start=place.start,
        concurrency=place.concurrency,
        seconds=measured.seconds,
        batches=measured.batches,
        decode_tok_s=decode.rate if decode else None,
        output_tok_s=output.rate if output else None,
        ttft_ms=_percentiles([row.ttft_ms for row in ok if row.ttft_ms is not None]),
        chunk_gap_ms=gap_quantiles(measured.series[1:]),
        kv_usage_max=measured.kv_max,
        power_w=energy.mean_w,
        joules_per_token=energy.joules / counted if energy.joules and counted else None,
        requests=len(measured.rows),
        errors=measured.errors,
        excluded=sum((row.decode_tokens or 0) < _MIN_DECODE_TOKENS for row in ok),
        flags=_flags(measured, place, server),
        **_server_fields(server),
    )


def _flags(measured: Measured, place: Place, server: Delta | None) -> tuple[str, ...]:
    flags = {} if place.steady else {"not steady": True}
    ours = _ours_between(measured)
    if server is not None and server.generated is not None and ours is not None:
        slack = _SLACK_TOKENS * place.concurrency
        if server.generated > ours * (1 + _FOREIGN_SHARE) + slack:
            raise Foreign(
                f"other traffic: the server made {server.generated:.0f} tokens, {ours:.0f} are ours"
            )
        flags["client-limited"] = server.generated * (1 - _BEHIND_SHARE) > ours + slack
    flags["client-limited"] = flags.get("client-limited", False) or limited(measured.series)
    hits = (server.prefix_hit_rate if server else None) or 0.0
    flags[f"prefix hits {hits:.0%}"] = hits > _PREFIX_SHARE
    flags["failed requests"] = measured.errors > 0
    return tuple(name for name, raised in flags.items() if raised)


def _server_fields(server: Delta | None) -> dict[str, Any]:
    if server is None:
        return {}
    return {
        "acceptance_rate": server.acceptance_rate,
        "acceptance_by_position": server.acceptance_by_position,
        "mean_acceptance_length": server.mean_acceptance_length,
        "tokens_per_step": server.tokens_per_step,
        "step_ms": server.step_ms,
        "server_output_tok_s": server.output_tok_s,
        "prefix_hit_rate": server.prefix_hit_rate,
        "read_gb_s": server.read_gb_s,
    }


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    shown = {"p50": percentile(values, 0.5)}
    if len(values) >= _P95_FROM:
        shown["p95"] = percentile(values, 0.95)
    return {name: value for name, value in shown.items() if value is not None}


def batch_between(a: LoadTotals, b: LoadTotals) -> Batch:
    """What happened between two lines of totals."""
    return Batch(
        b.t - a.t,
        b.output_tokens - a.output_tokens,
        b.decode_tokens - a.decode_tokens,
        b.stream_seconds - a.stream_seconds,
    )


def _ours_between(measured: Measured) -> float | None:
    """Tokens that we received between the first and the last scrape, interpolated between totals."""
    if len(measured.pages) < 2:
        return None
    return _tokens_at(measured.series, measured.pages[-1].t) - _tokens_at(
        measured.series, measured.pages[0].t
    )


def _tokens_at(series: Sequence[LoadTotals], t: float) -> float:
    for a, b in itertools.pairwise(series):
        if a.t <= t <= b.t:
            share = (t - a.t) / (b.t - a.t) if b.t > a.t else 0.0
            return a.output_tokens + share * (b.output_tokens - a.output_tokens)
    return float(series[0].output_tokens if t < series[0].t else series[-1].output_tokens)

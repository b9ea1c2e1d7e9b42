"""A window's raw material to a cell. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparktui.compare.accounting import MIN_DECODE_TOKENS, account, prefix_flags, usage_over
from sparktui.compare.loadresult import gap_percentiles
from sparktui.compare.loadwindow import tokens_at
from sparktui.compare.stats import decode_value, output_value, percentile
from sparktui.host.clientfigures import limited
from sparktui.metrics.page import Page
from sparktui.metrics.window import Delta, difference, restarted
from sparktui.schema.gaps import merged
from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import Batch, Cell, RequestRow

_P95_FROM = 100  # requests; no tail percentile under that


class Foreign(Exception):
    """Somebody else used the server during the window, or it began anew."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which cell: arm, its label, boot number, load, whether the rates had settled, and the workload."""

    arm: int
    variant: str
    start: int
    concurrency: int
    steady: bool
    workload: str = "chat"


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

    @property
    def in_time(self) -> bool:
        """Whether our token counts came with the tokens: else they are of another time than the window."""
        return usage_over(self.series) == "continuous"


def cell(measured: Measured, place: Place, energy: Energy) -> Cell:
    """The cell of a window. Raises Foreign when the server counted more tokens than we received."""
    server = measured.server()
    decode = decode_value(measured.batches)
    ok = [row for row in measured.rows if row.ok]
    output_tok_s, counted = _output(measured, server)
    return Cell(
        arm=place.arm,
        variant=place.variant,
        start=place.start,
        concurrency=place.concurrency,
        seconds=measured.seconds,
        batches=measured.batches,
        decode_tok_s=decode.rate if decode else None,
        output_tok_s=output_tok_s,
        ttft_ms=_percentiles([row.ttft_ms for row in ok if row.ttft_ms is not None]),
        chunk_gap_ms=gap_percentiles(merged(line.gaps for line in measured.series[1:])),
        kv_usage_max=measured.kv_max,
        power_w=energy.mean_w,
        joules_per_token=energy.joules / counted if energy.joules and counted else None,
        requests=len(measured.rows),
        errors=measured.errors,
        excluded=sum((row.decode_tokens or 0) < MIN_DECODE_TOKENS for row in ok),
        flags=_flags(measured, place, server),
        **_server_fields(server),
    )


def _output(measured: Measured, server: Delta | None) -> tuple[float | None, float]:
    """Output tok/s, and tokens of the window. Where ours don't come in time, they are the server's."""
    if not measured.in_time and server is not None and server.output_tok_s is not None:
        return server.output_tok_s, server.output_tok_s * measured.seconds
    output = output_value(measured.batches)
    counted = measured.ended.output_tokens - measured.begun.output_tokens
    return output.rate if output else None, float(counted)


def _flags(measured: Measured, place: Place, server: Delta | None) -> tuple[str, ...]:
    behind = False
    ours = _ours_between(measured)
    if server is not None and server.generated is not None and ours is not None:
        told = account(server.generated, ours, place.concurrency)
        if told.foreign:
            raise Foreign(
                f"other traffic: the server made {server.generated:.0f} tokens, {ours:.0f} are ours"
            )
        behind = told.behind
    flags = {
        "not steady": not place.steady,
        "client-limited": behind or limited(measured.series),
        **dict.fromkeys(prefix_flags(place.workload, server.prefix_hit_rate if server else None), True),
        "failed requests": measured.errors > 0,
        _late_counts(server): not measured.in_time and measured.ended.chunks > measured.begun.chunks,
    }
    return tuple(name for name, raised in flags.items() if raised)


def _late_counts(server: Delta | None) -> str:
    """Without a count of the server, what we count is of answers that ended, and none at all of others."""
    whose = "" if server is None or server.output_tok_s is None else ": output tok/s is the server's"
    return f"token counts don't come in time{whose}"


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
    """Tokens that we received between the first and the last scrape, interpolated between totals. None where
    their counts don't come in time."""
    if len(measured.pages) < 2 or not measured.in_time:
        return None
    first, last = measured.pages[0].t, measured.pages[-1].t
    return tokens_at(measured.series, last) - tokens_at(measured.series, first)

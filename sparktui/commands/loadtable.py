"""The figures of a load as plain text: one status line while it runs, a table at the end."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence

from sparktui.host.loadrun import Progress
from sparktui.schema.records import LoadResult, ServerWindow

_WIDTH = 24
_NUMBER = 12
_NARROW = 60  # columns: under it a folded line has no room beside its name


def progress_line(progress: Progress, seconds: float) -> str:
    """``12/60 s · 8 streams · out 512.3 tok/s · TTFT 81 ms · 2 failed: HTTP 500``."""
    totals, figures = progress.totals, progress.figures
    if not totals.asked and not progress.draining:
        return "counting the prompts' tokens"
    rate = "chunks/s" if figures.chunks_s is not None else "tok/s"
    value = figures.chunks_s if figures.chunks_s is not None else figures.output_tok_s
    parts = [
        "draining" if progress.draining else f"{progress.elapsed_s:.0f}/{seconds:.0f} s",
        f"{totals.in_flight} of {totals.asked} streams" if totals.asked else f"{totals.in_flight} streams",
        f"out {number(value)} {rate}",
        f"TTFT {number(figures.ttft_ms, 0)} ms",
    ]
    if totals.waiting:
        parts.append(f"{totals.waiting} wait, the longest {totals.longest_wait_s:.1f} s")
    if totals.errors:
        parts.append(f"{totals.errors} failed: {totals.last_error}")
    return " · ".join(parts)


def folded(lines: Sequence[str], width: int | None) -> list[str]:
    """Lines of at most ``width`` characters, continued under their values; as they are without a width."""
    if width is None:
        return list(lines)
    indent = " " * (_WIDTH if width >= _NARROW else 2)
    rows: list[str] = []
    for line in lines:
        wrapped = textwrap.wrap(
            line, max(width, 2 * _NUMBER), subsequent_indent=indent, break_on_hyphens=False
        )
        rows += wrapped if len(line) > width else [line]
    return rows


def table(result: LoadResult) -> list[str]:
    """Every figure with its unit; what is not known is left out or ``—``, never 0."""
    return [
        *_head(result),
        "",
        *_latencies(result),
        "",
        *_rates(result),
        "",
        *_requests(result),
        *_server(result),
        "",
        *_conditions(result),
    ]


def _head(result: LoadResult) -> list[str]:
    prompt = f"{result.input_tokens} tokens in" if result.input_tokens else "prompts of a file"
    streams = "1 stream" if result.concurrency == 1 else f"{result.concurrency} streams"
    return [
        f"{result.model} at {result.url}",
        f"{streams}, {result.workload}: {prompt}, {result.output_tokens} out · "
        f"{result.seconds:.1f} s of load, figures of {result.window_s:.1f} s",
    ]


def _latencies(result: LoadResult) -> list[str]:
    head = " " * _WIDTH + "".join(f"{name:>{_NUMBER}}" for name in ("p50", "p95", "p99"))
    optional = {"first content (ms)": result.ttfc_ms, "TTFT by server (ms)": result.server_ttft_ms}
    return [
        head,
        _three("TTFT (ms)", result.ttft_ms),
        *(_three(name, values) for name, values in optional.items() if values),
        _three("chunk gap (ms)", result.chunk_gap_ms),
        _three("decode tok/s a request", result.decode_tok_s),
    ]


def _three(name: str, values: Mapping[str, float]) -> str:
    shown = "".join(f"{number(values.get(key)):>{_NUMBER}}" for key in ("p50", "p95", "p99"))
    return f"{name:<{_WIDTH}}{shown}"


def _rates(result: LoadResult) -> list[str]:
    rows = []
    if result.chunks_s is not None:
        rows.append(
            _one("output", f"{number(result.chunks_s)} chunks/s", "the server counts no tokens for us")
        )
    else:
        rows.append(_one("output", f"{number(result.output_tok_s)} tok/s", _beside(result.server)))
        pooled = result.decode_tok_s.get("pooled")
        rows.append(_one("decode a stream", f"{number(pooled)} tok/s", "all streams, those in flight too"))
    if result.power_w is not None:
        joules = result.joules_per_token
        rows.append(_one("power", f"{result.power_w:.0f} W", f"{joules:.2f} J a token" if joules else ""))
    return rows


def _beside(server: ServerWindow | None) -> str:
    """The server's own count over its scrapes in the same window."""
    if server is None or server.output_tok_s is None:
        return ""
    return f"the server says {number(server.output_tok_s)}"


def _requests(result: LoadResult) -> list[str]:
    failed = ", ".join(f"{count} × {text}" for text, count in result.error_kinds.items())
    parts = [
        f"{result.requests} finished in the window",
        f"{result.errors} failed",
        f"{result.cancelled} cancelled",
        f"{result.excluded} too short for decode tok/s",
    ]
    client = result.client
    health = f"loop lag p99 {client.lag_ms_p99:.1f} ms, CPU {client.cpu:.0%} of a core"
    return [
        _one("requests", ", ".join(parts)),
        *([_one("failures", failed)] if failed else []),
        _one("client", health, "CLIENT-LIMITED: the figures are the client's" if client.limited else ""),
    ]


def _server(result: LoadResult) -> list[str]:
    server = result.server
    if server is None:
        return [_one("server", "no figures of its own")]
    shown = {
        "TTFT p50 about": _with(server.ttft_ms, "ms", 0),  # interpolated in a bucket of its histogram
        "step": _with(server.step_ms, "ms", 1),
        "tokens a step": _with(server.tokens_per_step, "", 2),
        "KV max": _percent(server.kv_usage_max),
        "prefix hits": _percent(server.prefix_hit_rate),
        "preemptions": f"{server.preemptions:.0f}" if server.preemptions else None,
        "reads": _with(server.read_gb_s, "GB/s", 0),
    }
    rows = [_one("server", " · ".join(f"{name} {text}" for name, text in shown.items() if text))]
    if server.acceptance_rate is not None:
        by = " / ".join(f"{share:.0%}" for share in server.acceptance_by_position)
        length = f"length {number(server.mean_acceptance_length, 2)}"
        rows.append(_one("acceptance", f"{server.acceptance_rate:.1%}", f"by position {by}, {length}"))
    return rows


def _conditions(result: LoadResult) -> list[str]:
    sent = " · ".join(_parameter(name, value) for name, value in result.sampling.items())
    rows = [_one("sent", f"{sent or 'no sampling parameter'}; the rest: the server's defaults")]
    return rows + [_one("▲", flag) for flag in result.flags]


def _parameter(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name if value else f"no {name}"
    if isinstance(value, float | int):
        return f"{name} {value:g}"
    return f"{name} {json.dumps(value, ensure_ascii=False)}"


def _one(name: str, value: str, beside: str = "") -> str:
    return f"{name:<{_WIDTH}}{value}" + (f"  ({beside})" if beside else "")


def _with(value: float | None, unit: str, digits: int) -> str | None:
    return None if value is None else f"{value:.{digits}f} {unit}".rstrip()


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.1%}"


def number(value: float | None, digits: int = 1) -> str:
    """``—`` for what is not known."""
    return "—" if value is None else f"{value:,.{digits}f}"

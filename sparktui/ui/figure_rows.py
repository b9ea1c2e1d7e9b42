"""Every figure there is, as sections of label and value: what pane 1 shows when it has the whole screen."""

from __future__ import annotations

from sparktui.client.freshness import fresh, silent_s, stalled_s
from sparktui.schema.live import Figures, LoadView, Snapshot
from sparktui.schema.text import printable
from sparktui.ui.format import (
    NOTHING,
    acceptance_state,
    bounded,
    duration,
    number,
    per_stream,
    percent,
    requests_text,
)
from sparktui.ui.gpu_text import Rows, gpu_rows, host_rows, missing
from sparktui.ui.screens.text import Section


def figure_sections(snapshot: Snapshot) -> tuple[Section, ...]:
    """What is not known is —."""
    figures = fresh(snapshot)
    sections = [
        Section(f"Rates over {figures.window_s:.0f} s", _rates(figures, snapshot.load)),
        Section("Latency", _latency(figures)),
        Section("Server", _server(figures, snapshot)),
        Section("Speculation", _speculation(figures, snapshot.server.speculating)),
        Section("Our load", _load(snapshot.load)),
    ]
    if why := missing(snapshot):
        sections.append(Section("GPU", [("", why[0])]))
    else:
        sections += [Section(f"GPU {gpu.index}", gpu_rows(gpu)) for gpu in snapshot.gpus]
    if snapshot.memory is not None:
        sections.append(Section("Host memory", host_rows(snapshot.memory, snapshot.server_gpu_mib)))
    return tuple(sections)


def bar_notes(snapshot: Snapshot) -> tuple[str, ...]:
    """Lines for the room below the acceptance bars, the weightiest first."""
    figures = fresh(snapshot)
    lines = []
    if figures.step_ms is not None:
        yields = "" if figures.tokens_per_step is None else f", {figures.tokens_per_step:.2f} tokens"
        lines.append(f"step {number(figures.step_ms)} ms{yields}")
    if figures.chunk_gap_ms is not None:
        tail = "" if figures.chunk_gap_p99_ms is None else f", p99 {number(figures.chunk_gap_p99_ms)}"
        lines.append(f"chunk gap {number(figures.chunk_gap_ms)}{tail} ms")
    if figures.roof_share is not None:
        lines.append(_roof(figures.roof_share))
    if figures.read_gb_s is not None:
        lines.append(f"reads {number(figures.read_gb_s, 0)} GB/s")
    if figures.server_tpot_ms is not None:
        tpot = bounded(figures.server_tpot_ms, figures.server_tpot_bound, 1)
        lines.append(f"TPOT {tpot} ms (server)")
    return tuple(lines)


def _rates(figures: Figures, load: LoadView) -> Rows:
    rows = [
        ("output, server", _unit(number(figures.output_tok_s), "tok/s")),
        ("output, ours", _unit(number(figures.client_output_tok_s), "tok/s")),
    ]
    if load.no_usage:
        rows = [
            rows[0],
            ("ours, no usage", _unit(number(figures.client_chunks_s), "chunks/s")),
            ("per stream", _unit(number(per_stream(figures.client_chunks_s, load)), "chunks/s")),
        ]
    source = " (server)" if figures.decode_source == "server" else ""
    if not load.no_usage or source:
        rows.append((f"per stream{source}", _unit(number(figures.decode_tok_s), "tok/s")))
    rows.append(("others", _others(figures)))
    rows.append(("memory reads", _unit(number(figures.read_gb_s, 0), "GB/s")))
    if figures.roof_share is not None:
        rows.append(("roof", _roof(figures.roof_share)))
    return rows


def _others(figures: Figures) -> str:
    if figures.others_running is None and figures.others_tok_s is None:
        return NOTHING
    rate = [] if figures.others_tok_s is None else [f"{number(figures.others_tok_s)} tok/s"]
    count = [] if figures.others_running is None else [requests_text(figures.others_running)]
    return ", ".join(rate + count)


def _latency(figures: Figures) -> Rows:
    ttft = bounded(figures.server_ttft_ms, figures.server_ttft_bound, 0)
    tpot = bounded(figures.server_tpot_ms, figures.server_tpot_bound, 1)
    gap, p99 = number(figures.chunk_gap_ms), number(figures.chunk_gap_p99_ms)
    return [
        ("TTFT p50, ours", _unit(number(figures.ttft_ms, 0), "ms")),
        ("TTFT p50, server", _unit(ttft, "ms")),
        ("chunk gap p50", _unit(gap, "ms")),
        ("chunk gap p99", _unit(p99, "ms")),
        ("TPOT p50, server", _unit(tpot, "ms")),
        ("step time", _unit(number(figures.step_ms), "ms")),
        ("tokens per step", number(figures.tokens_per_step, 2)),
    ]


def _server(figures: Figures, snapshot: Snapshot) -> Rows:
    stalled, silent = stalled_s(snapshot), silent_s(snapshot)
    alive: str = "ready, answers" if snapshot.server.state == "ready" else snapshot.server.state
    if stalled is not None:
        alive = f"✖ stalled for {duration(stalled)}"
    elif silent is not None:
        alive = f"✖ no answer for {duration(silent)}"
    rows = [
        ("state", alive),
        ("running", _count(figures.running)),
        ("waiting", _count(figures.waiting)),
        ("KV usage", percent(figures.kv_usage)),
    ]
    if len(figures.kv_usage_each) > 1:
        rows.append(
            ("  by engine", " / ".join(f"{share * 100:.0f}" for share in figures.kv_usage_each) + " %")
        )
    lost = figures.preemptions
    rows += [
        ("prefix hits", percent(figures.prefix_hit_rate)),
        ("preemptions", NOTHING if lost is None else f"▲ {lost:.0f}" if lost else "0"),
        ("source", "server.log" if figures.server_source == "log" else _age(figures.scrape_age_s)),
    ]
    return rows


def _speculation(figures: Figures, speculating: bool) -> Rows:
    state = acceptance_state(figures, speculating)
    if state:
        return [("", state)]
    by = " / ".join(f"{share * 100:.0f}" for share in figures.acceptance_by_position)
    return [
        ("acceptance", percent(figures.acceptance_rate)),
        ("  by position", f"{by} %" if by else NOTHING),
        ("mean length", number(figures.mean_acceptance_length, 2)),
    ]


def _load(load: LoadView) -> Rows:
    rows = [
        ("streams asked", str(load.asked)),
        ("in flight", str(load.in_flight)),
        (
            "without a text",
            f"{load.waiting}, longest {duration(load.longest_wait_s)}" if load.waiting else "0",
        ),
        ("finished", f"{load.done:,}"),
        ("failed", f"▲ {load.errors:,}: {printable(load.last_error)}" if load.errors else "0"),
        ("workload", printable(load.workload) or NOTHING),
        ("sampling", printable(load.sampling) or NOTHING),
        ("client-limited", "▲ yes: times are less sure" if load.client_limited else "no"),
    ]
    if load.no_usage:
        rows.append(("usage", "▲ the server sends none"))
    return rows


def _roof(share: float) -> str:
    return f"{share * 100:.0f} % of the roof (estimate)"


def _age(age: float | None) -> str:
    return NOTHING if age is None else f"/metrics, {age:.1f} s old"


def _count(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def _unit(value: str, unit: str) -> str:
    return value if value == NOTHING else f"{value} {unit}"

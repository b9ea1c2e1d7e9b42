"""What each pane of the live screen shows, from the model: no state, no keys."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from sparktui.schema.live import Figures, GpuView, Snapshot
from sparktui.ui.format import NOTHING, acceptance_state, graph_share, number, percent, watts
from sparktui.ui.model import RunModel
from sparktui.ui.widgets.acceptance import AcceptanceBars
from sparktui.ui.widgets.chart import Chart
from sparktui.ui.widgets.tile import Level, Tile

TILES = (
    ("output", "Output"),
    ("decode", "Decode"),
    ("ttft", "TTFT"),
    ("kv", "KV"),
    ("requests", "Reqs"),
    ("power", "Power"),
)
CHARTS = (
    ("decode", "Decode per stream"),
    ("ttft", "TTFT"),
    ("kv", "KV usage"),
    ("power", "Power"),
)
_SPARK = 60
_STALE_S = 3.0


def show_tiles(tiles: dict[str, Tile], model: RunModel) -> None:
    """Six values with their recent past."""
    snapshot = model.snapshot
    if snapshot is None:
        return
    figures = snapshot.figures
    from_log = figures.server_source == "log"
    note = "log" if from_log else ""
    age = figures.scrape_age_s
    stale: Level = "stale" if age is not None and age > _STALE_S and not from_log else "normal"
    old = f"{age:.0f} s old" if stale == "stale" and age is not None else ""
    _show_output(tiles["output"], model, figures, old, note)
    tiles["decode"].show(_with(number(figures.decode_tok_s), "tok/s"), "", _recent(model, "decode"))
    server = f"srv {number(figures.server_ttft_ms, 0)}"
    tiles["ttft"].show(_with(number(figures.ttft_ms, 0), "ms"), server, _recent(model, "ttft"))
    tiles["kv"].show(percent(figures.kv_usage), old, _recent(model, "kv"), level=stale, note=note)
    waiting = figures.waiting or 0
    requests = NOTHING if figures.running is None else f"{figures.running} run"
    level: Level = "warning" if waiting else stale
    queue = f"{waiting} waiting" if waiting else old
    tiles["requests"].show(requests, queue, (), level=level, note=note)
    tiles["power"].show(_with(number(watts(snapshot), 0), "W"), gpu_detail(snapshot), _recent(model, "power"))


def _show_output(tile: Tile, model: RunModel, figures: Figures, old: str, note: str) -> None:
    """The server's count; our own, named so, while the server doesn't tell."""
    history = _recent(model, "output")
    if figures.output_tok_s is not None or figures.client_output_tok_s is None:
        level: Level = "stale" if old else "normal"
        tile.show(_with(number(figures.output_tok_s), "tok/s"), old, history, level=level, note=note)
    else:
        tile.show(_with(number(figures.client_output_tok_s), "tok/s"), "ours", history)


def show_charts(charts: dict[str, Chart], model: RunModel) -> None:
    """Full history; the other arm's level as a ghost on the decode chart."""
    level, label = model.ghost()
    units = {"decode": "tok/s", "ttft": "ms", "kv": "%", "power": "W"}
    for name, chart in charts.items():
        values = tuple(model.history[name])
        if name == "decode":
            chart.show(values, unit=units[name], ghost=level, ghost_label=label, marks=model.marks)
        else:
            chart.show(values, unit=units[name], marks=model.marks)


def show_acceptance(bars: AcceptanceBars, model: RunModel) -> None:
    """By position, or why not."""
    if model.snapshot is None:
        return
    snapshot, figures = model.snapshot, model.snapshot.figures
    shares = figures.acceptance_by_position
    bars.show(
        shares,
        mean_length=figures.mean_acceptance_length,
        k=len(shares) or None,
        state=acceptance_state(figures, snapshot.server.speculating),
        graphs=graph_share(snapshot.graph_steps),
        source="log" if figures.server_source == "log" and figures.drafted is not None else "",
    )


def gpu_detail(snapshot: Snapshot) -> str:
    """``61 % 2,405 MHz 54 °C`` of the first GPU, what it tells of it."""
    if not snapshot.gpus:
        return "no GPU"
    return " ".join(_gpu_parts(snapshot.gpus[0]))


def _gpu_parts(gpu: GpuView) -> list[str]:
    parts = []
    if gpu.utilization_pct is not None:
        parts.append(f"{gpu.utilization_pct:.0f} %")
    if gpu.sm_mhz is not None:
        parts.append(f"{gpu.sm_mhz:,.0f} MHz")
    if gpu.temperature_c is not None:
        parts.append(f"{gpu.temperature_c:.0f} °C")
    return parts


def _recent(model: RunModel, name: str) -> Sequence[float | None]:
    series = model.history[name]
    return tuple(islice(series, max(0, len(series) - _SPARK), None))


def _with(value: str, unit: str) -> str:
    return value if value == NOTHING else f"{value} {unit}"

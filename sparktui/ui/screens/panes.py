"""What each pane of the live screen shows, from the model: no state, no keys."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from sparktui.client.freshness import fresh, silent_s, stalled_s
from sparktui.schema.live import Snapshot
from sparktui.ui.figure_rows import bar_notes
from sparktui.ui.format import acceptance_state, graph_share
from sparktui.ui.gpu_text import chart_note
from sparktui.ui.model import NO_LINK, RunModel
from sparktui.ui.tile_words import tile_words
from sparktui.ui.widgets.acceptance import AcceptanceBars
from sparktui.ui.widgets.chart import Chart
from sparktui.ui.widgets.tile import Tile

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


def show_tiles(tiles: dict[str, Tile], model: RunModel) -> None:
    """Six values with their recent past."""
    for name, said in tile_words(model).items():
        history = _recent(model, said.series) if said.series else ()
        tiles[name].show(
            said.value, said.details, history, level=said.level, note=said.notes, insist=said.insist
        )


def show_charts(charts: dict[str, Chart], model: RunModel) -> None:
    """Full history; the other arm's level as a ghost on the decode chart, the GPU's trouble on the power
    chart."""
    level, label = model.ghost()
    units = {"decode": "tok/s", "ttft": "ms", "kv": "%", "power": "W"}
    note = chart_note(model.snapshot) if model.snapshot else ()
    more: dict[str, dict[str, Any]] = {
        "decode": {"ghost": level, "ghost_label": label},
        "power": {"flags": model.flags, "note": note},
    }
    series = {name: name for name in charts}
    if model.snapshot is not None and model.snapshot.load.no_usage:
        series["decode"], units["decode"], more["decode"] = "stream_chunks", "chunks/s", {}
    for name, chart in charts.items():
        values = tuple(model.history[series[name]])
        chart.show(values, unit=units[name], marks=model.marks, **more.get(name, {}))


def show_acceptance(bars: AcceptanceBars, model: RunModel) -> None:
    """By position, or why not."""
    if model.snapshot is None:
        return
    snapshot, figures = model.snapshot, fresh(model.snapshot)
    shares = figures.acceptance_by_position
    bars.show(
        shares,
        mean_length=figures.mean_acceptance_length,
        k=len(shares) or None,
        state=_no_bars(model, snapshot),
        graphs=graph_share(snapshot.graph_steps),
        source="log" if figures.server_source == "log" and figures.drafted is not None else "",
        notes=bar_notes(snapshot),
    )


def _no_bars(model: RunModel, snapshot: Snapshot) -> str:
    """Why there are no bars; empty when there are."""
    figures = fresh(snapshot)
    if figures.drafted is None:
        if model.lost:
            return NO_LINK
        if stalled_s(snapshot) is not None:
            return "the server is stalled"
        if silent_s(snapshot) is not None:
            return "no answer from /metrics"
    return acceptance_state(figures, snapshot.server.speculating)


def _recent(model: RunModel, name: str) -> Sequence[float | None]:
    series = model.history[name]
    return tuple(islice(series, max(0, len(series) - _SPARK), None))

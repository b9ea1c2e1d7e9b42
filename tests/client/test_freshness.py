"""Which figures are of now."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sparktui.client.freshness import (
    GPU_SILENT_S,
    SILENT_S,
    STALLED_S,
    fresh,
    gpu_silent_s,
    silent_s,
    stalled_s,
)
from sparktui.schema.live import Figures, ServerPhase, Snapshot
from tests.schema.samples import FIGURES, SERVER, SNAPSHOT

LIVE = dataclasses.replace(SERVER, stalled_s=None)
KEPT = {
    "window_s", "scrape_age_s", "server_source", "decode_source", "server_ttft_bound", "server_tpot_bound",
}  # fmt: skip
CLIENT = {
    "client_output_tok_s", "client_chunks_s", "decode_tok_s", "ttft_ms", "chunk_gap_ms", "chunk_gap_p99_ms",
}  # fmt: skip
GAUGES = {"kv_usage", "kv_usage_each", "running", "waiting", "others_running"}


def told(age: float | None = 0.5, *, server: Any = LIVE, **changes: Any) -> Snapshot:
    """A snapshot in which every figure is known."""
    known = {"scrape_age_s": age, "decode_source": "client", "server_source": "metrics"} | changes
    return dataclasses.replace(SNAPSHOT, server=server, figures=dataclasses.replace(FIGURES, **known))


def known(figures: Figures) -> set[str]:
    """Names of the figures that say something."""
    names = {f.name for f in dataclasses.fields(figures)} - KEPT
    return {name for name in names if getattr(figures, name) not in (None, ())}


ALL = known(told().figures)


def test_every_figure_is_known_in_what_is_tested_here() -> None:
    assert {f.name for f in dataclasses.fields(Figures)} - KEPT == ALL
    assert ALL >= CLIENT | GAUGES


def test_a_server_that_answers_keeps_its_figures_as_they_are() -> None:
    snapshot = told(SILENT_S - 0.1, server=dataclasses.replace(LIVE, stalled_s=STALLED_S - 0.1))
    assert fresh(snapshot) is snapshot.figures
    assert (silent_s(snapshot), stalled_s(snapshot)) == (None, None)


def test_of_a_silent_metrics_page_nothing_is_left_and_ours_stays() -> None:
    snapshot = told(SILENT_S)
    assert silent_s(snapshot) == SILENT_S
    assert known(fresh(snapshot)) == CLIENT
    assert fresh(snapshot).scrape_age_s == SILENT_S


def test_a_decode_rate_of_the_servers_goes_with_its_page() -> None:
    assert known(fresh(told(SILENT_S, decode_source="server"))) == CLIENT - {"decode_tok_s"}


def test_of_a_stalled_server_only_gauges_are_left() -> None:
    snapshot = told(server=dataclasses.replace(LIVE, stalled_s=STALLED_S))
    assert stalled_s(snapshot) == STALLED_S
    assert known(fresh(snapshot)) == GAUGES


def test_of_a_server_that_is_both_nothing_is_left() -> None:
    assert known(fresh(told(SILENT_S, server=dataclasses.replace(LIVE, stalled_s=60.0)))) == set()


def test_the_log_stands_in_only_for_a_page_that_was_never_there() -> None:
    never, silent = told(None, server_source="log"), told(12.0, server_source="log")
    assert fresh(never) is never.figures
    assert known(fresh(silent)) == CLIENT  # the log's newest line may be half a minute old


@pytest.mark.parametrize("state", ["idle", "booting", "stopped", "failed", "lost"])
def test_a_server_that_does_not_serve_has_no_figures(state: ServerPhase) -> None:
    figures = fresh(told(server=dataclasses.replace(LIVE, state=state)))
    assert known(figures) == set()
    assert figures.window_s == FIGURES.window_s


def test_a_server_that_drains_still_has_them() -> None:
    snapshot = told(server=dataclasses.replace(LIVE, state="stopping"))
    assert fresh(snapshot) is snapshot.figures


def test_a_gpu_reading_is_of_now_for_six_readings() -> None:
    assert gpu_silent_s(dataclasses.replace(SNAPSHOT, gpu_age_s=None)) is None  # never read
    assert gpu_silent_s(dataclasses.replace(SNAPSHOT, gpu_age_s=GPU_SILENT_S - 0.1)) is None
    assert gpu_silent_s(dataclasses.replace(SNAPSHOT, gpu_age_s=GPU_SILENT_S)) == GPU_SILENT_S

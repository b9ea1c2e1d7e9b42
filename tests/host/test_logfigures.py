from __future__ import annotations

from sparktui.host.logfigures import FRESH_S, LogFigures
from sparktui.schema.bootlog import EngineStats, SpecStats


def test_nothing_said_is_no_figure() -> None:
    assert LogFigures().figures(0.0) == {}


def test_engines_add_up_and_the_fullest_cache_counts() -> None:
    log = LogFigures()
    log.take(EngineStats(5.0, 124.5, 1, 0, kv_usage=0.07, engine="000"), 10.0)
    log.take(EngineStats(5.0, 100.0, 2, 3, kv_usage=0.95, engine="001"), 10.0)
    log.take(EngineStats(5.0, 24.5, 2, 0, kv_usage=0.05, engine="000"), 20.0)
    figures = log.figures(20.0)
    assert figures["output_tok_s"] == 124.5
    assert (figures["running"], figures["waiting"], figures["kv_usage"]) == (4, 3, 0.95)
    assert figures["server_source"] == "log"
    assert "drafted" not in figures


def test_an_engine_that_has_gone_silent_is_left_out_and_then_all_are() -> None:
    log = LogFigures()
    log.take(EngineStats(5.0, 100.0, 2, 0, engine="000"), 0.0)
    log.take(EngineStats(5.0, 50.0, 1, 0, engine="001"), 20.0)
    assert log.figures(FRESH_S + 1)["output_tok_s"] == 50.0
    assert log.figures(20.0 + FRESH_S) == {}


def test_nothing_accepted_is_zero() -> None:
    log = LogFigures()
    log.take(EngineStats(0.0, 10.0, 1, 0), 0.0)
    log.take(SpecStats(1.0, 0, 820, (0.0, 0.0), 0.0), 0.0)
    figures = log.figures(1.0)
    assert (figures["drafted"], figures["acceptance_rate"], figures["acceptance_by_position"]) == (
        True,
        0.0,
        (0.0, 0.0),
    )

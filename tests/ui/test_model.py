"""What a screen knows of a run, without a screen."""

from __future__ import annotations

import dataclasses

import pytest

from sparktui.schema.codec import to_plain
from sparktui.schema.live import Event, Expectation, Figures, LoadView, ServerView
from sparktui.ui.model import HISTORY, SERIES, RunModel
from tests.ui.canned import GPU, IDLE, LOADED, OFF_CELL, RUNNING, T0, events, report, snapshot


def filled(count: int = 12, **changes: object) -> RunModel:
    model = RunModel()
    for event in events():
        model.take_event(event)
    for seq in range(count):
        model.take_snapshot(snapshot(seq, **changes))
    return model


def test_unknown_is_a_gap_not_a_zero() -> None:
    model = filled(3, figures=IDLE, gpus=())
    assert list(model.history["decode"]) == [None] * 3
    assert list(model.history["power"]) == [None] * 3
    assert list(model.history["output"]) == [0.0] * 3  # the server said 0


def test_history_is_bounded() -> None:
    model = filled(HISTORY + 50)
    assert len(model.history["output"]) == HISTORY


def test_load_changes_are_marked_and_age() -> None:
    model = filled(3)
    model.take_snapshot(snapshot(4, load=LoadView(16, 16)))
    assert model.marks == [(0, "16")]
    model.take_snapshot(snapshot(5, load=LoadView(16, 16)))
    assert model.marks == [(1, "16")]


def test_ghost_is_the_other_arm_as_last_seen_and_then_as_measured() -> None:
    model = filled(12)
    assert model.ghost() == (None, "")
    off = ServerView("ready", "off", False, "http://127.0.0.1:8000", 4128, T0)
    model.take_snapshot(snapshot(13, server=off))
    assert model.ghost() == (41.0, "on")
    model.take_snapshot(snapshot(13, server=off, load=LoadView(1, 1)))
    assert model.ghost() == (None, "")  # another load: nothing to compare with
    model.take_event(Event(60, T0, "experiment", "info", "", {"cell": to_plain(OFF_CELL)}))
    model.take_snapshot(snapshot(14, server=RUNNING, load=LoadView(1, 1)))
    assert model.ghost() == (77.5, "off")


def test_only_here_needs_another_boot_to_compare_with() -> None:
    model = filled(1)
    assert model.only_here() == []
    model.take_event(Event(70, T0, "server", "info", "", {"started": "off"}))
    assert model.current_findings() == []
    for event in events():
        model.take_event(event)
    assert "cg-spec-piecewise" in [finding.id for finding in model.only_here()]


def test_dismissed_findings_warn_no_more() -> None:
    model = filled(1)
    before = {finding.id for finding in model.warnings()}
    assert "cg-spec-piecewise" in before
    model.dismissed.add("cg-spec-piecewise")
    assert {finding.id for finding in model.warnings()} == before - {"cg-spec-piecewise"}


def test_a_new_experiment_forgets_the_last_one() -> None:
    model = filled(1)
    model.take_event(Event(80, T0, "verdict", "info", "", {"report": to_plain(report())}))
    assert model.report is not None
    model.take_event(Event(81, T0, "experiment", "info", "", {"begun": ["off", "on"]}))
    assert model.report is None
    assert model.cells == []


def test_data_of_another_version_hurts_nobody() -> None:
    model = filled(1)
    model.take_event(Event(90, T0, "finding", "warning", "text", {"id": 3, "new": True}))
    model.take_event(Event(91, T0, "verdict", "info", "text", {"report": {"schema": 99}}))
    assert model.report is None
    assert model.events[-1].text == "text"


def test_others_are_whom_the_host_counts() -> None:
    model = RunModel()
    assert model.others() == 0
    above = dataclasses.replace(LOADED, running=11, others_running=None)
    model.take_snapshot(snapshot(1, figures=above))
    assert model.others() == 0  # the host decides that, over several scrapes
    model.take_snapshot(snapshot(2, figures=dataclasses.replace(above, others_running=3)))
    assert model.others() == 3
    model.take_snapshot(snapshot(3))
    assert model.others() == 0


def test_a_figure_of_a_silent_source_is_a_gap_with_the_age_of_the_page() -> None:
    model = filled(3)
    assert model.age("kv") is None  # it has a value
    for seq in range(4, 22):
        model.take_snapshot(
            snapshot(seq, figures=dataclasses.replace(LOADED, scrape_age_s=0.4 + (seq - 3) * 0.5))
        )
    # shown up to an age of 6.9 s, at seq 16; 2.5 s ago now
    assert model.history["kv"][-6] == pytest.approx(12.1)
    assert list(model.history["kv"])[-5:] == [None] * 5
    assert model.age("kv") == pytest.approx(9.4)
    assert model.age("decode") is None  # ours: it comes from the client
    assert model.age("chunks") is None  # never had one


def test_a_stall_ages_our_own_figures_too() -> None:
    model = filled(3)
    for seq in range(4, 18):
        still = dataclasses.replace(RUNNING, stalled_s=(seq - 3) * 0.5)
        model.take_snapshot(snapshot(seq, server=still))
    assert model.age("decode") == model.age("output") == pytest.approx(7.0)
    assert model.age("kv") is None  # a gauge of now


def test_a_new_boot_forgets_ages() -> None:
    model = filled(3)
    gone = dataclasses.replace(RUNNING, state="lost")
    model.take_snapshot(snapshot(4, server=gone))
    assert model.age("output") == pytest.approx(1.4)  # 1 s, and the page was 0.4 s old
    model.take_snapshot(snapshot(5, server=dataclasses.replace(RUNNING, state="booting")))
    assert model.age("output") is None


def test_without_a_connection_every_series_ends() -> None:
    model = filled(3)
    model.lose("the host is silent")
    model.lose("the host is gone")
    assert model.lost == "the host is gone"
    assert {name: list(model.history[name])[-1] for name in SERIES} == dict.fromkeys(SERIES)
    assert {len(model.history[name]) for name in SERIES} == {4}  # one gap, however often it is said
    assert model.snapshot is not None
    assert model.snapshot.figures == Figures(5.0)
    assert model.snapshot.gpus == ()
    model.take_snapshot(snapshot(9))
    assert model.lost == ""


def test_trouble_of_the_gpus_is_flagged_on_their_chart() -> None:
    model = filled(2)
    assert model.flags == []
    hot = dataclasses.replace(GPU, temperature_c=85.0)
    model.take_snapshot(snapshot(3, gpus=(GPU, hot)))
    model.take_snapshot(snapshot(4, gpus=(hot, dataclasses.replace(GPU, throttle=("SW thermal slowdown",)))))
    model.take_snapshot(snapshot(5, gpus=(hot,), gpu_age_s=3.5))  # of no reading of now
    assert model.flags == [(2, "°"), (1, "▲")]


def test_findings_are_counted_by_what_the_snapshot_says() -> None:
    model = filled(1, repeats={"jit": 12})
    told = model.counted_findings()
    assert [f.count for f in told if f.id == "jit"] == [12, 1]
    assert {f.count for f in told if f.id != "jit"} == {1}
    assert model.counted_findings() is told  # nothing changed: nothing made
    model.take_snapshot(snapshot(2, repeats={"jit": 13}))
    assert [f.count for f in model.counted_findings() if f.id == "jit"] == [13, 1]


def test_in_an_ab_only_the_arms_are_compared() -> None:
    model = filled(1)
    model.take_event(Event(70, T0, "server", "info", "", {"started": "k2"}))
    assert model.only_here() == []
    for event in events():
        model.take_event(event)
    assert model.only_here()  # k2 had none of them
    model.take_event(Event(80, T0, "experiment", "info", "", {"begun": ["off", "on"]}))
    assert model.only_here() == []  # off has not booted yet


def test_unmet_expectations_are_those_that_are_settled() -> None:
    expected = (Expectation("a", True, 3), Expectation("b", False), Expectation("c"))
    assert [e.text for e in filled(1, expected=expected).unmet()] == ["b"]
    assert RunModel().unmet() == []


def test_what_a_ready_event_tells_of_the_boot_is_kept() -> None:
    model = filled(1)
    data = {"variant": "on", "boot_s": 71.6, "facts": {"model_runner": "V1"}}
    model.take_event(Event(60, T0, "server", "info", "on: ready", data))
    assert model.boots["on"]["facts"] == {"model_runner": "V1"}

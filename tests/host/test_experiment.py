"""The A/B's state machine: every way through it, without clock or server."""

from __future__ import annotations

import pytest

from sparktui.host import experiment as ex
from sparktui.host.experiment import Boot, Experiment
from sparktui.schema.codec import dumps, loads
from sparktui.schema.records import Cell


def cell(e: Experiment) -> Cell:
    return Cell(e.arm, "x", e.start, e.concurrency, 10.0, (), 1.0, 1.0)


def measure_load(e: Experiment) -> Experiment:
    assert e.stage == "warm-up"
    e = ex.settled(ex.warmed_up(e), steady=True)
    assert e.stage == "window"
    return ex.measured(e, cell(e))


def whole(e: Experiment) -> tuple[Experiment, list[tuple[int, int, int]]]:
    """To the end, with (start, arm, concurrency) of each cell."""
    seen = []
    while e.stage != "end":
        assert e.stage == "boot"
        e = ex.booted(e, Boot(e.arm))
        while e.stage == "warm-up":
            seen.append((e.start, e.arm, e.concurrency))
            e = measure_load(e)
        assert e.stage == "stop"
        e = ex.stopped(e)
    return e, seen


def test_quick_measures_each_load_in_each_boot() -> None:
    e, seen = whole(ex.begin((0, 1), (1, 8), 1))
    assert seen == [(0, 0, 1), (0, 0, 8), (1, 1, 1), (1, 1, 8)]
    assert e.outcome == "done"
    assert [c.concurrency for c in e.cells] == [1, 8, 1, 8]


def test_rounds_alternate_which_arm_goes_first() -> None:
    assert ex.begin((0, 1), (1,), 2).order == (0, 1, 1, 0)
    assert ex.begin((0, 1), (1,), 3).order == (0, 1, 1, 0, 0, 1)
    _, seen = whole(ex.begin((0, 1), (1,), 2))
    assert [arm for _, arm, _ in seen] == [0, 1, 1, 0]


def test_boot_failure_ends_after_an_orderly_stop() -> None:
    e = ex.boot_failed(ex.begin((0, 1), (1,), 1), Boot(0, failure="CUDA out of memory"))
    assert e.stage == "stop"
    e = ex.stopped(e)
    assert (e.stage, e.outcome) == ("end", "CUDA out of memory")


def test_death_of_the_second_arm_keeps_the_first_ones_cells() -> None:
    e = ex.stopped(measure_load(ex.booted(ex.begin((0, 1), (1,), 1), Boot(0))))
    e = ex.failed(ex.booted(e, Boot(1)), "killed by signal 9")
    e = ex.stopped(e)
    assert e.stage == "end"
    assert [c.arm for c in e.cells] == [0]
    assert e.outcome == "killed by signal 9"


def test_a_void_window_settles_again_and_the_third_ends_it() -> None:
    e = ex.settled(ex.warmed_up(ex.booted(ex.begin((0, 1), (1,), 1), Boot(0))), steady=True)
    e = ex.voided(e, "other traffic")
    assert (e.stage, e.voids) == ("settle", 1)
    e = ex.voided(ex.settled(e, steady=True), "other traffic")
    assert e.stage == "settle"
    e = ex.voided(ex.settled(e, steady=True), "other traffic")
    assert e.stage == "stop"
    assert e.outcome == "could not measure: other traffic, 3 times"


def test_voids_count_anew_for_each_load() -> None:
    e = ex.settled(ex.warmed_up(ex.booted(ex.begin((0, 1), (1, 8), 1), Boot(0))), steady=True)
    e = ex.settled(ex.voided(e, "x"), steady=True)
    e = ex.measured(e, cell(e))
    assert (e.concurrency, e.voids) == (8, 0)


def test_cancel_wins_over_a_later_reason() -> None:
    e = ex.failed(ex.cancelled(ex.booted(ex.begin((0, 1), (1,), 1), Boot(0))), "died while stopping")
    assert ex.stopped(e).outcome == "cancelled"


@pytest.mark.parametrize(
    ("stage", "lives", "then"),
    [
        ("boot", True, "boot"),
        ("boot", False, "boot"),
        ("warm-up", True, "warm-up"),
        ("settle", True, "warm-up"),
        ("window", True, "warm-up"),
        ("window", False, "stop"),
        ("stop", True, "stop"),
        ("stop", False, "stop"),
    ],
)
def test_a_new_host_resumes_or_closes(stage: ex.Stage, lives: bool, then: str) -> None:
    e = Experiment((0, 1), (0, 1), (1,), stage=stage)
    after = ex.resumed(e, lives)
    assert after.stage == then
    assert bool(after.ending) == (then == "stop" and stage != "stop")


def test_the_state_survives_the_disk() -> None:
    e = ex.booted(ex.begin((0, 1), (1, 8), 2), Boot(0, 3.5, "0.27.1", facts={"model_runner": "V1"}))
    e = ex.settled(ex.warmed_up(e), steady=False)
    assert loads(Experiment, dumps(e)) == e

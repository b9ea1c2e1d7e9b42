"""Curves, acceptance and step times between what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparktui.sim.model.capture import Graphs, capture_sizes
from sparktui.sim.model.curve import Curve
from sparktui.sim.model.truth import Truth


def test_a_curve_goes_through_its_anchors_and_on_with_the_last_slope() -> None:
    curve = Curve(((2, 10.0), (8, 20.0), (32, 80.0)))
    assert [curve.at(load) for load in (2, 8, 32)] == pytest.approx([10, 20, 80])
    assert curve.at(4) == pytest.approx(10 * 2**0.5)
    assert curve.at(16) == pytest.approx(40)
    assert curve.at(128) == pytest.approx(320)
    assert curve.at(1) == 10.0
    assert Curve(((4, 7.0),)).at(100) == 7.0


def test_other_k_lie_on_the_line_through_the_measured_ones() -> None:
    truth = Truth(
        off_step_ms=Curve(((1, 10.0),)), on_step_ms={2: Curve(((1, 20.0),)), 4: Curve(((1, 30.0),))}
    )
    steps = [1000 * truth.step_s(k) for k in (1, 2, 3, 4, 6)]
    assert steps == pytest.approx([15, 20, 25, 30, 40])


def test_with_one_k_measured_the_line_starts_at_off() -> None:
    truth = Truth(off_step_ms=Curve(((1, 10.0),)), on_step_ms={2: Curve(((1, 20.0),))})
    assert [1000 * truth.step_s(k) for k in (1, 3)] == pytest.approx([15, 25])


def test_a_steep_line_never_gives_an_impossible_step() -> None:
    truth = Truth(on_step_ms={3: Curve(((1, 10.0),)), 4: Curve(((1, 100.0),))})
    assert truth.step_s(1) == pytest.approx(0.003)


def test_acceptance_between_greedy_and_sampled_is_a_straight_line() -> None:
    truth = Truth(accepted={2: (0.6, 0.2)}, greedy={2: (1.0, 0.8)}, sampled_at=0.8)
    assert truth.acceptance(2, 0.0) == (1.0, 0.8)
    assert truth.acceptance(2, 0.4) == pytest.approx((0.8, 0.5))
    for temperature in (0.8, 1.5, None):
        assert truth.acceptance(2, temperature) == (0.6, 0.2)


def test_acceptance_of_other_k_is_cut_or_continued() -> None:
    truth = Truth(accepted={3: (0.8, 0.4, 0.2)}, greedy={})
    assert truth.acceptance(2) == (0.8, 0.4)
    assert truth.acceptance(5) == pytest.approx((0.8, 0.4, 0.2, 0.1, 0.05))
    assert truth.acceptance(0) == ()
    assert replace(truth, accepted={1: (0.5,)}).acceptance(3) == pytest.approx((0.5, 0.25, 0.125))
    assert replace(truth, accepted={2: (0.0, 0.0)}).acceptance(4) == (0.0, 0.0, 0.0, 0.0)


def test_capture_sizes_are_those_of_recorded_boots() -> None:
    # vLLM 0.24.0 on an H200: PIECEWISE=51 (largest=512); PIECEWISE=49 (largest=512), FULL=33 (largest=256)
    piecewise, full = capture_sizes(64, 3, "piecewise"), capture_sizes(64, 3, "full")
    assert (len(piecewise), piecewise[-1]) == (51, 512)
    assert (len(full), full[-1]) == (49, 512)
    whole = [size for size in full if size <= 256]
    assert (len(whole), whole[-1]) == (33, 256)
    assert capture_sizes(64, 0, "full")[-1] == 128
    assert capture_sizes(64, 0, "none") == ()


def test_a_step_is_padded_to_the_next_graph() -> None:
    graphs = Graphs.of(64, 3, "full")
    assert graphs.run(4, uniform=True) == ("FULL", 4)
    assert graphs.run(1, uniform=False) == ("PIECEWISE", 4)
    assert graphs.run(300, uniform=False) == ("PIECEWISE", 304)
    assert graphs.run(513, uniform=False) == ("NONE", 513)
    assert graphs.run(260, uniform=True) == ("PIECEWISE", 272)

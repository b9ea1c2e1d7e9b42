"""Acceptance bars by draft position."""

from __future__ import annotations

import math

import pytest
from textual.app import App, ComposeResult

from sparktui.ui.widgets.acceptance import AcceptanceBars, acceptance_rows, bar, mean_length_text
from sparktui.ui.widgets.rows import Row


def text(rows: list[Row]) -> list[str]:
    return ["".join(run for run, _ in row) for row in rows]


def test_bars_are_to_an_eighth_of_a_cell() -> None:
    assert text(acceptance_rows([0.83, 0.5, 0.0], 19, 5)) == [
        "1 ████████▎   83.0%",
        "2 █████       50.0%",
        "3              0.0%",
    ]


@pytest.mark.parametrize(
    ("share", "cells"),
    [(0, "  "), (1 / 16, "▏ "), (7 / 16, "▉ "), (0.5, "█ "), (1, "██"), (1.7, "██"), (-1, "  ")],
)
def test_bar_is_clamped_to_its_room(share: float, cells: str) -> None:
    assert bar(share, 2) == cells


def test_unknown_share_is_a_dash() -> None:
    assert text(acceptance_rows([math.nan], 14, 1)) == ["1 " + " " * 11 + "—"]


def test_positions_without_a_row_are_counted() -> None:
    shares = [0.9, 0.8, 0.7, 0.6, 0.5]
    assert text(acceptance_rows(shares, 20, 4))[-1] == "… 2 more"
    assert len(acceptance_rows(shares, 20, 4)) == 4
    assert len(acceptance_rows(shares, 20, 5)) == 5
    assert text(acceptance_rows(shares, 20, 1))[0].endswith("90.0%")


def test_two_digit_positions_line_up_and_narrow_rows_drop_the_bar() -> None:
    rows = text(acceptance_rows([0.5] * 10, 14, 10))
    assert rows[0] == " 1 ██    50.0%"
    assert rows[9] == "10 ██    50.0%"
    assert text(acceptance_rows([0.5], 9, 1)) == ["1  50.0%"]


def test_mean_length_counts_the_models_own_token() -> None:
    assert mean_length_text(2.61, 3) == "mean length 2.61 of 4"
    assert mean_length_text(2.61, None) == "mean length 2.61"
    assert mean_length_text(None, 3) == ""


class BarsApp(App[None]):
    def compose(self) -> ComposeResult:
        yield AcceptanceBars()

    def lines(self) -> list[str]:
        return [strip.text for strip in self.screen._compositor.render_strips()]


async def test_shows_bars_then_a_state_in_their_place() -> None:
    app = BarsApp()
    async with app.run_test(size=(34, 6)) as pilot:
        bars = app.query_one(AcceptanceBars)
        assert "not enough data" in app.lines()[1]
        bars.show([0.83, 0.68], mean_length=2.51, k=2)
        await pilot.pause()
        assert "Accept by position" in app.lines()[0]
        assert app.lines()[1].startswith("│1 ███")
        assert app.lines()[2].endswith("68.0%│")
        assert "mean length 2.51 of 3" in app.lines()[5]
        bars.show([0.83, 0.68], mean_length=2.51, k=2, state="off [/x]\x1b[31m")
        await pilot.pause()
        assert app.lines()[1].startswith("│off [/x][31m ")
        assert "█" not in "".join(app.lines())
        assert "mean length" not in app.lines()[5]


async def test_the_same_again_repaints_nothing() -> None:
    app = BarsApp()
    async with app.run_test(size=(34, 6)) as pilot:
        bars = app.query_one(AcceptanceBars)
        bars.show([0.83, 0.68], mean_length=2.51, k=2)
        await pilot.pause()
        bars.show([0.83, 0.68], mean_length=2.51, k=2)
        assert not bars._repaint_regions
        bars.show([0.83, 0.5], mean_length=2.51, k=2)
        assert len(bars._repaint_regions) == 1


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (10, 3), (160, 50)])
async def test_any_size(size: tuple[int, int]) -> None:
    app = BarsApp()
    async with app.run_test(size=size) as pilot:
        app.query_one(AcceptanceBars).show([0.5] * 12, mean_length=3.0, k=12)
        await pilot.pause()
        assert {len(line) for line in app.lines()} == {size[0]}


async def test_graphs_stand_on_the_last_row_and_the_source_below() -> None:
    app = BarsApp()
    async with app.run_test(size=(40, 8)) as pilot:
        bars = app.query_one(AcceptanceBars)
        bars.show([0.9] * 9, mean_length=2.61, k=3, graphs="graphs 96 % FULL", source="log")
        await pilot.pause()
        lines = [strip.text for strip in app.screen._compositor.render_strips()]
        height = bars.size.height
        assert lines[height].startswith("│graphs 96 % FULL")
        assert "more" in lines[height - 1]
        assert "length 2.61 of 4 · log" in lines[height + 1]
        bars.show((), mean_length=None, k=None, state="speculation off", graphs="graphs ?")
        await pilot.pause()
        lines = [strip.text for strip in app.screen._compositor.render_strips()]
        assert lines[1].startswith("│speculation off")
        assert lines[height].startswith("│graphs ?")

"""The chart: curve, ghost, marks and axis as text; then the widget in an app."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.geometry import Size

from sparktui.ui.widgets.braille import draw, nice_top
from sparktui.ui.widgets.chart import Chart, axis_labels, chart_rows, figure, short
from sparktui.ui.widgets.rows import Row, plain
from sparktui.ui.widgets.sparkline import sparkline

FOREIGN = "[/x] [red] [EngineCore] \x1b[31m"


def text(rows: list[Row]) -> list[str]:
    return ["".join(run for run, _ in row) for row in rows]


def screen_text(app: App[None]) -> list[str]:
    return [strip.text for strip in app.screen._compositor.render_strips()]


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0.3, 0.5), (1, 1), (1.01, 2), (77.1, 100), (412.7, 500), (500, 500), (501, 1000), (0, 1), (-3, 1)],
)
def test_axis_ends_at_a_nice_number(highest: float, top: float) -> None:
    assert nice_top([None, highest, math.nan, math.inf]) == pytest.approx(top)


def test_curve_runs_from_bottom_to_top() -> None:
    assert draw([0, 100], 1, 1, 100) == ["⡸"]
    assert draw([0, 0, 100, 100], 2, 2, 100) == [" ⡏", "⣀⠇"]
    assert draw([100, 0], 1, 1, 100) == ["⢱"]


def test_newest_sample_is_at_the_right_edge_and_old_ones_fall_off() -> None:
    assert draw([0], 3, 1, 100) == ["  ⢀"]
    assert draw([100, 100, 0, 0], 1, 1, 100) == ["⣀"]


def test_gaps_are_neither_zero_nor_bridged() -> None:
    assert draw([100, 100, None, math.nan, 0, 0], 3, 1, 100) == ["⠉ ⣀"]
    assert draw([None, None], 1, 2, 100) == [" ", " "]


def test_ghost_leaves_the_curve_whole() -> None:
    assert draw([None, None, 0, 0], 3, 2, 100, ghost=10) == ["   ", "┄┄⣀"]
    assert draw([], 2, 2, 100, ghost=90) == ["┄┄", "  "]
    assert draw([0, 0], 1, 1, 100, ghost=None) == draw([0, 0], 1, 1, 100, ghost=math.nan) == ["⣀"]


def test_marks_stand_at_their_sample_with_a_label() -> None:
    assert draw([0] * 10, 5, 2, 100, marks=[(4, "8")]) == ["  ╎8 ", "⣀⣀⣀⣀⣀"]
    assert draw([], 5, 2, 100, marks=[(0, "16")]) == ["  16╎", "    ╎"]
    assert draw([], 5, 1, 100, marks=[(10, "8"), (-1, "4")]) == ["     "]


def test_labels_without_room_stay_out() -> None:
    assert draw([], 4, 1, 100, marks=[(2, "128"), (0, "16")]) == ["  ╎╎"]
    assert draw([], 1, 1, 100, marks=[(0, "16")]) == ["╎"]
    row = draw([], 9, 1, 100, marks=[(6, "12345678"), (4, "4")])[0]
    assert row == "     ╎╎4 "


def test_axis_has_top_middle_and_zero() -> None:
    assert axis_labels(500, 5) == ["500┤", "   ┤", "250┤", "   ┤", "  0┤"]
    assert axis_labels(1, 2) == ["  1┤", "  0┤"]
    assert axis_labels(20000, 1) == ["20k┤"]


@pytest.mark.parametrize(
    ("value", "label"),
    [(0.25, "0.25"), (2500.0, "2500"), (25000.0, "25k"), (2.5e6, "2.5M"), (5e9, "5G"), (0.0025, "")],
)
def test_axis_labels_are_short(value: float, label: str) -> None:
    assert short(value) == label


def test_chart_too_narrow_for_an_axis_keeps_the_curve() -> None:
    assert text(chart_rows([0, 100], 7, 1)) == ["      ⡸"]
    assert text(chart_rows([0, 100], 8, 1)) == ["100┤   ⡸"]


def test_parts_of_a_row_are_told_apart() -> None:
    assert chart_rows([0, 0], 10, 2, ghost=100, marks=[(6, "8")]) == [
        [("100┤", "axis"), ("┄┄", "ghost"), ("╎8", "mark"), ("┄┄", "ghost")],
        [("  0┤", "axis"), ("  ", "curve"), ("╎", "mark"), ("  ⣀", "curve")],
    ]


def test_nothing_measured_is_said_not_drawn() -> None:
    assert text(chart_rows([None, None], 20, 4)) == ["no data yet"]
    assert text(chart_rows([], 20, 2, ghost=77.1)) == ["100┤" + "┄" * 16, "  0┤" + " " * 16]


@given(
    st.lists(st.none() | st.floats()),
    st.integers(-1, 30),
    st.integers(-1, 12),
    st.none() | st.floats(),
    st.lists(st.tuples(st.integers(-5, 80), st.text("[]/x81", max_size=12))),
)
def test_any_input_fills_exactly_its_cells(
    values: list[float | None], width: int, height: int, ghost: float | None, marks: list[tuple[int, str]]
) -> None:
    lines = draw(values, width, height, nice_top([*values, ghost]), ghost=ghost, marks=marks)
    assert [len(line) for line in lines] == ([width] * height if width > 0 and height > 0 else [])
    assert all(len(line) <= max(width, 11) for line in text(chart_rows(values, width, height, ghost=ghost)))


def test_sparkline_is_zero_based_and_keeps_gaps() -> None:
    assert sparkline([412.0] * 4, 4) == "████"
    assert sparkline([0, 50, None, 100], 6) == "  ▁▄ █"
    assert sparkline([100, 1, 50], 2, top=100) == "▁▄"
    assert sparkline([500], 1, top=100) == "█"
    assert sparkline([0, 0], 2) == "▁▁"
    assert sparkline([1], 0) == ""
    assert sparkline([], 3) == sparkline([None, math.nan], 3) == "   "


def test_figures_keep_about_four_digits() -> None:
    assert [figure(v) for v in (None, math.nan, 0.456, 77.14, 412.74, 14233.0)] == [
        "—",
        "—",
        "0.46",
        "77.1",
        "412.7",
        "14,233",
    ]


def test_plain_has_no_control_codes() -> None:
    assert plain("a\x1b[31mb\tc\nd\x9b") == "a[31mb c d"


class ChartApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Chart(f"Decode {FOREIGN}")


async def test_shows_title_curve_and_ghost() -> None:
    app = ChartApp()
    async with app.run_test(size=(60, 8)) as pilot:
        chart = app.query_one(Chart)
        chart.show([0.0, 412.7], unit="tok/s", ghost=77.1, ghost_label="[/x]\x1b[31m off", marks=[(9, "[/]")])
        await pilot.pause()
        lines = screen_text(app)
    assert "Decode [/x] [red] [EngineCore] [31m 412.7 tok/s" in lines[0]
    assert lines[1].startswith("│500┤")
    assert "╎[/]" in lines[1]
    assert lines[6].startswith("│  0┤")
    assert any("┄┄" in line for line in lines[1:7])
    assert "┄ [/x][31m off 77.1" in lines[7]
    assert "\x1b" not in "".join(lines)


async def test_unknown_newest_value_is_a_dash_in_the_title() -> None:
    app = ChartApp()
    async with app.run_test(size=(60, 8)) as pilot:
        chart = app.query_one(Chart)
        chart.show([3.0, None], unit="ms", ghost=2.0)
        await pilot.pause()
        assert " — ─" in screen_text(app)[0]  # no unit without a value
        assert "┄ 2.00" in screen_text(app)[7]
        chart.show([3.0, 4.0], unit="ms")
        await pilot.pause()
        assert "4.00 ms" in screen_text(app)[0]
        assert "┄" not in "".join(screen_text(app))


async def test_the_same_again_repaints_nothing_and_a_new_sample_only_its_rows() -> None:
    app = ChartApp()
    async with app.run_test(size=(60, 12)) as pilot:
        chart = app.query_one(Chart)
        chart.show([400.0, 400.0], unit="W")
        await pilot.pause()
        chart.show([400.0, 400.0], unit="W")
        assert not chart._repaint_regions
        chart.show([400.0, 400.0, 400.0], unit="W")
        assert len(chart._repaint_regions) == 1


@pytest.mark.parametrize("size", [(10, 3), (11, 4), (1, 1), (3, 3), (200, 60)])
async def test_any_size_and_resizing(size: tuple[int, int]) -> None:
    app = ChartApp()
    async with app.run_test(size=size) as pilot:
        chart = app.query_one(Chart)
        values = [float(n) for n in range(500)]
        chart.show(values, unit="W", ghost=3.0, ghost_label="off", marks=[(0, "8"), (3, "16")])
        await pilot.pause()
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert chart.size == Size(38, 8)
        assert screen_text(app)[1].startswith("│500┤")
        assert len(screen_text(app)[1]) == 40


async def test_a_theme_recolours_the_curve() -> None:
    app = ChartApp()
    async with app.run_test(size=(60, 8)) as pilot:
        chart = app.query_one(Chart)
        chart.show([400.0, 400.0], unit="W")
        colours = set()
        for theme in ("textual-dark", "nord"):
            app.theme = theme
            await pilot.pause()
            runs = [
                run for y in range(6) for run in chart.render_line(y) if "⠤" in run.text or "⠒" in run.text
            ]
            colours |= {run.style.color for run in runs if run.style}
        assert len(colours) == 2


def test_flags_stand_below_the_curve_one_a_cell() -> None:
    rows = draw([1.0] * 8, 4, 3, 1.0, flags=[(5, "▲"), (4, "°"), (1, "°"), (9, "▲")])
    assert [row[1] for row in rows][1:] == [" ", "▲"]  # samples 4 and 5 back share a cell: the first counts
    assert [row[3] for row in rows][1:] == [" ", "°"]
    assert rows[0] == draw([1.0] * 8, 4, 3, 1.0)[0]
    assert "".join(rows).count("▲") == 1  # 9 back is off the left edge


def test_a_flag_yields_to_the_curve_and_takes_the_place_of_a_mark() -> None:
    low = draw([0.0] * 4, 2, 2, 1.0, flags=[(0, "▲")])
    assert low[0][1] == "▲"  # the curve lies on the bottom row
    assert low[1] == draw([0.0] * 4, 2, 2, 1.0)[1]
    marked = draw([1.0] * 4, 2, 3, 1.0, marks=[(0, "8")], flags=[(0, "▲")])
    assert marked[2][1] == "▲"
    assert marked[1][1] == "╎"
    assert draw([0.0] * 4, 2, 1, 1.0, flags=[(0, "▲")]) == draw([0.0] * 4, 2, 1, 1.0)  # no room


async def test_a_note_of_a_chart_is_the_longest_that_fits_beside_the_ghost() -> None:
    app = ChartApp()
    async with app.run_test(size=(44, 10)) as pilot:
        chart = app.query_one(Chart)
        note = ("▲ SW thermal slowdown · ° 87 °C hot · ▼ 1,245 of 1,980 MHz", "▲ SW thermal slowdown")
        chart.show([1.0], unit="W", note=note)
        await pilot.pause()
        assert chart.border_subtitle is not None
        assert str(chart.border_subtitle) == "▲ SW thermal slowdown"
        chart.show([1.0], unit="W", ghost=0.5, ghost_label="on", note=note)
        await pilot.pause()
        assert str(chart.border_subtitle) == "┄ on 0.50 · ▲ SW thermal slowdown"
        chart.show([1.0], unit="W", ghost=0.5, ghost_label="speculation on", note=note)
        await pilot.pause()
        assert str(chart.border_subtitle) == "┄ speculation on 0.50"
        await pilot.resize_terminal(110, 10)
        await pilot.pause()
        assert "1,245 of 1,980 MHz" in str(chart.border_subtitle)

"""The table of all figures: columns, cut texts, what stands out."""

from __future__ import annotations

from rich.cells import cell_len
from textual.app import App, ComposeResult

from sparktui.ui.screens.text import Section
from sparktui.ui.widgets.figure_table import FigureTable, table_rows
from sparktui.ui.widgets.rows import Row

SECTIONS = (
    Section("Rates", [("output", "318 tok/s"), ("others", "—")]),
    Section("Server", [("state", "✖ stalled for 12 s"), ("KV", "12.1 %")]),
    Section("Load [/x]", [("failed", "▲ 2: HTTP 503: [/x]\x1b[31m overloaded for a very long while")]),
)


def text(rows: list[Row]) -> list[str]:
    return ["".join(run for run, _ in row).rstrip() for row in rows]


def test_one_column_where_no_more_fit() -> None:
    lines = text(table_rows(SECTIONS, 40))
    assert lines[:4] == ["Rates", "output  318 tok/s", "others  —", ""]
    assert lines.index("Server") == 4


def test_columns_fill_in_order_and_are_aligned() -> None:
    lines = text(table_rows(SECTIONS, 120))
    assert lines[0] == "Rates".ljust(40) + "Server".ljust(40) + "Load [/x]"
    assert lines[1].startswith("output  318 tok/s".ljust(40) + "state  ✖ stalled")


def test_no_row_is_wider_than_the_table_and_a_cut_is_marked() -> None:
    for width in (10, 38, 77, 78, 120, 160):
        rows = text(table_rows(SECTIONS, width))
        assert max(cell_len(row) for row in rows) <= width
    assert any(line.endswith("…") for line in text(table_rows(SECTIONS, 30)))
    assert table_rows(SECTIONS, 0) == table_rows((), 80) == []


def test_unknown_and_warning_values_are_told_apart() -> None:
    parts = {run.strip(): part for row in table_rows(SECTIONS, 40) for run, part in row}
    assert parts["—"] == "unknown"
    assert parts["✖ stalled for 12 s"] == "warning"
    assert parts["318 tok/s"] == "value"


class TableApp(App[None]):
    def compose(self) -> ComposeResult:
        yield FigureTable()


async def test_foreign_text_is_shown_as_it_is_and_the_height_follows() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 24)) as pilot:
        table = app.query_one(FigureTable)
        table.show(SECTIONS[2:])
        await pilot.pause()
        assert table.size.height == 3
        shown = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert "▲ 2: HTTP 503: [/x][31m overloaded" in shown
        table.show(SECTIONS)
        await pilot.pause()
        assert table.size.height > 3

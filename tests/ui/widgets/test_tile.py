"""Tiles: value, detail and history within 11 cells and more."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.containers import Horizontal

from sparktui.ui.widgets.rows import Row
from sparktui.ui.widgets.tile import Tile, tile_rows

LABELS = ("tok/s", "Accept", "KV", "TTFT", "TPOT", "Power")


def text(rows: list[Row]) -> list[str]:
    return ["".join(run for run, _ in row) for row in rows]


def test_history_takes_the_second_row_and_detail_the_room_beside() -> None:
    history = [0.0, 50.0, 100.0]
    assert text(tile_rows("412 W", "of 600 W", history, "normal", 20)) == [
        "412 W of 600 W",
        "▁▄█".rjust(20),
    ]
    assert text(tile_rows("412 W", "of 600 W", history, "normal", 11)) == ["412 W", "▁▄█".rjust(11)]


def test_detail_takes_the_second_row_without_history() -> None:
    assert text(tile_rows("48 ms", "p50", [], "normal", 11)) == ["48 ms", "p50"]
    assert text(tile_rows("48 ms", "p50", [None, None], "normal", 11)) == ["48 ms", "p50"]


def test_warning_says_so_without_colour_and_why_before_history() -> None:
    rows = tile_rows("97 %", "nearly full", [1.0], "warning", 30)
    assert rows == [[("▲ 97 %", "warning")], [("nearly full", "detail")]]


def test_unknown_and_stale_values_are_dim() -> None:
    assert tile_rows("—", "", [1.0], "normal", 3)[0] == [("—", "unknown")]
    assert tile_rows("48 ms", "12 s ago", [1.0], "stale", 11) == [
        [("48 ms", "unknown")],
        [("12 s ago", "detail")],
    ]
    assert tile_rows("—", "no scrape", [1.0], "warning", 11)[0] == [("—", "unknown")]


class TilesApp(App[None]):
    CSS = "Horizontal { height: 4; }"

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield from (Tile(label) for label in LABELS)
        yield Tile("KV [/x]", classes="compact")

    def lines(self) -> list[str]:
        return [strip.text for strip in self.screen._compositor.render_strips()]


async def test_six_tiles_fit_80_columns() -> None:
    app = TilesApp()
    async with app.run_test(size=(80, 10)) as pilot:
        for tile in app.query(Tile):
            tile.show("12,345.6 ms", "[/x] [red]\x1b[31m a long detail", [1.0, 2.0] * 30)
        await pilot.pause()
        lines = app.lines()
        assert [tile.size.width for tile in app.query(Tile)][:6] == [11, 11, 12, 11, 11, 12]
    assert all(label in lines[0] for label in LABELS)
    assert lines[1].count("│12,345.6 ms") == 6
    assert lines[2].count("▄█▄█▄█") >= 6
    assert lines[3].startswith("╰───────────╯╰")


async def test_foreign_text_is_shown_as_it_is() -> None:
    app = TilesApp()
    async with app.run_test(size=(80, 10)) as pilot:
        app.query(Tile).first().show("[red]1[/red]", "[/x]\x1b[0m")
        await pilot.pause()
        lines = app.lines()
    assert lines[1].startswith("│[red]1[/red│")
    assert lines[2].startswith("│[/x][0m   ")


async def test_compact_tile_is_one_row_with_its_label() -> None:
    app = TilesApp()
    async with app.run_test(size=(80, 10)) as pilot:
        tile = app.query(Tile).last()
        tile.show("12.1 %", "of 10 GiB", [1.0])
        await pilot.pause()
        assert tile.outer_size.height == 1
        assert app.lines()[4].rstrip() == "KV [/x] 12.1 % of 10 GiB"
        tile.remove_class("compact")
        await pilot.pause()
        assert tile.outer_size.height == 4
        assert app.lines()[5].startswith("│12.1 % of 10 GiB ")


async def test_value_is_bold_and_a_warning_is_not_of_the_same_colour() -> None:
    app = TilesApp()
    async with app.run_test(size=(80, 10)):
        tile = app.query(Tile).first()
        tile.show("97 %")
        normal = next(iter(tile.render_line(0))).style
        tile.show("97 %", level="warning")
        warning = next(iter(tile.render_line(0))).style
    assert normal is not None
    assert warning is not None
    assert normal.bold
    assert warning.bold
    assert normal.color != warning.color


async def test_the_same_again_repaints_nothing() -> None:
    app = TilesApp()
    async with app.run_test(size=(80, 10)) as pilot:
        tile = app.query(Tile).first()
        tile.show("97 %", "x", [1.0])
        await pilot.pause()
        tile.show("97 %", "x", [1.0])
        assert not tile._repaint_regions
        tile.show("98 %", "x", [1.0])
        assert len(tile._repaint_regions) == 1


async def test_a_note_stands_on_the_border() -> None:
    app = TilesApp()
    async with app.run_test(size=(80, 10)) as pilot:
        tile = app.query(Tile).first()
        tile.show("318 tok/s", history=[1.0], note="log")
        await pilot.pause()
        assert app.lines()[3].startswith("╰───── log ─╯")
        tile.show("318 tok/s", history=[1.0])
        await pilot.pause()
        assert app.lines()[3].startswith("╰───────────╯")


async def test_a_note_is_never_cut() -> None:
    app = TilesApp()
    async with app.run_test(size=(80, 10)) as pilot:
        tile = app.query(Tile).first()
        tile.show("47 W", note=("40.0 GiB", "40 GiB!"))  # between the corners are 11 cells, 7 for a text
        await pilot.pause()
        assert app.lines()[3].startswith("╰─ 40 GiB! ─╯")
        tile.show("47 W", note=("40.0 of 140 GiB", "40.0 GiB"))
        await pilot.pause()
        assert app.lines()[3].startswith("╰───────────╯")
        await pilot.resize_terminal(120, 10)
        await pilot.pause()
        assert app.lines()[3].startswith("╰─────── 40.0 GiB ─╯")


def test_the_longest_detail_that_fits_is_shown() -> None:
    told = ("5 waiting, longest 12 s", "5 wait 12 s", "wait 12 s")
    assert text(tile_rows("129 ms", told, [1.0], "normal", 40))[0] == "129 ms 5 waiting, longest 12 s"
    assert text(tile_rows("129 ms", told, [1.0], "normal", 18))[0] == "129 ms 5 wait 12 s"
    assert text(tile_rows("129 ms", told, [1.0], "normal", 11))[1] == "█".rjust(11)


def test_a_detail_that_insists_takes_the_historys_place_only_where_it_must() -> None:
    told = ("others 96.5 tok/s", "others 96")
    assert text(tile_rows("318 tok/s", told, [1.0], "normal", 40, insist=True)) == [
        "318 tok/s others 96.5 tok/s",
        "█".rjust(40),
    ]
    assert text(tile_rows("318 tok/s", told, [1.0], "normal", 11, insist=True)) == ["318 tok/s", "others 96"]

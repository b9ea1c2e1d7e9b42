"""The load slider: stops, the drawn row, keys and mouse."""

from __future__ import annotations

import pytest

from sparktui.ui.widgets.slider import (
    LABEL,
    Load,
    LoadSlider,
    nearest,
    neighbour,
    stop_at,
    stops_for,
    track,
    words,
)
from tests.ui.logs.looking import Look, looking

STOPS = stops_for(24)


def wishes(look: Look) -> list[int]:
    return [m.concurrency for m in look.told() if isinstance(m, LoadSlider.Changed)]


def ready(max_num_seqs: int | None = 24, asked: int = 8) -> LoadSlider:
    slider = LoadSlider()
    slider.configure(max_num_seqs)
    slider.show(asked, asked, asked)
    return slider


def test_stops_double_and_hold_max_num_seqs() -> None:
    assert STOPS == (0, 1, 2, 4, 8, 16, 24, 32, 64, 128, 256)
    assert stops_for(None) == (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
    assert stops_for(256) == stops_for(None)
    assert stops_for(600)[-3:] == (256, 512, 600)
    assert stops_for(1)[:3] == (0, 1, 2)


def test_neighbours_of_a_value_that_is_no_stop() -> None:
    assert neighbour(STOPS, 12, 1) == 16
    assert neighbour(STOPS, 12, -1) == 8
    assert neighbour(STOPS, 256, 1) == 256
    assert neighbour(STOPS, 0, -1) == 0
    assert STOPS[nearest(STOPS, 12)] == 8


@pytest.mark.parametrize(
    ("index", "row"),
    [
        (0, "├●───────────╌╌╌╌╌╌╌╌┤"),
        (3, "├━━━━━━●─────╌╌╌╌╌╌╌╌┤"),
        (6, "├━━━━━━━━━━━●╌╌╌╌╌╌╌╌┤"),
        (10, "├━━━━━━━━━━━━━━━━━━━●┤"),
    ],
)
def test_track_is_dashed_where_requests_queue(index: int, row: str) -> None:
    assert track(22, STOPS, index, 24) == row


def test_track_marks_what_is_in_force() -> None:
    assert track(13, (0, 1, 2, 4, 8, 16), 2, None, 4) == "├━━━━●───○──┤"
    assert track(5, (0, 1, 2), 2) == "├━━●┤"
    assert "╌" not in track(40, stops_for(None), 3)


@pytest.mark.parametrize("width", [3, 12, 22, 41, 130])
def test_click_hits_the_stop_that_is_drawn_there(width: int) -> None:
    hit = [STOPS.index(stop_at(track(width, STOPS, i).index("●"), width, STOPS)) for i in range(len(STOPS))]
    if width > len(STOPS) + 2:
        assert hit == list(range(len(STOPS)))
    assert stop_at(-50, width, STOPS) == 0
    assert stop_at(500, width, STOPS) == 256


def test_words_shorten_before_the_track_does() -> None:
    now = Load(8, 7, 6)
    assert words(80, now, 8, 256).rstrip() == "8 asked · 7 in flight · 6 running"
    assert words(80, now, 16, 256).rstrip() == "8 → 16 asked · 7 in flight · 6 running"
    assert words(80, Load(8, 7, None), 8, 256).rstrip().endswith("— running")
    assert words(54, now, 8, 256).rstrip() == "8 asked · 7 in flight"
    assert words(30, now, 8, 256).rstrip() == "8 asked"
    locked = Load(8, 8, 8, "locked while measuring")
    assert words(80, locked, 8, 256).rstrip() == "8 asked · 8 in flight · ■ locked while measuring"
    assert (
        words(120, locked, 8, 256).rstrip() == "8 asked · 8 in flight · 8 running · ■ locked while measuring"
    )


def test_words_keep_their_width_while_the_load_changes() -> None:
    widths = {
        len(words(80, Load(a, a, r), w, 256)) for a, r, w in ((0, None, 0), (8, 8, 128), (256, 200, 128))
    }
    assert len(widths) == 1


async def test_shows_what_is_so() -> None:
    async with looking(ready()) as look:
        row = look.rows()[0]
        assert row.startswith(" Load ├━")
        assert row.rstrip().endswith("┤ 8 asked · 8 in flight · 8 running")
        assert len(row) == 80


@pytest.mark.parametrize(
    ("key", "wish"), [("l", 16), ("right", 16), ("h", 4), ("left", 4), ("0", 0), ("home", 0), ("end", 24)]
)
async def test_each_key_tells_a_wish_at_once(key: str, wish: int) -> None:
    slider = ready()
    async with looking(slider) as look:
        await look.press(key)
        assert wishes(look) == [wish]
        assert slider.concurrency == wish
        assert f" 8 → {wish} asked · 8 in flight" in look.rows()[0]


async def test_wish_ends_when_it_is_asked_for() -> None:
    slider = ready()
    async with looking(slider) as look:
        await look.press("l", "l")
        slider.show(16, 12, 12)
        await look.press()
        assert "16 → 24 asked · 12 in flight" in look.rows()[0]
        slider.show(24, 20, 20)
        await look.press()
        assert "┤ 24 asked · 20 in flight" in look.rows()[0]
        assert wishes(look)[-1] == 24


async def test_going_back_takes_the_wish_away() -> None:
    slider = ready()
    async with looking(slider) as look:
        await look.press("l")
        assert wishes(look) == [16]
        await look.press("h")
        assert wishes(look) == [8]
        assert "┤ 8 asked" in look.rows()[0]


async def test_ends_tell_nothing() -> None:
    slider = ready(asked=0)
    async with looking(slider) as look:
        await look.press("h", "0", "home")
        assert wishes(look) == []


@pytest.mark.parametrize("why", ["locked while measuring", "driven from pts/3", "[/x] [red]"])
async def test_locked_says_why_and_takes_no_keys(why: str) -> None:
    slider = ready()
    async with looking(slider) as look:
        await look.press("l")
        look.told()
        slider.show(8, 8, 8, locked=why)
        await look.press("l", "h", "0", "end")
        slider.step(1)
        slider.set_idle()
        await look.pilot.click(slider, offset=(len(LABEL) + 2, 0))
        await look.press()
        assert wishes(look) == []
        assert "8 asked · " in look.rows()[0]
        assert f"■ {why}" in look.rows()[0]
        assert "→" not in look.rows()[0]
        slider.show(8, 8, 8)
        await look.press("l")
        assert wishes(look) == [16]


async def test_screen_can_step_without_focus() -> None:
    slider = ready()
    async with looking(slider) as look:
        look.pilot.app.screen.set_focus(None)
        slider.step(-1)
        await look.press()
        assert wishes(look) == [4]
        slider.set_idle()
        await look.press()
        assert wishes(look) == [0]


async def test_click_and_drag_pick_a_stop() -> None:
    slider = ready()
    async with looking(slider) as look:
        row = look.rows()[0]
        left, right = row.index("├"), row.index("┤")
        await look.pilot.mouse_down(slider, offset=(left + 1, 0))
        await look.press()
        assert wishes(look) == [0]
        assert look.pilot.app.mouse_captured is slider
        await look.pilot.hover(slider, offset=(right - 1, 0))
        await look.press()
        assert wishes(look)[-1] == 256
        await look.pilot.mouse_up(slider, offset=(right - 1, 0))
        assert look.pilot.app.mouse_captured is None
        await look.pilot.hover(slider, offset=(left + 1, 0))
        await look.press()
        assert wishes(look) == []


async def test_lock_ends_a_drag() -> None:
    slider = ready()
    async with looking(slider) as look:
        await look.pilot.mouse_down(slider, offset=(len(LABEL) + 1, 0))
        slider.show(8, 8, 8, locked="locked while measuring")
        await look.press()
        assert look.pilot.app.mouse_captured is None


async def test_wheel_steps() -> None:
    slider = ready()
    async with looking(slider) as look:
        await look.wheel(slider, up=True)
        assert wishes(look) == [16]
        await look.wheel(slider, up=False)
        await look.wheel(slider, up=False)
        assert wishes(look)[-1] == 4


async def test_same_value_draws_nothing_anew() -> None:
    slider = ready()
    async with looking(slider) as look:
        drawn = slider.render_line(0)
        slider.show(8, 8, 8)
        slider.configure(24)
        assert slider.render_line(0) is drawn
        slider.show(8, 8, 7)
        assert slider.render_line(0) is not drawn
        await look.press()


async def test_queueing_part_is_drawn_otherwise() -> None:
    async with looking(ready()) as look:
        styles = {text[0]: style for text, style in look.cells()[0] if text and text[0] in "─╌"}
        assert styles["─"].color != styles["╌"].color

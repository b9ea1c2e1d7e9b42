"""The log pane under a user's hands."""

from __future__ import annotations

import pytest
from textual.geometry import Offset
from textual.selection import Selection

from sparktui.schema.live import Finding
from sparktui.ui.widgets.log_keys import subtitle
from sparktui.ui.widgets.log_lines import gutter
from sparktui.ui.widgets.log_store import CAPACITY, LogStore
from sparktui.ui.widgets.log_view import LogView
from tests.ui.logs.looking import FOREIGN, looking, w1_finding, w1_findings, w1_lines


def w1_view() -> LogView:
    view = LogView()
    view.extend(1, w1_lines())
    view.mark(w1_findings())
    return view


def test_gutter_tells_the_kind_without_colour() -> None:
    assert gutter(w1_finding(), False) == "▲ "
    assert gutter(Finding("x", "boot fails", 1, "t", "m"), True) == "✖›"
    assert gutter(Finding("x", "note", 1, "t", "m"), False) == "· "
    assert gutter(None, True) == " ›"


def test_subtitle_says_what_is_shown() -> None:
    store = LogStore()
    store.extend(14_230, ["a", "b", "WARNING 11-30 18:17:11 [a.py:1] x", "INFO:     b"])
    assert subtitle(store, True, "", None) == "follow ▾  14,233 lines  / find  w warnings"
    assert subtitle(store, False, "b", 14_233) == "f follow  14,233 lines  /b  2 of 2 found  w warnings"
    assert subtitle(store, False, "z", 14_233) == "f follow  14,233 lines  /z  not found  w warnings"
    store.warnings_only = True
    assert subtitle(store, True, "", None) == "follow ▾  1 of 14,233 lines  warnings only  / find  w all"
    store.warnings_only = False
    store.extend(14_234, ['INFO:     1.1.1.1:1 - "GET /metrics HTTP/1.1" 200 OK'])
    assert subtitle(store, True, "", None) == "follow ▾  14,234 lines  1 folded (A)  / find  w warnings"


async def test_follows_new_lines_until_scrolled_up() -> None:
    view = w1_view()
    async with looking(view) as look:
        assert "follow ▾  517 lines" in look.rows()[-1]
        view.extend(518, ["the newest"])
        await look.press()
        assert "the newest" in look.rows()[-2]
        await look.press("up")
        assert view.lines.follow is False
        assert "f follow  518 lines" in look.rows()[-1]
        view.extend(519, ["newer still"])
        await look.press()
        assert "the newest" not in look.rows()[-2]
        await look.press("G")
        assert "newer still" in look.rows()[-2]
        assert "follow ▾  519 lines" in look.rows()[-1]


async def test_follow_key_stops_and_resumes() -> None:
    view = w1_view()
    async with looking(view) as look:
        await look.press("f")
        view.extend(518, ["the newest"])
        await look.press()
        assert "the newest" not in "".join(look.rows())
        await look.press("f")
        assert "the newest" in look.rows()[-2]


async def test_wheel_ends_following() -> None:
    view = w1_view()
    async with looking(view) as look:
        await look.wheel(view.lines, up=True)
        assert view.lines.follow is False


async def test_top_and_pages() -> None:
    view = w1_view()
    async with looking(view) as look:
        await look.press("g")
        assert view.lines.scroll_offset.y == 0
        assert "18:15:57 INFO" in look.rows()[1]
        await look.press("pagedown")
        assert view.lines.scroll_offset.y == view.lines.size.height - 1
        await look.press("down", "pageup")
        assert view.lines.scroll_offset.y == 1
        await look.press("end")
        assert view.lines.follow


async def test_costly_line_stands_on_a_warning_background() -> None:
    view = w1_view()
    async with looking(view) as look:
        view.reveal(34)
        await look.press()
        row = look.row_with("CUDAGraphMode.FULL_AND_PIECEWISE")
        assert row.startswith("│▲›18:17:11 WARN  CUDAGraphMode")
        warning = look.pilot.app.get_css_variables()["warning"]
        backgrounds = {
            s.bgcolor.get_truecolor().hex for s in look.styles_of("CUDAGraphMode.FULL_AND_") if s.bgcolor
        }
        assert warning.lower() in backgrounds
        plain = {
            s.bgcolor.get_truecolor().hex for s in look.styles_of("Profiling CUDA graph memory") if s.bgcolor
        }
        assert warning.lower() not in plain


async def test_finding_keys_jump_tell_and_open() -> None:
    view = w1_view()
    async with looking(view) as look:
        await look.press("g", "right_square_bracket")
        await look.press("right_square_bracket", "right_square_bracket", "right_square_bracket")
        told = look.told()
        assert [m.finding.line for m in told if isinstance(m, LogView.FindingSelected)] == [12, 15, 22, 34]
        assert view.lines.cursor == 34
        assert "▲›" in look.row_with("CUDAGraphMode.FULL_AND_PIECEWISE")
        await look.press("enter")
        assert look.told() == [LogView.FindingOpened(w1_finding())]
        await look.press("left_square_bracket")
        assert [m.finding.line for m in look.told() if isinstance(m, LogView.FindingSelected)] == [22]


async def test_enter_elsewhere_opens_the_lines_own_record() -> None:
    view = w1_view()
    async with looking(view) as look:
        await look.press("enter")
        assert look.told() == []
        view.reveal(33)
        await look.press("enter")
        assert look.told() == [LogView.RecordOpened(33, [w1_lines()[32]])]


async def test_a_harmless_line_is_dim_and_enter_says_so() -> None:
    view = w1_view()
    harmless = Finding("h", "harmless", 34, "text", "No harm.")
    async with looking(view) as look:
        view.reveal(34)
        await look.press()
        costly = look.styles_of("CUDAGraphMode.FULL_AND_")
        view.mark([harmless])
        await look.press()
        row = look.row_with("CUDAGraphMode.FULL_AND_PIECEWISE")
        assert row.startswith("│ ›")
        assert look.styles_of("CUDAGraphMode.FULL_AND_") != costly
        await look.press("enter")
        assert look.told() == [LogView.FindingOpened(harmless)]


async def test_click_puts_the_cursor_on_a_finding() -> None:
    view = w1_view()
    async with looking(view) as look:
        await look.press("g")
        await look.pilot.click(view.lines, offset=(10, 11))
        await look.press("enter")
        told = look.told()
        assert view.lines.cursor == 12
        assert [type(m) for m in told] == [LogView.FindingSelected, LogView.FindingOpened]


async def test_find_types_keeps_steps_and_ends() -> None:
    view = w1_view()
    async with looking(view) as look:
        await look.press("g", "slash", *"v1 model runner")
        assert "/ v1 model runner" in look.rows()[-2]
        hits = [n for n, text in enumerate(w1_lines(), 1) if "v1 model runner" in text.lower()]
        assert len(hits) > 1
        assert view.lines.cursor == hits[0]
        assert f"/v1 model runner  1 of {len(hits)} found" in look.rows()[-1]
        await look.press("enter")
        assert view.has_focus
        assert "/ v1 model runner" not in look.rows()[-2]
        await look.press("n")
        assert view.lines.cursor == hits[1]
        await look.press("N")
        assert view.lines.cursor == hits[0]
        await look.press("escape")
        assert "/ find" in look.rows()[-1]
        await look.press("n")
        assert view.lines.cursor == hits[0]


async def test_escape_in_the_find_line_gives_the_focus_back() -> None:
    view = w1_view()
    async with looking(view) as look:
        await look.press("slash", *"wq", "escape")
        assert view.has_focus
        assert view.lines.sought == ""
        assert not view.store.warnings_only  # the w went into the find line


async def test_matches_are_highlighted() -> None:
    view = w1_view()
    async with looking(view) as look:
        view.reveal(34)
        await look.press("slash", *"not supported with spec")
        pieces = [text for row in look.cells() for text, style in row if "not supported with spec" in text]
        assert "not supported with spec" in pieces


async def test_warnings_only_keeps_the_place() -> None:
    view = w1_view()
    async with looking(view) as look:
        view.reveal(34)
        await look.press("w")
        assert "12 of 517 lines  warnings only, less 1 harmless" in look.rows()[-1]
        assert "INFO" not in "".join(look.rows()[1:-1])
        await look.press("w")
        assert "▲›" in look.row_with("CUDAGraphMode.FULL_AND_PIECEWISE")


async def test_access_lines_and_prefixes_come_by_key() -> None:
    view = LogView()
    view.extend(1, ['(APIServer pid=7) INFO:     1.1.1.1:1 - "GET /metrics HTTP/1.1" 200 OK', w1_lines()[33]])
    async with looking(view) as look:
        assert "/metrics" not in "".join(look.rows())
        await look.press("A")
        assert "/metrics" in look.rows()[1]
        assert "pid=7" not in look.rows()[1]
        await look.press("p")
        assert "(APIServer pid=7) INFO:" in look.rows()[1]
        assert "(EngineCore pid=1095) WARNING 11-30 18:17:11 [compilation.py:1405]" in look.rows()[2]


async def test_long_lines_scroll_sideways_with_the_mark_in_place() -> None:
    view = LogView()
    view.extend(1, [w1_lines()[33]])
    view.mark([Finding("x", "costs speed", 1, "t", "m")])
    async with looking(view) as look:
        await look.press(*["shift+right"] * 6)
        assert look.rows()[1].startswith("│▲ ")
        assert look.rows()[1].rstrip("│ ").endswith("setting cudagraph_mode=PIECEWISE")
        await look.press(*["shift+left"] * 6)
        assert "18:17:11 WARN" in look.rows()[1]


async def test_wide_characters_keep_the_columns() -> None:
    view = LogView()
    view.extend(1, ["漢字" * 60, "x" * 200])
    async with looking(view) as look:
        await look.press("shift+right")
        assert all(row.endswith("│") for row in look.rows()[1:3])


async def test_progress_bar_stands_below_the_last_line() -> None:
    view = w1_view()
    async with looking(view) as look:
        view.show_partial("Capturing CUDA graphs: 45% |##  | [red]\x1b[2K")
        await look.press()
        assert "Capturing CUDA graphs: 45% |##  | [red]�[2K" in look.rows()[-2]
        view.show_partial("")
        await look.press()
        assert "warnings.warn" in look.rows()[-2]


async def test_foreign_text_is_shown_as_it_is() -> None:
    view = LogView()
    view.extend(1, FOREIGN)
    async with looking(view) as look:
        assert [row.strip("│ ") for row in look.rows()[1:6]] == [
            "[/x] y", "[red]no[/red]", "[EngineCore] in", "�[31mESC�[0m �bell", "[/]",
        ]  # fmt: skip
        await look.press("slash", *"[/x]")
        assert "/[/x]  1 of 1 found" in look.rows()[-1]
        assert "\x1b" not in "".join(look.rows())


@pytest.mark.parametrize("word", ["cat", "ls", "vim", "exit"])
async def test_typing_a_command_does_nothing(word: str) -> None:
    view = w1_view()
    async with looking(view) as look:
        before = look.rows()
        await look.press(*word)
        assert look.told() == []
        assert look.rows() == before


async def test_ten_thousand_lines_at_once_are_one_repaint() -> None:
    view = LogView()
    async with looking(view) as look:
        drawn: list[int] = []
        paint = view.lines.render_line

        def counted(y: int) -> object:
            drawn.append(y)
            return paint(y)

        view.lines.render_line = counted  # type: ignore[method-assign, assignment]
        for first in range(1, CAPACITY + 1, 100):
            view.extend(first, [f"INFO 11-30 18:17:11 [a.py:1] line {n}" for n in range(first, first + 100)])
        await look.press()
        assert "line 10000" in look.rows()[-2]
        assert len(drawn) <= 3 * view.lines.size.height


async def test_view_stays_where_it_is_when_old_lines_fall_off() -> None:
    view = LogView()
    view.extend(1, [f"line {n}." for n in range(1, CAPACITY + 1)])
    async with looking(view) as look:
        view.reveal(5_000)
        await look.press()
        before = look.rows()[1:-1]
        view.extend(CAPACITY + 1, ["more"] * 50)
        await look.press()
        assert [row[:30] for row in look.rows()[1:-1]] == [row[:30] for row in before]


async def test_selected_text_can_be_copied() -> None:
    view = w1_view()
    async with looking(view) as look:
        view.reveal(34)
        await look.press()
        look.pilot.app.screen.selections = {view.lines: Selection(Offset(15, 34), Offset(13, 35))}
        await look.press("ctrl+c")
        copied = look.pilot.app.clipboard
        assert copied.startswith("CUDAGraphMode.FULL_AND_PIECEWISE is not supported")
        assert copied.endswith("setting cudagraph_mode=PIECEWISE\n18:17:11 INFO")
        assert view.copy_text() == copied


async def test_dragging_selects_by_line_number() -> None:
    view = w1_view()
    async with looking(view) as look:
        view.reveal(34)
        await look.press()
        y = next(i for i, row in enumerate(look.rows()) if "CUDAGraphMode.FULL_AND" in row) - 1
        await look.pilot.mouse_down(view.lines, offset=(17, y))
        await look.pilot.hover(view.lines, offset=(30, y))
        await look.pilot.mouse_up(view.lines, offset=(30, y))
        await look.press()
        assert view.copy_text().startswith("CUDAGraphMode")
        assert len(view.copy_text()) <= 14


async def test_without_selection_the_lines_on_screen_are_copied() -> None:
    view = w1_view()
    async with looking(view) as look:
        await look.press("g")
        text = view.copy_text().splitlines()
        assert len(text) == view.lines.size.height
        assert text[11].startswith("18:16:20 WARN  Async scheduling not supported")


async def test_clear_starts_another_log() -> None:
    view = w1_view()
    async with looking(view) as look:
        view.reveal(34)
        view.clear()
        view.extend(1, ["another run"])
        await look.press()
        assert look.rows()[1].strip("│ ") == "another run"
        assert "follow ▾  1 lines" in look.rows()[-1]


async def test_the_whole_line_that_costs_speed_stands_on_the_warning_background() -> None:
    view = w1_view()
    async with looking(view) as look:
        view.reveal(w1_finding().line)
        view.lines.cursor = None
        await look.pilot.pause()
        strips = [view.lines.render_line(y) for y in range(view.lines.size.height)]
        (costly,) = [strip for strip in strips if "CUDAGraphMode" in strip.text]
        other = next(strip for strip in strips if "Profiling CUDA graph" in strip.text)
        costs = {part.style.bgcolor for part in costly if part.style and part.text.strip()}
        assert len(costs) == 1
        assert not costs & {part.style.bgcolor for part in other if part.style}

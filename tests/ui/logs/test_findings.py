"""The findings pane on W1's boot log."""

from __future__ import annotations

import pytest

from sparktui.schema.live import Finding
from sparktui.ui.widgets.findings import (
    NOTHING,
    FindingsPane,
    explanation,
    finding_row,
    finding_text,
    heading,
    shortened,
    sorted_findings,
)
from tests.ui.logs.looking import FOREIGN, looking, w1_finding, w1_findings


def made(line: int, severity: str = "note", text: str = "text", meaning: str = "meaning") -> Finding:
    return Finding(f"r{line}", severity, line, text, meaning)  # type: ignore[arg-type]


def filled() -> FindingsPane:
    pane = FindingsPane()
    pane.show(w1_findings(), ())
    return pane


def test_the_gravest_first_then_by_line() -> None:
    findings = [made(9), made(3), made(5, "costs memory"), made(7, "boot fails"), made(1, "harmless")]
    graphs = Finding("cg-x", "costs memory", 99, "text", "meaning")
    assert [f.line for f in sorted_findings(findings, ())] == [7, 5, 3, 9]
    assert [f.line for f in sorted_findings(findings, {"r7", "r3"})] == [5, 9]
    assert [f.line for f in sorted_findings([*findings, graphs], ())] == [7, 99, 5, 3, 9]


def test_heading_counts_by_mark() -> None:
    assert heading([made(1, "costs speed"), made(2, "costs memory"), made(3)], 0) == "Findings  2 ▲ 1 ·"
    assert heading([made(1, "boot fails")], 2) == "Findings  1 ✖  (2 dismissed)"
    assert heading([], 0) == "Findings"


@pytest.mark.parametrize("width", [0, 1, 5, 8, 20, 41, 60, 300])
def test_row_fits_and_keeps_head_and_tail(width: int) -> None:
    row = finding_row(w1_finding(), width)
    assert len(row) <= width
    if width >= 60:
        assert row.startswith("▲ 34 costs speed  CUDAGraph")
        assert row.endswith("cudagraph_mode=PIECEWISE")


def test_shortened_keeps_both_ends() -> None:
    assert shortened("abcdefghijklmnop", 10) == "abc…klmnop"
    assert shortened("short", 10) == "short"


@pytest.mark.parametrize("width", [20, 40, 76])
def test_record_holds_everything_and_fits(width: int) -> None:
    finding = w1_finding()
    lines = finding_text(finding, width)
    assert max(map(len, lines)) <= width
    joined = "".join("".join(lines).split())
    for part in (finding.text, finding.meaning, finding.cost, finding.remedy, finding.flag, finding.id):
        assert part
        assert "".join(part.split()) in joined
    assert lines[0].startswith("▲ costs speed, log")


def test_record_leaves_out_what_is_unknown() -> None:
    lines = finding_text(made(4), 60)
    assert lines == ["· note, log line 4", "", "text", "", "Meaning", "meaning", "", "Rule", "r4"]


def test_record_and_explanation_hold_no_control_characters() -> None:
    evil = Finding("x", "note", 1, "\x1b[31m[/x]", "\x1b]0;t\x07", "\x9b1m", "[red]", "--f")
    assert all(line.isprintable() for line in [*finding_text(evil, 40), *explanation(evil, 40)])


async def test_shows_findings_and_explains_the_selected() -> None:
    async with looking(filled()) as look:
        rows = look.rows()
        assert "Findings  2 ▲ 5 ·" in rows[0]
        assert rows[1].startswith("│▲ 34 costs speed  CUDAGraphMode")
        assert rows[1].rstrip("│ ").endswith("cudagraph_mode=PIECEWISE")
        assert rows[2].startswith("│▲ 12 costs speed  Async scheduling")
        assert "can capture only one-token" in " ".join(row.strip("│ ") for row in rows)
        assert "harmless" not in "".join(rows)


@pytest.mark.parametrize("key", ["right_square_bracket", "down"])
async def test_keys_select_and_tell(key: str) -> None:
    pane = filled()
    async with looking(pane, (80, 12)) as look:
        await look.press(key)
        (told,) = look.told()
        assert isinstance(told, FindingsPane.Selected)
        assert pane.selected == told.finding
        assert told.finding.line == 12
        assert "the GPU waits for the scheduler" in " ".join(row.strip("│ ") for row in look.rows())


@pytest.mark.parametrize("key", ["left_square_bracket", "up"])
async def test_keys_go_back_and_stop_at_the_end(key: str) -> None:
    pane = filled()
    async with looking(pane) as look:
        pane.select(w1_findings()[1])
        assert look.told() == []
        await look.press(key)
        assert look.told() == [FindingsPane.Selected(w1_finding())]
        await look.press(key)
        assert look.told() == []


async def test_enter_opens_and_d_dismisses() -> None:
    pane = filled()
    async with looking(pane) as look:
        pane.select(w1_finding())
        await look.press("enter")
        assert look.told() == [FindingsPane.Opened(w1_finding())]
        await look.press("d")
        assert look.told() == [FindingsPane.Dismissed(w1_finding())]
        assert "34 costs speed" in "".join(look.rows())  # its owner hides it
        pane.show(w1_findings(), {w1_finding().id})
        await look.press()
        assert "34 costs speed" not in "".join(look.rows())
        assert "Findings  1 ▲ 5 ·  (1 dismissed)" in look.rows()[0]
        assert pane.selected is not None


async def test_selection_stays_on_its_finding() -> None:
    pane = filled()
    async with looking(pane) as look:
        pane.select(w1_finding())
        pane.show([*w1_findings(), made(600, "boot fails", "it died")], ())
        await look.press()
        assert pane.selected == w1_finding()
        assert look.rows()[1].startswith("│✖ 600 boot fails   it died")


async def test_small_pane_scrolls_the_list() -> None:
    pane = filled()
    async with looking(pane, (60, 6)) as look:
        last = sorted_findings(w1_findings(), ())[-1]
        await look.press(*["down"] * 10)
        assert pane.selected == last
        assert f"· {last.line} note" in "".join(look.rows())
        assert "· 15 note" not in "".join(look.rows())


async def test_click_selects() -> None:
    pane = filled()
    async with looking(pane) as look:
        await look.pilot.click(pane, offset=(5, 2))
        await look.press()
        assert [m.finding.line for m in look.told() if isinstance(m, FindingsPane.Selected)] == [12]


async def test_nothing_found_is_said() -> None:
    pane = FindingsPane()
    pane.show([made(1, "harmless")], ())
    async with looking(pane) as look:
        assert NOTHING in look.rows()[1]
        await look.press("enter", "d", "down", "up")
        assert look.told() == []


async def test_foreign_text_is_shown_as_it_is() -> None:
    pane = FindingsPane()
    pane.show([made(n, "note", text, f"means {text}") for n, text in enumerate(FOREIGN, 1)], ())
    async with looking(pane) as look:
        screen = "\n".join(look.rows())
        assert "· 1 note  [/x] y" in screen
        assert "means [/x] y" in screen
        assert "[red]no[/red]" in screen
        assert "�[31mESC�[0m �bell" in screen


async def test_same_findings_draw_nothing_anew() -> None:
    pane = filled()
    async with looking(pane):
        drawn = pane.render_line(0)
        pane.show(w1_findings(), ())
        assert pane.render_line(0) is drawn
        pane.select(w1_findings()[1])
        assert pane.render_line(0) is not drawn

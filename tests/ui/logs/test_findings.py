"""The findings pane on W1's boot log."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from sparktui.schema.live import Expectation, Finding
from sparktui.ui.widgets.finding_text import (
    because,
    cost,
    expected_rows,
    explanation,
    finding_row,
    heading,
    plain_record,
    record_text,
    shortened,
    sorted_findings,
)
from sparktui.ui.widgets.findings import NOTHING_FOUND, FindingsPane
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


def test_what_follows_from_another_comes_after_it_and_no_single_line_last() -> None:
    follows = Finding("x", "costs speed", 2, "text", "meaning", cause="r8")
    findings = [made(0, "costs speed"), follows, made(8, "costs speed")]
    assert [f.line for f in sorted_findings(findings)] == [8, 0, 2]


def test_heading_counts_by_mark() -> None:
    assert heading([made(1, "costs speed"), made(2, "costs memory"), made(3)], 0) == "Findings  2 ▲ 1 ·"
    assert heading([made(1, "boot fails")], 2) == "Findings  1 ✖  (2 dismissed: u)"
    assert heading([], 0) == "Findings"


@pytest.mark.parametrize("width", [0, 1, 5, 8, 20, 41, 60, 300])
def test_row_fits_and_keeps_head_and_tail(width: int) -> None:
    row = finding_row(w1_finding(), width)
    assert len(row) <= width
    if width >= 60:
        assert row.startswith(" ▲ 34 costs speed  CUDAGraph")
        assert row.endswith("cudagraph_mode=PIECEWISE")


def test_row_tells_selection_count_cause_and_a_missing_line_in_plain_text() -> None:
    finding = Finding("x", "costs speed", 0, "text", "meaning", count=12)
    assert finding_row(finding, 60) == " ▲ — costs speed  ×12 text"
    assert finding_row(finding, 60, selected=True, line_width=3).startswith("▸▲   — costs speed")
    row = finding_row(made(4), 60, selected=True, reason="because of line 34")
    assert row == "▸· 4 note  because of line 34: text"


def test_cause_is_named_by_its_line_or_else_its_text() -> None:
    one, two = made(34), Finding("two", "note", 40, "text", "meaning", cause="r34")
    assert because(two, [one, two]) == "because of line 34"
    assert because(two, [two]) == ""
    unplaced = Finding("r34", "note", 0, "asked for and not taken", "meaning")
    assert because(two, [unplaced]) == "because of: asked for and not taken"
    assert "Because of line 34." in explanation(two, 60, because(two, [one]))


def test_the_costs_source_stands_behind_the_cost() -> None:
    finding = Finding("x", "costs speed", 1, "text", "meaning", "About 5 %.", source="one report")
    assert explanation(finding, 60) == ["meaning", "Costs: About 5 % (one report)."]
    assert cost(made(1)) == ""


def test_expected_lines_are_counted_and_the_missing_one_named() -> None:
    met, missing, open_ = Expectation("a", True, 3), Expectation("b [/x]", False), Expectation("c")
    assert expected_rows([], 60) == []
    assert expected_rows([met, met], 60) == [("✔ 2 of 2 expected lines are there", True)]
    assert expected_rows([met, open_], 60) == [("· expected 1 of 2 so far", None)]
    told = ('✖ expected and not in the log: "b [/x]"', False)
    assert expected_rows([missing, met], 60) == [told, ("✔ 1 of 2 expected lines are there", True)]
    assert expected_rows([missing], 60) == [told]
    assert all(len(text) <= 24 for text, _ in expected_rows([missing], 24))
    assert expected_rows([missing] * 5, 60)[-1] == ("✖ and 2 more", False)


def test_shortened_keeps_both_ends() -> None:
    assert shortened("abcdefghijklmnop", 10) == "ab…jklmnop"
    assert shortened("short", 10) == "short"


def test_record_holds_everything() -> None:
    finding = w1_finding()
    lines = record_text(finding, ["(EngineCore) [/x] the line as written"], "because of line 12", "0.24.0")
    assert lines[:3] == ["▲ costs speed, log line 34", "", "(EngineCore) [/x] the line as written"]
    told = dict(itertools.pairwise(lines))
    for label, text in (
        ("Meaning", finding.meaning),
        ("Follows", "because of line 12"),
        ("Costs", finding.cost),
        ("Source", finding.source),
        ("Do", finding.remedy),
        ("Flag", finding.flag),
        ("Rule", finding.id),
        ("vLLM", "0.24.0"),
    ):
        assert told[label] == f"  {text}"


def test_record_leaves_out_what_is_unknown() -> None:
    lines = record_text(made(4))
    assert lines == ["· note, log line 4", "", "text", "", "Meaning", "  meaning", "", "Rule", "  r4"]
    assert record_text(made(0))[0] == "· note, no single line says it"
    assert record_text(made(5, "harmless"))[0] == "harmless, log line 5"


def test_record_says_what_is_no_longer_kept_and_how_often_it_was_said() -> None:
    finding = Finding("x", "boot fails", 7, "text", "meaning", lines=5, count=3)
    lines = record_text(finding, ["one", "two"])
    assert lines[0] == "✖ boot fails, log lines 7 to 11"
    assert lines[1] == "said 3 times, with other names or numbers"
    assert lines[3:6] == ["one", "two", "… 3 more lines in server.log"]


def test_a_plain_lines_record_says_that_no_rule_knows_it() -> None:
    assert plain_record(7, ["a", "b"]) == ["a", "b", "", "No rule says anything about lines 7 to 8."]
    assert plain_record(7, ["a"])[-1] == "No rule says anything about line 7."


def test_record_and_explanation_hold_no_control_characters() -> None:
    evil = Finding("x", "note", 1, "\x1b[31m[/x]", "\x1b]0;t\x07", "\x9b1m", "[red]", "--f", "\x1b[s")
    expected = [text for text, _ in expected_rows([Expectation("\x1b[31m", False)], 60)]
    told = [*record_text(evil, ["\x1b[2J"], version="\x07"), *explanation(evil, 40), *expected]
    assert all(line.isprintable() for line in told)


async def test_shows_findings_and_explains_the_selected() -> None:
    async with looking(filled()) as look:
        rows = look.rows()
        assert "Findings  2 ▲ 5 ·" in rows[0]
        assert rows[1].startswith("│▸▲ 34 costs speed  CUDAGraphMode")
        assert rows[1].rstrip("│ ").endswith("cudagraph_mode=PIECEWISE")
        assert rows[2].startswith("│ ▲ 12 costs speed  Async sched")
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
        assert "Findings  1 ▲ 5 ·  (1 dismissed: u)" in look.rows()[0]
        assert pane.selected is not None


async def test_selection_stays_on_its_finding() -> None:
    pane = filled()
    async with looking(pane) as look:
        pane.select(w1_finding())
        pane.show([*w1_findings(), made(600, "boot fails", "it died")], ())
        await look.press()
        assert pane.selected == w1_finding()
        assert look.rows()[1].startswith("│ ✖ 600 boot fails   it died")
        assert look.rows()[2].startswith("│▸▲  34 costs speed")
        counted = dataclasses.replace(w1_finding(), count=4)
        pane.show([counted], ())
        assert pane.selected == counted


async def test_the_most_expensive_is_selected_until_the_user_chooses() -> None:
    pane = FindingsPane()
    async with looking(pane) as look:
        pane.show([made(3)])
        pane.show([made(3), made(5, "costs speed")])
        assert pane.selected == made(5, "costs speed")
        await look.press("down")
        pane.show([made(3), made(5, "costs speed"), made(9, "boot fails")])
        assert pane.selected == made(3)
        pane.show([])  # another boot
        pane.show([made(2)])
        pane.show([made(2), made(7, "costs memory")])
        assert pane.selected == made(7, "costs memory")


async def test_expected_lines_stand_above_and_clicks_still_hit() -> None:
    pane = FindingsPane()
    pane.show(w1_findings(), (), [Expectation("[/x] a", False), Expectation("b", True, 4)])
    async with looking(pane) as look:
        assert look.rows()[1].startswith('│✖ expected and not in the log: "[/x] a"')
        assert look.rows()[2].startswith("│✔ 1 of 2 expected lines are there")
        assert look.rows()[3].startswith("│▸▲ 34")
        await look.pilot.click(pane, offset=(5, 4))
        assert pane.selected is not None
        assert pane.selected.line == 12


async def test_u_asks_for_the_dismissed() -> None:
    pane = filled()
    async with looking(pane) as look:
        await look.press("u")
        assert look.told() == [FindingsPane.Restored()]


async def test_what_follows_says_so_in_a_wide_list() -> None:
    pane = FindingsPane()
    pane.show([w1_finding(), Finding("f", "note", 40, "text", "meaning", cause="cg-spec-piecewise", count=3)])
    async with looking(pane) as look:
        assert "· 40 note         ×3 because of line 34: text" in look.rows()[2]


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
        assert NOTHING_FOUND in look.rows()[1]
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

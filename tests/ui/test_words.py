"""What the header, the A/B panel, the tiles and the boot facts say, as strings."""

from __future__ import annotations

import dataclasses

import pytest

from sparktui.schema.codec import to_plain
from sparktui.schema.live import BootPhase, Event, Expectation, Finding, GraphSteps
from sparktui.schema.records import ArmReport, Report
from sparktui.ui.boot_facts import NO_FACTS, boot_sections, fact_text
from sparktui.ui.format import graph_share
from sparktui.ui.help import help_sections
from sparktui.ui.model import RunModel
from sparktui.ui.screens.live_keys import LIVE_KEYS
from sparktui.ui.widgets.ab_panel import arm_lines, report_lines, table_lines
from sparktui.ui.widgets.header import header_text, warning_text
from tests.ui.canned import EXPECTED, OFF_CELL, ON_CELL, PHASES, T0, report, snapshot


def finding(id: str, severity: str = "costs speed", line: int = 7, **more: str) -> Finding:
    return Finding(id, severity, line, f"{id} [/x]", "meaning", **more)  # type: ignore[arg-type]


def arm(name: str, *findings: Finding) -> ArmReport:
    return ArmReport(name, name != "off", ("vllm",), "0.27.1", 70.0, findings, {}, ())


def model(*findings: Finding, **changes: object) -> RunModel:
    made = RunModel(title="m")
    made.take_event(Event(1, T0, "server", "info", "", {"started": "on"}))
    for i, each in enumerate(findings, 2):
        made.take_event(Event(i, T0, "finding", "warning", each.text, to_plain(each)))
    made.take_snapshot(snapshot(1, **changes))
    return made


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (None, "graphs ?"),
        (GraphSteps(beyond=40), "graphs ?"),
        (GraphSteps(full=96, none=4), "graphs 96 % FULL"),
        (GraphSteps(full=96, piecewise=4), "graphs 96 % FULL, 4 % PIECEWISE"),
        (GraphSteps(full=2, piecewise=98, beyond=900), "graphs 98 % PIECEWISE"),
        (GraphSteps(none=3, piecewise=1), "graphs 75 % none, 25 % PIECEWISE"),
        (GraphSteps(full=1999, none=1), "graphs 99 % FULL"),
        (GraphSteps(full=1999, piecewise=1), "graphs 99 % FULL, <1 % PIECEWISE"),
        (GraphSteps(full=5), "graphs 100 % FULL"),
    ],
)
def test_graph_share(steps: GraphSteps | None, text: str) -> None:
    assert graph_share(steps) == text


def test_header_counts_warnings_and_names_the_gravest() -> None:
    assert warning_text(model(finding("a", "note"), finding("b", "harmless"))) == ""
    assert warning_text(model(finding("a"), finding("cg-x"))) == "2 ▲ CUDA graphs downgraded"
    assert warning_text(model(finding("cg-x"), finding("b", "wrong results possible"))) == (
        "2 ▲ wrong results possible"
    )
    assert warning_text(model(finding("a", "boot fails"), finding("b"))) == "2 ✖ boot fails"


def test_a_missing_expected_line_is_a_warning_in_the_header() -> None:
    assert warning_text(model(expected=EXPECTED)) == "1 ▲ expected line missing"
    assert warning_text(model(finding("a"), expected=EXPECTED)) == "2 ▲ costs speed"
    assert warning_text(model(expected=EXPECTED[:1])) == ""


def test_a_dismissed_finding_leaves_the_header() -> None:
    known = model(finding("a"), finding("b"))
    known.dismissed.add("a")
    assert warning_text(known) == "1 ▲ costs speed"


def test_header_says_at_once_that_the_host_starts() -> None:
    assert "STARTING the host" in header_text(RunModel(title="m"), None).plain


def test_findings_stand_under_the_arm_that_has_them() -> None:
    both = finding("both", line=12)
    a = arm("off", both, finding("a-only", "costs memory", 3), finding("quiet", "note"))
    costly = finding("b-only", line=34, cost="Half.", source="several reports")
    b = arm(
        "on", finding("b-graver", "wrong results possible", 0), costly, dataclasses.replace(both, line=14)
    )
    assert [line.plain for line in arm_lines((a, b))] == [
        "▲ only in on, wrong results possible: b-graver [/x]",
        "▲ only in on, line 34, costs speed: b-only [/x]. Costs: Half (several reports).",
        "▲ only in off, line 3, costs memory: a-only [/x]",
        "▲ in off, line 12, and on, line 14, costs speed: both [/x]",
    ]


def test_a_report_of_one_arm_names_what_it_has() -> None:
    assert [line.plain for line in arm_lines((arm("off", finding("a")),))] == [
        "▲ in off, line 7, costs speed: a [/x]"
    ]


def test_a_rule_that_fired_often_stands_there_once() -> None:
    lines = arm_lines((arm("off"), arm("on", finding("a", line=9), finding("a", line=4))))
    assert [line.plain for line in lines] == ["▲ only in on, line 4, costs speed: a [/x]"]


def test_the_verdict_comes_first_then_table_findings_and_why_without_saying_twice() -> None:
    lines = [line.plain for line in report_lines(report())]
    assert "Turn speculation OFF" in lines[0]
    assert lines[1].startswith("arm")
    assert lines[4].startswith("▲ only in on, line 34, costs speed: CUDAGraphMode.FULL_AND_PIECEWISE")
    assert sum("cudagraph_mode=PIECEWISE" in line for line in lines) == 1
    assert any(line.startswith("· c=1: a step takes") for line in lines)
    assert any("cudagraph_mode: FULL in off, PIECEWISE in on." in line for line in lines)


def test_flags_of_a_window_have_a_row_of_their_own() -> None:
    flagged = dataclasses.replace(OFF_CELL, flags=("client-limited", "not steady"))
    lines = [line.plain for line in table_lines((flagged, ON_CELL))]
    assert lines[2] == "  ▲ client-limited, not steady"
    assert max(map(len, lines)) <= 74  # 80 columns less border, padding and scroll bar
    assert len(lines) == 4


def test_long_names_of_arms_are_told_apart() -> None:
    cells = [dataclasses.replace(OFF_CELL, variant=name) for name in ("horizontal-a", "horizontal-b")]
    lines = [line.plain for line in table_lines(cells)]
    assert lines[1].startswith("horizontal-a ")
    assert lines[2].startswith("horizontal-b ")
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (True, "on"),
        (False, "off"),
        (656128, "656,128"),
        (1.19, "1.19"),
        (["A", "B"], "A, B"),
        ([], "—"),
        ({"max_num_seqs": 8192, "spec": False}, "max_num_seqs 8,192, spec off"),
        ("[/x]\x1b[31m", "[/x][31m"),
    ],
)
def test_facts_read_as_words(value: object, text: str) -> None:
    assert fact_text(value) == text


def test_boot_facts_are_of_every_variant_that_was_ready() -> None:
    known = model()
    assert boot_sections(known)[0].rows == (("", NO_FACTS),)
    quiet = BootPhase("weights", 17.5, 41.2, quiet_s=38.0)
    for name, facts in (("off", {"cudagraph_mode": "FULL"}), ("on", {"kv_cache_tokens": 656128})):
        known.take_event(Event(9, T0, "server", "info", "", {
            "variant": name, "boot_s": 71.6, "facts": facts, "phases": to_plain([*PHASES[:1], quiet]),
            "expected": to_plain(EXPECTED),
        }))  # fmt: skip
    told = {section.title: list(section.rows) for section in boot_sections(known)}
    assert next(iter(told)) == "on, ready after 71 s"  # it runs now
    assert told["on, ready after 71 s"] == [("kv cache tokens", "656,128")]
    assert told["off, ready after 71 s"] == [("cudagraph mode", "FULL")]
    assert told["on: expected in the log"] == [
        ("✔ line 26", "Using AttentionBackendEnum.FLASHINFER backend"),
        ("✖ not there", "Using 'MARLIN' NvFp4 MoE backend [/x]"),
    ]
    assert told["on: phases"] == [("launch", "5.1 s"), ("weights", "41.2 s, longest silence 38 s")]


def test_boot_facts_come_from_the_report_too_and_another_versions_data_hurts_nobody() -> None:
    known = model()
    made: Report = report()
    known.report = made
    known.boots["on"] = {"variant": "on", "facts": "?", "phases": [{"new": 1}], "expected": 3}
    told = {section.title: list(section.rows) for section in boot_sections(known)}
    assert told["on"] == [("", "the log states none")]
    assert told["off, ready after 70 s"] == [("cudagraph mode", "FULL")]
    assert len(told) == 2


def test_expected_lines_that_are_open_are_no_fault() -> None:
    known = model()
    known.boots["on"] = {"facts": {}, "expected": to_plain([Expectation("a")])}
    assert ("· —", "a") in boot_sections(known)[1].rows


def test_help_names_every_key_of_the_live_screen() -> None:
    named = " ".join(label for label, _ in help_sections()[0].rows).replace("…", "2 3 4 5").split()
    written = {"slash": "/", "left_square_bracket": "[", "right_square_bracket": "]", "escape": "1"}
    for binding in LIVE_KEYS:
        key = binding.key.partition(",")[0]
        assert written.get(key, key) in named, binding.key

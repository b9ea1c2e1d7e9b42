"""The report as JSON's shape, as plain lines, as Markdown that foreign text can't break."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sparktui.compare.report import build, decided, lines, markdown
from sparktui.schema.records import ArmReport, Batch, Report
from tests.compare.made import arm, cell, finding

NASTY = (
    "`x` | y ```\n```\r\n# head\n<script>alert(1)</script>\x1b[31m\u202e*b* _i_ [l](javascript:1) \\| end\\"
)


def report(*arms: ArmReport, **values: Any) -> Report:
    fields: dict[str, Any] = {"profile": "p", "outcome": "done"} | values
    return build(created=5.0, run_id="r1", workload="chat", arms=arms, **fields)


def off(*rates: float, **values: Any) -> ArmReport:
    return arm("off", cell(*rates or (100, 100, 100), **values))


def on(*rates: float, **values: Any) -> ArmReport:
    return arm("on", cell(*rates or (145, 145, 145), arm=1, variant="on", **values), speculating=True)


def test_two_arms_are_compared_at_every_load() -> None:
    a = arm("off", *(cell(10, 10, 10, concurrency=c) for c in (8, 1)))
    b = arm("on", *(cell(20, 20, 20, concurrency=c) for c in (1, 8, 32)), speculating=True)
    made = report(a, b)
    assert [(v.load, v.headline, v.call) for v in made.verdicts] == [
        (1, True, "faster"),
        (1, False, "faster"),
        (8, True, "faster"),
        (8, False, "faster"),
        (32, True, "could not measure"),
        (32, False, "could not measure"),
    ]
    assert made.arms == (a, b)
    assert (made.schema, made.profile, made.created, made.run_id, made.outcome) == (1, "p", 5.0, "r1", "done")


@pytest.mark.parametrize("arms", [(), (off(),), (off(), on(), on())], ids=["none", "one", "three"])
def test_other_than_two_arms_give_no_verdict_and_say_so(arms: tuple[ArmReport, ...]) -> None:
    made = report(*arms, outcome="cancelled")
    assert made.verdicts == ()
    assert not decided(made)
    assert lines(made)[0] == "No verdict: cancelled."
    assert "No verdict: cancelled." in markdown(made)


def test_a_failure_stands_in_the_why() -> None:
    made = report(off(), arm("on", speculating=True, failure="CUDA out of memory"))
    assert made.why[-1] == "on: CUDA out of memory"
    assert "  on: CUDA out of memory" in lines(made)
    assert not decided(made)


@pytest.mark.parametrize(
    ("arms", "expected"),
    [
        ((off(), on()), True),
        ((off(), on(101, 101, 101)), True),  # not settled is an answer
        ((off(), on(0, 0, 0)), False),
        ((off(), arm("on")), False),
        ((arm("off"), arm("on")), False),
    ],
    ids=["faster", "not settled", "no token", "B not measured", "nothing"],
)
def test_decided_is_a_ratio_for_every_headline(arms: tuple[ArmReport, ...], expected: bool) -> None:
    assert decided(report(*arms)) is expected


def test_one_load_without_a_ratio_is_not_decided() -> None:
    a = arm("off", *(cell(10, 10, 10, concurrency=c) for c in (1, 8)))
    assert not decided(report(a, on()))


def test_lines_hold_verdict_table_and_why() -> None:
    a = off(decode_tok_s=100.0, output_tok_s=98.25, ttft_ms={"p50": 210.4}, requests=120, step_ms=10.0)
    b = on(
        decode_tok_s=145.0,
        acceptance_rate=0.537,
        power_w=91.6,
        requests=90,
        errors=2,
        flags=("not steady", "client-limited"),
        joules_per_token=1.0,
    )
    out = lines(report(a, b, after="off serves now"))
    assert out[0].startswith("Keep speculation ON: 1.45x")
    head, row_a, row_b = out[2:5]
    assert head.split() == [
        "arm",
        "c",
        "decode",
        "tok/s",
        "output",
        "tok/s",
        "TTFT",
        "ms",
        "accepted",
        "step",
        "ms",
        "W",
        "requests",
        "notes",
    ]
    assert row_a.split() == ["off", "1", "100.0", "98.2", "210", "—", "10.0", "—", "120"]
    assert row_b.split() == [
        "on",
        "1",
        "145.0",
        "—",
        "—",
        "53.7%",
        "—",
        "92",
        "90",
        "(2",
        "failed)",
        "not",
        "steady,",
        "client-limited",
    ]
    assert out[-1] == "off serves now"


def test_what_is_not_known_is_a_dash_and_never_zero() -> None:
    row = lines(report(off(), on()))[3]
    assert row.split()[2:8] == ["—"] * 6


def test_the_other_figure_speaks_up_when_it_disagrees() -> None:
    a = off(concurrency=8, batches=(Batch(5.0, 1000, 1000, 10.0),) * 3)
    b = on(concurrency=8, batches=(Batch(5.0, 1500, 1500, 30.0),) * 3)
    out = lines(report(a, b))
    assert out[0].startswith("Keep speculation ON: 1.50x")
    assert out[1].startswith("  The other figure disagrees: Turn speculation OFF: 2.00x")
    assert not any("disagrees" in line for line in lines(report(off(), on())))


def nasty() -> Report:
    b = arm(
        NASTY,
        cell(
            145, 145, 145, flags=(NASTY,), variant=NASTY, acceptance_rate=0.5, acceptance_by_position=(0.5,)
        ),
        argv=("vllm", NASTY, '{"a": 1}'),
        vllm_version=NASTY,
        failure=NASTY,
        findings=(finding("cg-x", "costs speed", 9, NASTY, NASTY),),
        facts={"cudagraph_mode": NASTY},
    )
    a = arm("off", cell(100, 100, 100), facts={"cudagraph_mode": "FULL"})
    return report(a, b, profile=NASTY, outcome=NASTY, after=NASTY)


def outside_code(text: str) -> list[str]:
    """Lines outside fenced blocks; fails when a fence is left open."""
    kept, inside = [], False
    for line in text.split("\n"):
        if line.startswith("```"):
            assert line == "```"
            inside = not inside
        elif not inside:
            kept.append(line)
    assert not inside
    return kept


def test_foreign_text_makes_no_line_of_its_own() -> None:
    text = markdown(nasty())
    assert all(char.isprintable() or char == "\n" for char in text)
    starts = ("# sparktui A/B: ", "## Why", "## off", "## ", "- ", "| ", "|---", "vLLM ")
    assert [line for line in outside_code(text) if line and not line.startswith(starts)] == []
    assert sum(line.startswith("#") for line in outside_code(text)) == 4  # title, why, one an arm
    assert text.count("\n```") == 4


def test_foreign_text_adds_no_column() -> None:
    rows = [line for line in outside_code(markdown(nasty())) if line.startswith("|")]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {11}


def test_foreign_text_adds_no_html_and_no_code() -> None:
    for line in outside_code(markdown(nasty())):
        prose = re.sub(r"`[^`]*`", "", line) if line.startswith("- line ") else line
        assert not re.search(r"(?<!\\)<", prose), line
        assert not re.search(r"(?<!\\)`", prose), line


def test_a_finding_is_one_code_span() -> None:
    (line,) = (line for line in markdown(nasty()).split("\n") if line.startswith("- line "))
    assert line.startswith("- line 9, costs speed: `'x' | y ''' ")
    assert line.count("`") == 2


def test_a_report_without_verdicts_takes_foreign_text_too() -> None:
    text = markdown(report(outcome=NASTY))
    (line,) = (line for line in text.split("\n") if line.startswith("No verdict: "))
    assert "\\<script\\>" in line
    assert "\\[l\\](javascript:1)" in line


def test_markdown_shows_what_the_lines_show() -> None:
    made = report(off(decode_tok_s=100.0), on(decode_tok_s=145.0, joules_per_token=1.0))
    text = markdown(made)
    assert text.startswith("# sparktui A/B: p\n")
    assert (
        "- **Keep speculation ON: 1.45x \\[1.37, 1.53\\] per stream at c=1, chat (1v1, provisional).**"
        in text
    )
    assert "| off | 1 | 100.0 | — | — | — | — | — | 0 |  |" in text
    assert "\n```\nvllm serve m\n```\n" in text

"""The stand-in against two write-ups: every published figure is a row with its source and tolerance."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from sparktui.sim import calibration
from sparktui.sim.calibration import CLIENTS, SEQUENCES
from sparktui.sim.claims import SET, Claim, Row, above, as_json, as_text, between, judge, point
from sparktui.sim.cli import main

CLAIMS = {f"{claim.source}: {claim.row}": claim for claim in calibration.claims()}


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return calibration.rows()


@pytest.mark.parametrize("name", CLAIMS)
def test_row(name: str) -> None:
    """theirs, tolerance and source are in sparktui/sim/calibration.py; ours is measured here."""
    row = judge(CLAIMS[name])
    assert row.within is not False, row


def test_every_published_figure_has_a_row() -> None:
    """By source, what the write-ups print; a figure that leaves the table must leave this list too."""
    published: dict[str, list[float | str]] = {
        "W2, derived": [49.6],
        "W1": [77.5, 41, 53.7, 40, 62.4, "27-34", 45.2, 32, 94, 2405, 3003],
        "W2": ["15-17", 23.5, 24.2, 67, 36, 16, 25, 23.9, 136.3, 2.75, 7.6, 16.6, 33.1, 68.9],
        "W2 under load": ["96-109", 121, 0.57, 2.15, 1.2, 6.6, 7.7, 9.1],
    }
    for source, values in published.items():
        name = source.removesuffix(" under load")
        shown = [c.theirs.text or c.theirs.low for c in CLAIMS.values() if c.source == name]
        assert [value for value in values if value not in shown] == []
    cells = [name for name in CLAIMS if "engine peak tok/s, max_num_seqs" in name]
    assert len(cells) == len(SEQUENCES) * len(CLIENTS) == 24
    warnings = [name for name in CLAIMS if name.startswith("W1") and "piecewise warnings" in name]
    assert len(warnings) == 4
    assert sum(claim.theirs.tolerance is not None for claim in CLAIMS.values()) >= 40


def test_only_what_was_published_of_a_row_itself_is_judged(table: list[Row]) -> None:
    unjudged = [row for row in table if row.within is None]
    waits = [row for row in unjudged if "TTFT" in row.row]
    assert [row.theirs for row in waits] == [1.2, 6.6, 7.7, 9.1]
    assert all(row.ours < 9 for row in waits)
    cells = [row for row in unjudged if row not in waits]
    assert len(cells) == 18
    assert all(row.theirs == "23.9-136.3" and "max_num_seqs" in row.row for row in cells)
    assert all(row.tolerance is None for row in unjudged)


def test_cells_of_the_grid_that_have_a_figure_are_held_to_it() -> None:
    held = {
        name.partition("max_num_seqs ")[2]: claim.theirs.low
        for name, claim in CLAIMS.items()
        if "engine peak tok/s, max_num_seqs" in name and claim.theirs.tolerance == 0.05
    }
    alone = {f"{seqs}, clients 1": 23.9 for seqs in SEQUENCES}
    assert held == alone | {"32, clients 64": 136.3, "4, clients 64": 49.6}


def test_flags_that_change_no_figure_were_taken() -> None:
    """Their rows would hold as well if the stand-in had dropped them."""
    boot = calibration.boot_log("W1", 0, "--mamba-ssu-algorithm", "horizontal")
    assert "Using FlashInfer Mamba SSU algorithm: horizontal" in boot
    assert "SSU algorithm" not in calibration.boot_log("W1", 0)
    assert "'async_scheduling': True" in calibration.boot_log("W1", 3, "--async-scheduling")
    assert "async_scheduling" not in calibration.boot_log("W1", 3)
    older = calibration.boot_log("W2", 3, "--no-async-scheduling")
    assert "Asynchronous scheduling is disabled." in older
    assert "Asynchronous scheduling is enabled." in calibration.boot_log("W2", 3)


def test_rows_of_what_the_model_file_states_say_so() -> None:
    stated = [name for name in CLAIMS if name.endswith(SET)]
    words = ("power", "utilisation", "SM clock", "largest SM clock", "prefix cache hits", "TTFT last")
    assert len(stated) == len(words)
    assert all(any(word in name for name in stated) for word in words)


def test_the_readme_counts_the_rows(table: list[Row]) -> None:
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text("utf-8").split())
    judged = sum(row.within is not None for row in table)
    assert f"prints {len(table)} figures, theirs beside ours; {judged} of them are judged" in readme


def test_the_grid_grows_in_both_directions() -> None:
    """More sequences or more clients never cost throughput; where neither limit binds they add to it."""
    grid = calibration.grid()
    for seqs in SEQUENCES:
        for fewer, more in pairwise(CLIENTS):
            bound = fewer >= seqs  # the rest would only wait
            assert grid[seqs, more] > grid[seqs, fewer] * (0.98 if bound else 1.2), (seqs, more)
    for clients in CLIENTS:
        for fewer, more in pairwise(SEQUENCES):
            bound = clients <= fewer
            assert grid[more, clients] > grid[fewer, clients] * (0.98 if bound else 1.2), (more, clients)


def test_ours_comes_from_the_model_and_not_from_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    real = calibration.truth("W1")
    slower = replace(real, off_step_ms=replace(real.off_step_ms, anchors=((1, 20.0),)))
    calibration.figures.cache_clear()
    monkeypatch.setattr(calibration, "truth", lambda source: slower)
    try:
        row = judge(CLAIMS["W1: off, tok/s"])
    finally:
        calibration.figures.cache_clear()
    assert row.ours == pytest.approx(50, rel=0.01)
    assert row.within is False


def test_judging() -> None:
    def within(theirs: object, ours: float) -> bool | None:
        return judge(Claim("s", "r", theirs, lambda: ours)).within  # type: ignore[arg-type]

    assert [within(point(100, 0.05), ours) for ours in (94.9, 95.1, 104.9, 105.1)] == [
        False,
        True,
        True,
        False,
    ]
    assert [within(between(10, 20, 0.1), ours) for ours in (8.9, 9.1, 21.9, 22.1)] == [
        False,
        True,
        True,
        False,
    ]
    assert [within(above(1), ours) for ours in (0.99, 1.01, 50)] == [False, True, True]
    assert within(point(5, None), 500) is None


ROWS = [
    Row("W1", "first", 77.5, 77.4, 0.01, True),
    Row("W2", "a range", "15-17", 18.0, 0.0, False),
    Row("W2", "beside", 6.6, 1.5, None, None),
]


def test_the_text_is_aligned_ascii_and_counts() -> None:
    text = as_text(ROWS)
    assert text.isascii()
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["source", "W1", "W2", "W2"]
    column = lines[0].index("theirs")
    assert [line[column : column + 6].strip() for line in lines[1:4]] == ["77.5", "15-17", "6.6"]
    assert "NO" in lines[2]
    assert "not judged" in lines[3]
    assert lines[4:] == ["1 of 2 rows within their tolerance, 1 not judged"]


def test_the_text_counts_what_the_model_file_states() -> None:
    stated = Row("W1", f"power{SET}", 32.0, 32.0, 0.02, True)
    assert as_text([*ROWS, stated]).splitlines()[-2:] == [
        "2 of 3 rows within their tolerance, 1 not judged",
        "(set): the model file states it; so for 1 of those 3",
    ]


def test_the_json_is_an_array_of_rows() -> None:
    rows = json.loads(as_json(ROWS))
    assert [list(row) for row in rows] == [["source", "row", "theirs", "ours", "tolerance", "within"]] * 3
    assert rows[2] == {
        "source": "W2",
        "row": "beside",
        "theirs": 6.6,
        "ours": 1.5,
        "tolerance": None,
        "within": None,
    }


def test_the_command_prints_the_table_and_fails_when_a_row_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibration, "rows", lambda: ROWS)
    assert main(["table"]) == 1
    assert capsys.readouterr().out == as_text(ROWS)
    monkeypatch.setattr(calibration, "rows", lambda: [ROWS[0], ROWS[2]])
    assert main(["table", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert main(["table", "--xml"]) == 2

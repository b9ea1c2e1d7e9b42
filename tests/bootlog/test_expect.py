"""``expect:`` lines of a profile against a boot log."""

from __future__ import annotations

from sparktui.bootlog.expect import Expectations
from sparktui.schema.live import Expectation
from tests.bootlog.logs import line, log_lines

MARLIN = "Using 'MARLIN' NvFp4 MoE backend"
TRITON = "Using TRITON Unquantized MoE backend"


def test_met_unmet_and_open() -> None:
    expected = Expectations([TRITON, MARLIN])
    expected.read(line(f"{MARLIN} out of potential backends: ['MARLIN']", 7))
    assert expected.state(False) == (Expectation(TRITON), Expectation(MARLIN, True, 7))
    assert expected.state(True) == (Expectation(TRITON, False), Expectation(MARLIN, True, 7))


def test_the_first_line_counts() -> None:
    expected = Expectations(["a.c"])
    for number, message in enumerate(["abc", "x a.c", "a.c"], 1):
        expected.read(line(message, number))
    assert expected.state(False) == (Expectation("a.c", True, 2),)


def test_one_line_may_meet_several() -> None:
    expected = Expectations(["backend", "Using", "backend"])
    expected.read(line("Using a backend", 3))
    assert expected.state(False) == (Expectation("backend", True, 3), Expectation("Using", True, 3))


def test_nothing_is_no_text() -> None:
    expected = Expectations([""])
    expected.read(line("anything"))
    assert expected.state(True) == (Expectation("", False),)


def test_a_recorded_boot() -> None:
    expected = Expectations(["FLASHINFER backend", "FULL=33"])
    for each in log_lines("0.24.0-h200/boot_fi_ngram.log"):
        expected.read(each)
    assert expected.state(True) == (
        Expectation("FLASHINFER backend", True, 24),
        Expectation("FULL=33", False),
    )

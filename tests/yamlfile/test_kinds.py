"""Kinds of value: what they make of a node and what they report."""

from __future__ import annotations

from sparktui.yamlfile.kinds import integer, table
from sparktui.yamlfile.problems import Report
from sparktui.yamlfile.source import parse


def read(text: str) -> tuple[dict[int, object], list[str]]:
    """A table from integers of at least 1, and its problems' texts."""
    report = Report("f")
    node = parse(text.encode(), report)
    assert node is not None
    made = table(1, integer(0))(node, "t", report)
    return made, [problem.message for problem in report.problems]


def test_a_table_is_in_the_order_of_its_numbers() -> None:
    assert read("10: 1\n2: 5\n") == ({2: 5, 10: 1}, [])
    assert list(read("10: 1\n2: 5\n")[0]) == [2, 10]


def test_a_refused_key_is_left_out_and_told_once() -> None:
    made, told = read("1: 7\nx: 8\n0: 9\n-3: 9\n")
    assert made == {1: 7}
    assert [message.split(",")[0] for message in told] == [
        "t: key: expected an integer",
        "t: key: expected an integer of at least 1",
        "t: key: expected an integer of at least 1",
    ]


def test_the_value_of_a_refused_key_is_checked_all_the_same() -> None:
    assert read("x: y\n")[1] == ["t: key: expected an integer, got 'x'", "t.x: expected an integer, got 'y'"]


def test_one_number_spelled_twice() -> None:
    assert read("4: 1\n+4: 2\n")[1] == ["t: 4 is here twice"]

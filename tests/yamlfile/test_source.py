from __future__ import annotations

import math
from pathlib import Path

import pytest

from sparktui.yamlfile.problems import Report
from sparktui.yamlfile.source import MAX_BYTES, Map, Scalar, Seq, parse
from tests.profile.make import errors, tree, value


def scalar(text: str) -> Scalar:
    node = value(text)
    assert isinstance(node, Scalar)
    return node


@pytest.mark.parametrize(
    "text",
    [
        "0.90",
        "1e-3",
        "off",
        "on",
        "yes",
        "No",
        "1_000",
        "0o17",
        "0x1F",
        "12:30:45",
        "2024-01-01",
        "007",
        "1k",
        ".5",
    ],
)
def test_a_scalar_keeps_its_source_text(text: str) -> None:
    node = scalar(text)
    assert (node.text, node.plain, node.boolean, node.is_null) == (text, True, None, False)


@pytest.mark.parametrize("text", ["true", "True", "TRUE"])
def test_true_is_special_when_plain_only(text: str) -> None:
    assert scalar(text).boolean is True
    assert scalar(f'"{text}"').boolean is None


@pytest.mark.parametrize("text", ["false", "False", "FALSE"])
def test_false_is_special_when_plain_only(text: str) -> None:
    assert scalar(text).boolean is False
    assert scalar(f"'{text}'").boolean is None


@pytest.mark.parametrize("text", ["null", "Null", "NULL", "~", ""])
def test_null_is_special_when_plain_only(text: str) -> None:
    assert scalar(text).is_null
    assert not scalar(f'"{text}"').is_null


@pytest.mark.parametrize("text", ["tRUE", "nULL", "y", "n"])
def test_other_spellings_are_text(text: str) -> None:
    node = scalar(text)
    assert node.boolean is None
    assert not node.is_null


@pytest.mark.parametrize(
    ("text", "integer"),
    [("0", 0), ("-1", -1), ("+7", 7), ("012", 12), ("0o17", 15), ("0x1f", 31), ("1.0", None), ("1_0", None)],
)
def test_integers_are_those_of_yaml_1_2(text: str, integer: int | None) -> None:
    assert scalar(text).integer == integer
    assert scalar(f'"{text}"').integer is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.90", 0.9), ("1e-3", 0.001), ("1E3", 1000.0), (".5", 0.5), ("3.", 3.0), ("4", 4.0), ("1.2.3", None)],
)
def test_numbers_are_those_of_yaml_1_2(text: str, number: float | None) -> None:
    assert scalar(text).number == number


def test_infinite_numbers_are_no_finite_ones() -> None:
    assert scalar("-.inf").number == -math.inf
    assert math.isnan(scalar(".NaN").number or 0.0)
    assert [scalar(text).finite for text in (".inf", ".nan", "1e999")] == [None, None, None]


def test_an_absurd_integer_is_text_and_does_not_raise() -> None:
    assert scalar("9" * 10_000).integer is None


def test_places_count_from_one() -> None:
    made = tree("a: 1\nb:\n  - c\n  - {d: e}\n")
    b = made.get("b")
    assert isinstance(b, Seq)
    inner = b.items[1]
    assert isinstance(inner, Map)
    assert (b.items[0].line, b.items[0].column) == (3, 5)
    assert (inner.entries[0][1].line, inner.entries[0][1].column) == (4, 9)


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert tree(b"\xef\xbb\xbfmodel: m\n").get("model") is not None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "1: the file is empty"),
        (b"# nothing here\n", "1: the file is empty"),
        (b"- a\n- b\n", "1: expected a mapping at the top, such as 'name: …'"),
        (b"\n\nhello\n", "3: expected a mapping at the top, such as 'name: …'"),
        (b"model: m\nabout: caf\xe9\n", "2: not UTF-8: byte 0xe9"),
        (b"model: m\nabout: a\x07b\n", "2: character U+0007 is not allowed"),
        (b'model: m\nabout: "a\\0b"\n', "2: NUL and lone surrogates are not allowed"),
        (b'model: m\nabout: "\\ud800"\n', "2: NUL and lone surrogates are not allowed"),
        (b'model: m\nabout: "\\UFFFFFFFF"\n', "2: not YAML: "),
        (b"model: m\nport: 1\nport: 2\n", "3: key 'port' is here twice, first on line 2"),
        (b"model: m\nargs: {x: 1,\n  x: 2}\n", "3: key 'x' is here twice, first on line 2"),
        (b"model: m\nabout: &a x\nname: *a\n", "3: aliases (*a) are not supported"),
        (b"model: m\nargs: &a {x: *a}\n", "2: aliases (*a) are not supported"),
        (
            b"model: m\nabout: !!python/name:os.system x\n",
            "2: tags (tag:yaml.org,2002:python/name:os.system)",
        ),
        (b"model: m\n---\nmodel: n\n", "2: but found another document"),
        (b"model: m\nargs: {a: [1, 2}\n", "2: expected ',' or ']', but got '}'"),
        (b"model: m\n\tport: 1\n", "2: found character '\\t' that cannot start any token"),
        (b"model: m\nargs: " + b"[" * 5000, "2: nested more than 32 levels deep"),
        (b"model: m\nargs: " + b"{a: " * 5000, "2: nested more than 32 levels deep"),
        (b"model: m\n? [a, b]\n: c\n", "2: a key must be text"),
        (b"model: m\n#" + b"x" * MAX_BYTES, "is larger than 256 KiB"),
    ],
)
def test_a_broken_file_says_what_and_where(tmp_path: Path, data: bytes, problem: str) -> None:
    found = errors(tmp_path, data)
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_an_alias_bomb_stays_small() -> None:
    bomb = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 20)]
    report = Report("bomb.yaml")
    parse("\n".join(bomb).encode(), report)
    assert len(report.problems) == 19 * 9


def test_problems_of_syntax_and_of_values_come_together(tmp_path: Path) -> None:
    found = errors(tmp_path, "model: m\nport: 1\nport: 2\nhots: h\nabout: &a x\nready_timeout_s: *a\n")
    assert [line.split(":")[0] for line in found] == ["3", "4", "6"]

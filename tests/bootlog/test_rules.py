from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparktui.bootlog.rules import Rule, RuleError, load_rules, load_user_rules, release, shipped_rules
from sparktui.yamlfile.source import MAX_BYTES
from tests.bootlog.logs import line

GOOD = """\
slow:
  needs: [slow, sluggish]
  pattern: '^(?:slow|sluggish) thing(?: of (?P<owner>\\w+))?(?: (?P<free>[\\d.]+)/(?P<total>[\\d.]+))?'
  severity: costs speed
  meaning: It is slow. It belongs to {owner}.
  cost: Much.
  source: one report
  remedy: Ask {owner}; at most {utilization}. Then wait.
  flag: --fast
  weighs: {cpu: note, not speculating: harmless}
  follows: other
  versions: 0.13.0-0.27.1
"""


def only(text: str) -> Rule:
    (rule,) = load_rules(text, "x.yaml")
    return rule


def test_every_key_of_a_rule() -> None:
    rule = only(GOOD)
    assert (rule.id, rule.needs, rule.severity) == ("slow", ("slow", "sluggish"), "costs speed")
    assert (rule.cost, rule.source, rule.flag, rule.each) == ("Much.", "one report", "--fast", False)
    assert rule.weighs == (("cpu", "note"), ("not speculating", "harmless"))
    assert rule.follows == ("other",)
    assert str(rule.versions) == "from 0.13.0 to 0.27.1"


def test_what_a_rule_says_of_a_line() -> None:
    finding = only(GOOD).finding(line("slow thing of Eve 99.9/121.69", 9))
    assert finding is not None
    assert (finding.id, finding.line, finding.text) == ("slow", 9, "slow thing of Eve 99.9/121.69")
    assert finding.meaning == "It is slow. It belongs to Eve."
    assert finding.remedy == "Ask Eve; at most 0.82. Then wait."


def test_sentences_about_what_the_line_leaves_open_are_left_out() -> None:
    finding = only(GOOD).finding(line("slow thing"))
    assert finding is not None
    assert (finding.meaning, finding.remedy) == ("It is slow.", "Then wait.")


def test_another_line_is_none_of_its_business() -> None:
    assert only(GOOD).finding(line("a slow thing")) is None


def test_long_lines_are_cut() -> None:
    finding = only(GOOD).finding(line("slow thing " + "x" * 100_000))
    assert finding is not None
    assert len(finding.text) == 2000


@pytest.mark.parametrize(
    ("versions", "inside", "outside"),
    [
        ("0.13.0-0.27.1", ["0.13.0", "0.24.0", "0.27.1"], ["0.12.9", "0.28.0", "1.0.0"]),
        ("0.17.1+", ["0.17.1", "0.17.2rc1.dev7", "0.33.0"], ["0.17.0", "0.9.1"]),
        ("0.17+", ["0.17.0", "1.2"], ["0.16.9"]),
    ],
)
def test_releases(versions: str, inside: list[str], outside: list[str]) -> None:
    known = only(GOOD.replace("0.13.0-0.27.1", versions)).versions
    assert known is not None
    assert [version for version in inside if release(version) not in known] == []
    assert [version for version in outside if release(version) in known] == []


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.32.0", (0, 32, 0)), ("v0.9", (0, 9, 0)), ("0.23.1rc1.dev1302+g1", (0, 23, 1)), ("dev", ())],
)
def test_the_numbers_of_a_version(version: str, numbers: tuple[int, ...]) -> None:
    assert release(version) == numbers


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (GOOD + "  colour: red\n", "x.yaml:13: slow: unknown key 'colour'"),
        (GOOD + "  severty: note\n", "x.yaml:13: slow: unknown key 'severty'; did you mean 'severity'?"),
        (re.sub("pattern: .*", "pattern: '('", GOOD), "x.yaml:3: slow.pattern: no regular expression"),
        (
            GOOD.replace("severity: costs speed", "severity: dire"),
            "x.yaml:4: slow.severity: expected boot fails",
        ),
        (GOOD + GOOD, "x.yaml:13: key 'slow' is here twice, first on line 1"),
        (GOOD + "  flag: b\n", "x.yaml:13: key 'flag' is here twice, first on line 9"),
        (GOOD.replace("  severity: costs speed\n", ""), "x.yaml:2: slow.severity: is missing"),
        (GOOD.replace("cpu: note", "gpu: note"), "x.yaml:10: slow.weighs: unknown situation 'gpu'"),
        (GOOD.replace("cpu: note", "cpu: maybe"), "x.yaml:10: slow.weighs.cpu: expected boot fails"),
        (GOOD.replace("0.13.0-0.27.1", "new"), "x.yaml:12: slow.versions: expected releases such as"),
        (GOOD.replace("Much.", "Much {money}."), "x.yaml:2: slow.cost: the pattern has no group 'money'"),
        (GOOD.replace("needs: [slow, sluggish]", "needs: []"), "x.yaml:2: slow.needs: expected text"),
        (GOOD.replace("[slow, sluggish]", "[slow, {}]"), "x.yaml:2: slow.needs[1]: expected text"),
        (
            GOOD.replace("meaning: It", "meaning: [It]\n  cost: it").replace("cost: Much.\n", "\n"),
            "x.yaml:5: ",
        ),
        (GOOD + "  each: perhaps\n", "x.yaml:13: slow.each: expected true or false"),
        (GOOD.replace("slow:\n", "Slow One:\n"), "x.yaml:1: 'Slow One' is no id"),
        ("- a\n", "x.yaml:1: expected a mapping at the top"),
        ("slow: 1\n", "x.yaml:1: slow: expected a mapping"),
        ("slow: [a\n", "x.yaml:2: expected ',' or ']'"),
        ("", "x.yaml:1: the file is empty"),
        ("slow: !!python/object/apply:os.getcwd []\n", "x.yaml:1: tags"),
    ],
)
def test_a_bad_file_is_named_with_its_line(text: str, error: str) -> None:
    with pytest.raises(RuleError, match="^" + re.escape(error)):
        load_rules(text, "x.yaml")


def test_all_problems_of_a_file_are_told_at_once() -> None:
    text = GOOD.replace("costs speed", "dire") + "  colour: red\n"
    with pytest.raises(RuleError) as caught:
        load_rules(text, "x.yaml")
    assert [problem.line for problem in caught.value.problems] == [4, 13]


def test_the_rules_of_a_user_come_on_top(tmp_path: Path) -> None:
    mine = GOOD.replace("slow:\n", "jit-hit:\n")
    (tmp_path / "b.yaml").write_text(mine)
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "notes.txt").write_text("no rules")
    rules = {rule.id: rule for rule in load_user_rules(tmp_path)}
    assert rules["slow"].severity == "costs speed"
    assert rules["jit-hit"].flag == "--fast"
    assert len(rules) == len(shipped_rules()) + 1
    assert rules["cg-spec-piecewise"] == {rule.id: rule for rule in shipped_rules()}["cg-spec-piecewise"]


def test_no_folder_is_no_rules_of_ones_own(tmp_path: Path) -> None:
    assert load_user_rules(tmp_path / "none") == shipped_rules()


def test_a_users_bad_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(GOOD.replace("costs speed", "dire"))
    with pytest.raises(RuleError, match=r"mine\.yaml:4: slow\.severity: expected"):
        load_user_rules(tmp_path)


def test_one_id_in_two_files_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(GOOD)
    with pytest.raises(RuleError, match=r"b\.yaml: rule 'slow' is in another file, too"):
        load_user_rules(tmp_path)


def test_files_that_can_not_be_rules(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(RuleError, match=r"big\.yaml: is larger than 256 KiB"):
        load_user_rules(tmp_path)
    (tmp_path / "big.yaml").unlink()
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(RuleError, match=r"folder\.yaml: "):
        load_user_rules(tmp_path)


def test_the_shipped_rules_are_many_and_short() -> None:
    rules = shipped_rules()
    assert len(rules) >= 200
    for rule in rules:
        assert all(literal.strip() for literal in rule.needs), rule.id
        assert max(map(len, (rule.meaning, rule.cost, rule.remedy))) <= 400, rule.id

"""Each rule against its own example line, and against everybody else's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from sparktui.bootlog.context import SITUATIONS, Context
from sparktui.bootlog.findings import FindingLog
from sparktui.bootlog.rules import WITH_CAUSE, shipped_rules
from sparktui.schema.live import Finding
from tests.bootlog.logs import line, log_lines

_TABLE = Path(__file__).with_name("rule_examples.txt")
_RULES = {rule.id: rule for rule in shipped_rules()}
_HEALTHY = (
    "0.24.0-h200/boot_off.log",
    "0.24.0-h200/boot_draft.log",
    "0.24.0-h200/boot_ngram.log",
    "0.27.1-cpu/boot_draft.log",
    "0.32.0-cpu/boot_ngram_tty.log",
    "0.32.0-cpu/runtime-crash-0.32.0-cpu.log",
)


class Example(NamedTuple):
    id: str
    severity: str
    message: str


def _examples() -> list[Example]:
    rows = _TABLE.read_text(encoding="utf-8").splitlines()
    return [Example(*row.split(" | ", 2)) for row in rows if row and not row.startswith("#")]


EXAMPLES = _examples()


def found(message: str) -> tuple[Finding, ...]:
    log = FindingLog(shipped_rules())
    log.read(line(message))
    return log.all(Context())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_an_example_is_known_by_its_rule_alone(example: Example) -> None:
    assert [(f.id, f.severity) for f in found(example.message)] == [(example.id, example.severity)]


def test_every_rule_has_an_example() -> None:
    assert {example.id for example in EXAMPLES} == set(_RULES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_text_that_a_user_sent_sets_nothing_off(example: Example) -> None:
    assert found(f"Received request cmpl-1: prompt: '{example.message}', params: SamplingParams(n=1)") == ()
    assert found(f"prompt: {example.message}") == ()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_what_is_said_of_an_example_is_complete(example: Example) -> None:
    (finding,) = found(example.message)
    for words in (finding.meaning, finding.cost, finding.remedy):
        assert "{" not in words
        assert "}" not in words
        assert not words or words.endswith((".", "…")), words


@pytest.mark.parametrize("log", _HEALTHY)
def test_dumps_of_the_configuration_set_nothing_off(log: str) -> None:
    signs = ("Initializing a V1 LLM engine", "non-default args:", "Dumping input data", "Dumping scheduler")
    dumps = [x for x in log_lines(log) if x.message.startswith(signs)]
    assert len(dumps) >= 2
    for dump in dumps:
        assert found(dump.message) == ()


def test_ids_that_rules_name_exist() -> None:
    for rule in _RULES.values():
        assert set(rule.follows) <= set(_RULES), rule.id
        assert rule.id not in rule.follows
        if WITH_CAUSE in dict(rule.weighs):
            assert rule.follows, rule.id


def test_what_costs_says_what_and_who_measured_it() -> None:
    for rule in _RULES.values():
        assert rule.meaning.endswith("."), rule.id
        assert bool(rule.source) or not rule.cost, rule.id
        if rule.severity == "costs speed":
            assert rule.cost, rule.id
        if rule.severity in ("costs speed", "costs memory", "wrong results possible"):
            assert rule.source, rule.id
        for situation, severity in rule.weighs:
            assert situation in (*SITUATIONS, WITH_CAUSE)
            assert severity != rule.severity, rule.id


def test_patterns_are_anchored_and_cheap() -> None:
    nested = re.compile(r"\([^()]*(?<!\\)[*+][^()]*\)[*+{]")
    for rule in _RULES.values():
        assert rule.pattern.pattern.startswith("^"), rule.id
        assert nested.search(rule.pattern.pattern) is None, rule.id

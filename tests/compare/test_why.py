"""What stands behind a verdict, as far as it is known."""

from __future__ import annotations

from typing import Any

import pytest

from sparktui.compare.why import only_in, why
from tests.compare.made import arm, cell, finding

GRAPH = finding(
    "cg-piecewise-spec", "costs speed", 212, "… setting cudagraph_mode=PIECEWISE.", "up to 5x a step"
)


def stepping(name: str, load: int = 1, **values: Any) -> Any:
    return cell(50, 50, concurrency=load, variant=name, **values)


def test_findings_of_one_arm_only_the_graphs_first() -> None:
    shared = finding("kv-small", "costs memory", 3)
    b = arm(
        "on",
        findings=(
            finding("mem", "costs memory", 5),
            finding("attn", "costs speed", 400),
            finding("wrong", "wrong results possible", 300),
            finding("jit", "costs speed", 90),
            shared,
            GRAPH,
            finding("hello", "note", 1),
            finding("fine", "harmless", 2),
        ),
    )
    found = only_in(b, arm("off", findings=(shared,)))
    assert [f.id for f in found] == ["cg-piecewise-spec", "wrong", "jit", "attn", "mem"]
    assert only_in(b, b) == ()


def test_a_graph_downgrade_is_told_as_a_likely_cause() -> None:
    lines = why(arm("off", findings=(finding("old", line=7, text="A's own."),)), arm("on", findings=(GRAPH,)))
    assert lines == (
        "Only in on, log line 212, a likely cause, not proof: … setting cudagraph_mode=PIECEWISE. "
        "Cost: up to 5x a step",
        "Only in off, log line 7: A's own.",
    )


def test_a_very_long_line_is_shortened() -> None:
    (line,) = why(arm("off"), arm("on", findings=(finding("x", text="y" * 5000),)))
    assert line == "Only in on, log line 1: " + "y" * 239 + "…."


def test_facts_that_differ() -> None:
    a = arm(
        "off",
        facts={
            "cudagraph_mode": "FULL",
            "kv_cache_tokens": 1234567,
            "async_scheduling": True,
            "attention_backend": "FLASHINFER",
            "model_runner": "V1",
            "version": "1",
        },
    )
    b = arm(
        "on",
        facts={
            "cudagraph_mode": "PIECEWISE",
            "kv_cache_tokens": 1000,
            "async_scheduling": False,
            "attention_backend": "FLASHINFER",
            "version": "2",
        },
    )
    assert why(a, b) == (
        "cudagraph_mode: FULL in off, PIECEWISE in on.",
        "async_scheduling: on in off, off in on.",
        "kv_cache_tokens: 1,234,567 in off, 1,000 in on.",
    )


def test_a_step_that_no_acceptance_can_pay_for() -> None:
    """W1: the step takes 4.9 times as long, and k=3 yields at most 4 tokens."""
    a = arm("off", stepping("off", step_ms=10.0, tokens_per_step=1.0))
    b = arm(
        "on",
        stepping(
            "on",
            step_ms=49.0,
            tokens_per_step=2.6,
            acceptance_rate=0.537,
            acceptance_by_position=(0.75, 0.52, 0.34),
        ),
    )
    assert why(a, b) == (
        "c=1: a step takes 49.0 ms in on against 10.0 ms in off (4.9x) and yields 2.60 tokens; "
        "break-even is 4.90 tokens per step. k=3 yields at most 4: no acceptance can pay for this step.",
        "c=1: on accepts 53.7% of its drafts (75% / 52% / 34% by position).",
    )


@pytest.mark.parametrize(("step_ms", "hopeless"), [(40.5, True), (40.0, False), (39.5, False)])
def test_the_ceiling_is_k_and_one(step_ms: float, hopeless: bool) -> None:
    a = arm("off", stepping("off", step_ms=10.0, tokens_per_step=1.0))
    b = arm(
        "on", stepping("on", step_ms=step_ms, tokens_per_step=2.0, acceptance_by_position=(0.5, 0.3, 0.2))
    )
    assert ("no acceptance can pay" in why(a, b)[0]) is hopeless


def test_break_even_against_an_arm_that_speculates_too() -> None:
    a = arm("k3", stepping("k3", step_ms=10.0, tokens_per_step=2.0))
    b = arm("k2", stepping("k2", step_ms=9.0, tokens_per_step=1.9))
    (line,) = why(a, b)
    assert line.endswith("(0.9x) and yields 1.90 tokens; break-even is 1.80 tokens per step.")


def test_energy_per_token() -> None:
    a = arm("off", stepping("off", joules_per_token=0.5))
    b = arm("on", stepping("on", joules_per_token=0.625))
    assert why(a, b) == ("c=1: 0.50 J per token in off, 0.62 in on.",)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"step_ms": 10.0},
        {"tokens_per_step": 2.0},
        {"acceptance_rate": 0.5},
        {"acceptance_by_position": (0.5,)},
        {"joules_per_token": 0.5},
        {"step_ms": 0.0, "tokens_per_step": 0.0, "joules_per_token": 0.0},
    ],
)
def test_what_is_missing_is_not_told(values: dict[str, Any]) -> None:
    known = arm("off", stepping("off", step_ms=10.0, tokens_per_step=1.0, joules_per_token=1.0))
    partly, bare = arm("on", stepping("on", **values)), arm("x", stepping("x"))
    assert why(known, partly) == () or values.keys() == {"joules_per_token"}
    assert why(bare, partly) == ()
    assert why(partly, bare) == ()


def test_loads_come_in_order_and_only_where_both_arms_have_one() -> None:
    a = arm("off", *(stepping("off", load, joules_per_token=1.0) for load in (32, 1, 8)))
    b = arm("on", *(stepping("on", load, joules_per_token=2.0) for load in (8, 1, 64)))
    assert [line.partition(":")[0] for line in why(a, b)] == ["c=1", "c=8"]
    assert why(arm("off"), b) == ()
    assert why(a, arm("on")) == ()

"""What a boot log says when it is read as a whole: ``explain --json`` and ``diff --json`` write it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sparktui.schema.live import BootPhase, Expectation, Finding, GraphSteps


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A periodic line of the engine. Rates are tok/s over vLLM's own interval; shares are 0..1."""

    prompt_tok_s: float
    generation_tok_s: float
    running: int
    waiting: int
    kv_usage: float | None = None
    prefix_hit_rate: float | None = None
    preemptions: int | None = None
    engine: str = ""


@dataclass(frozen=True, slots=True)
class SpecStats:
    """A ``SpecDecoding metrics`` line: what was drafted and accepted in one interval. Rates are 0..1."""

    mean_acceptance_length: float | None
    accepted: int
    drafted: int
    acceptance_by_position: tuple[float, ...] = ()
    acceptance_rate: float | None = None


@dataclass(frozen=True, slots=True)
class BootReport:
    """One boot, explained. ``root_cause`` is set when it failed."""

    schema: int
    vllm_version: str | None
    ready: bool
    phases: tuple[BootPhase, ...]
    findings: tuple[Finding, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    expected: tuple[Expectation, ...] = ()
    root_cause: str | None = None
    graph_steps: GraphSteps | None = None
    lines: int = 0


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact that differs; None where a log doesn't state it."""

    name: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class BootDifference:
    """Two boots against each other: facts that differ and findings of one side only."""

    schema: int
    facts: tuple[FactChange, ...]
    only_a: tuple[Finding, ...]
    only_b: tuple[Finding, ...]
    text: tuple[str, ...]  # the same in words, one line a subject

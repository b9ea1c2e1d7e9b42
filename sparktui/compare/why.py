"""What stands behind a verdict: facts of one arm only, step arithmetic, yield by position. Pure.

Explanations, never second evidence: tokens per step above break-even says the same as on faster than off.
"""

from __future__ import annotations

from typing import Any

from sparktui.schema.live import Finding
from sparktui.schema.records import ArmReport, Cell

_SHOWN = ("boot fails", "wrong results possible", "costs speed", "costs memory")
_LONGEST = 240


def only_in(arm: ArmReport, other: ArmReport) -> tuple[Finding, ...]:
    """Findings above note whose rule fired in ``arm`` and not in ``other``, the weightiest first."""
    known = {finding.id for finding in other.findings}
    found = (f for f in arm.findings if f.id not in known and f.severity in _SHOWN)
    return tuple(sorted(found, key=_weight))


def why(a: ArmReport, b: ArmReport) -> tuple[str, ...]:
    """Lines after the figures: each load's arithmetic, then boot findings and facts of one arm only."""
    lines: list[str] = []
    for load in sorted({cell.concurrency for cell in b.cells}):
        cell_a, cell_b = _cell(a, load), _cell(b, load)
        if cell_a is not None and cell_b is not None:
            lines += _step_lines(load, cell_a, cell_b)
    lines += [_finding_line(b.name, f) for f in only_in(b, a)]
    lines += [_finding_line(a.name, f) for f in only_in(a, b)]
    lines += _fact_lines(a, b)
    return tuple(lines)


def _finding_line(name: str, finding: Finding) -> str:
    cause = ", a likely cause, not proof" if finding.id.startswith("cg-") else ""
    cost = f" Cost: {finding.cost}" if finding.cost else ""
    return f"Only in {name}, log line {finding.line}{cause}: {_shortened(finding.text)}.{cost}"


def _shortened(text: str) -> str:
    text = text.rstrip(".")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _weight(finding: Finding) -> tuple[bool, int, int]:
    """CUDA graph downgrades first: they cost on every step."""
    return not finding.id.startswith("cg-"), _SHOWN.index(finding.severity), finding.line


def _fact_lines(a: ArmReport, b: ArmReport) -> list[str]:
    watched = ("cudagraph_mode", "attention_backend", "model_runner", "async_scheduling", "kv_cache_tokens")
    return [
        f"{name}: {_shown(a.facts.get(name))} in {a.name}, {_shown(b.facts.get(name))} in {b.name}."
        for name in watched
        if name in a.facts and name in b.facts and a.facts[name] != b.facts[name]
    ]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _step_lines(load: int, a: Cell, b: Cell) -> list[str]:
    lines = []
    if a.step_ms and b.step_ms and b.tokens_per_step:
        even = b.step_ms / a.step_ms * (a.tokens_per_step or 1.0)
        k = len(b.acceptance_by_position)
        text = (
            f"c={load}: a step takes {b.step_ms:.1f} ms in {b.variant} against {a.step_ms:.1f} ms "
            f"in {a.variant} ({b.step_ms / a.step_ms:.1f}x) and yields {b.tokens_per_step:.2f} tokens; "
            f"break-even is {even:.2f} tokens per step."
        )
        if k and even > k + 1:
            text += f" k={k} yields at most {k + 1}: no acceptance can pay for this step."
        lines.append(text)
    if b.acceptance_by_position and b.acceptance_rate is not None:
        by = " / ".join(f"{share:.0%}" for share in b.acceptance_by_position)
        lines.append(
            f"c={load}: {b.variant} accepts {b.acceptance_rate:.1%} of its drafts ({by} by position)."
        )
    k = len(b.acceptance_by_position)
    if k and a.decode_tok_s and b.decode_tok_s and b.decode_tok_s > (k + 1) * a.decode_tok_s:
        lines.append(f"c={load}: suspect: k={k} can't give more than {k + 1} times {a.variant}.")
    if a.joules_per_token and b.joules_per_token:
        lines.append(
            f"c={load}: {a.joules_per_token:.2f} J per token in {a.variant}, "
            f"{b.joules_per_token:.2f} in {b.variant}."
        )
    return lines


def _cell(arm: ArmReport, load: int) -> Cell | None:
    return next((cell for cell in arm.cells if cell.concurrency == load), None)

"""The difference of two boots in words: one line a subject, ``A → B``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from sparktui.bootlog.subjects import ARGUMENTS, boot_seconds, shown, subject_of
from sparktui.schema.bootlog import BootReport, FactChange
from sparktui.schema.live import Finding, Severity

BOOT_S = "boot_s"
_LABELS = {
    "vllm_version": "vLLM",
    "spec_method": "method",
    "num_speculative_tokens": "k",
    "draft_model": "draft model",
    "draft_attention_backend": "drafter's attention",
    "draft_moe_backend": "drafter's MoE",
    "draft_capture": "drafter's CUDA graphs",
    "async_scheduling": "async scheduling",
    "model_runner": "model runner",
    "graphs_captured": "captured",
    "largest_capture_size": "largest graph",
    "attention_backend": "attention",
    "moe_backend": "MoE",
    "linear_backend": "linear",
    "mamba_backend": "Mamba",
    "gpu_total_gib": "GPU",
}
_LONGEST = 80  # characters of a value
_MANY = 12  # arguments of one side that are named
_Changes = Mapping[str, FactChange]


def in_words(
    a: BootReport,
    b: BootReport,
    changes: Sequence[FactChange],
    only_a: Sequence[Finding],
    only_b: Sequence[Finding],
) -> tuple[str, ...]:
    """Lines ``subject: what changed``; none when nothing did."""
    groups: dict[str, dict[str, FactChange]] = {}
    for change in changes:
        subject = "arguments" if change.name.startswith(f"{ARGUMENTS}.") else subject_of(change.name)
        groups.setdefault("boot" if change.name == BOOT_S else subject, {})[change.name] = change
    lines = [("boot", _states(a, b))]
    lines += [(subject, _WORDS.get(subject, _plain)(group)) for subject, group in groups.items()]
    lines.append(("findings", "; ".join(filter(None, (_only("A", only_a), _only("B", only_b))))))
    return tuple(f"{subject}: {words}" for subject, words in lines if words)


def _states(a: BootReport, b: BootReport) -> str:
    """How each boot went, when that differs."""
    if (a.ready, a.root_cause) == (b.ready, b.root_cause):
        return ""
    return f"A {_state(a)}; B {_state(b)}"


def _state(report: BootReport) -> str:
    if report.ready:
        seconds = boot_seconds(report)
        ready = "got ready" if seconds is None else f"got ready after {seconds:.0f} s"
        return ready if report.root_cause is None else f"{ready} and failed later: {report.root_cause}"
    if report.root_cause is not None:
        return f"failed: {report.root_cause}"
    return f"is not ready: its log ends in phase {report.phases[-1].name}"


def _plain(group: _Changes) -> str:
    return " · ".join(_one(change) for change in group.values())


def _one(change: FactChange) -> str:
    label = _LABELS.get(change.name, change.name)
    return f"{label} {_value(change.a)} → {_value(change.b)}"


def _value(value: Any) -> str:
    text = "none" if value is None else shown(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"


def _seconds(group: _Changes) -> str:
    change = group[BOOT_S]
    return f"ready after {change.a:.0f} s → {change.b:.0f} s"


def _speculation(group: _Changes) -> str:
    method = group.get("spec_method")
    if method is None or "off" not in (method.a, method.b):
        return _plain(group)
    sides = ({n: c.a for n, c in group.items()}, {n: c.b for n, c in group.items()})
    return " → ".join(_speculates(side) for side in sides)


def _speculates(side: Mapping[str, Any]) -> str:
    """``draft_model /models/draft, k=3, its CUDA graphs off``."""
    if side["spec_method"] == "off":
        return "off"
    model, k = side.get("draft_model"), side.get("num_speculative_tokens")
    named = [str(side["spec_method"]), *([str(model)] if model else [])]
    rest = [f"k={k}"] if k is not None else []
    if side.get("draft_attention_backend") is not None:
        rest.append(f"its attention {side['draft_attention_backend']}")
    if side.get("draft_moe_backend") is not None:
        rest.append(f"its MoE {side['draft_moe_backend']}")
    if side.get("draft_capture") is False:
        rest.append("no CUDA graphs for the drafter")
    return ", ".join([" ".join(named), *rest])


def _scheduler(group: _Changes) -> str:
    """Tokens a step follow from max_num_batched_tokens when that differs."""
    told = dict(group)
    if "max_num_batched_tokens" in told:
        told.pop("max_num_scheduled_tokens", None)
    return _plain(told)


def _graphs(group: _Changes) -> str:
    parts = [_one(change) for name, change in group.items() if name != "graphs_captured"]
    captured = group.get("graphs_captured")
    if captured is not None and isinstance(captured.a, dict) and isinstance(captured.b, dict):
        kinds = dict.fromkeys((*captured.a, *captured.b))
        counts = (f"{kind} {captured.a.get(kind, 0)} → {captured.b.get(kind, 0)}" for kind in kinds)
        parts.append(f"captured {', '.join(counts)}")
    return " · ".join(parts)


def _memory(group: _Changes) -> str:
    """Concurrency follows from the KV cache."""
    parts = []
    for name, change in group.items():
        if name == "kv_cache_tokens":
            parts.append(f"KV {change.a:,} → {change.b:,} tokens{_percent(change)}")
        elif name == "weights_gib":
            parts.append(f"weights {shown(change.a)} → {shown(change.b)} GiB{_percent(change)}")
        elif name != "max_concurrency" or "kv_cache_tokens" not in group:
            parts.append(_one(change))
    return " · ".join(parts)


def _percent(change: FactChange) -> str:
    if not change.a:
        return ""
    return f" ({100 * (change.b - change.a) / change.a:+.1f} %)".replace("-", "−")


def _arguments(group: _Changes) -> str:
    sides = (
        ("only in A", [f"{_flag(c)}={_value(c.a)}" for c in group.values() if c.b is None]),
        ("only in B", [f"{_flag(c)}={_value(c.b)}" for c in group.values() if c.a is None]),
    )
    both = [c for c in group.values() if c.a is not None and c.b is not None]
    parts = [f"{side} {_listed(given)}" for side, given in sides if given]
    parts += [f"{_flag(change)} {_value(change.a)} → {_value(change.b)}" for change in both]
    return " · ".join(parts)


def _flag(change: FactChange) -> str:
    return change.name.removeprefix(f"{ARGUMENTS}.")


def _listed(items: Sequence[str]) -> str:
    more = len(items) - _MANY
    return ", ".join(items[:_MANY]) + (f" and {more} more" if more > 0 else "")


def _only(side: str, findings: Sequence[Finding]) -> str:
    """``only in B: costs speed spec-async-off (line 14), 3 notes``."""
    grave = [f for f in findings if f.severity not in ("note", "harmless")]
    parts = [
        f"{severity} {', '.join(_place(f) for f in grave if f.severity == severity)}"
        for severity in get_args(Severity)
        if any(f.severity == severity for f in grave)
    ]
    notes = len(Counter(f.id for f in findings if f.severity == "note"))
    if notes:
        parts.append(f"{notes} note{'s' if notes > 1 else ''}")
    return f"only in {side}: {', '.join(parts)}" if parts else ""


def _place(finding: Finding) -> str:
    return f"{finding.id} (line {finding.line})" if finding.line else finding.id


_WORDS: Mapping[str, Callable[[_Changes], str]] = {
    "boot": _seconds,
    "speculation": _speculation,
    "scheduler": _scheduler,
    "graphs and kernels": _graphs,
    "memory": _memory,
    "arguments": _arguments,
}

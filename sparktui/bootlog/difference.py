"""Two boots against each other: the facts that differ, and the findings of one side only.

A fact that one log doesn't state is no difference, unless that log states the contrary in another way: an
argument that was not given, a server that doesn't speculate. Nor are seconds and free memory, which vary from
boot to boot, or figures that agree within one percent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparktui.bootlog.difference_words import BOOT_S, in_words
from sparktui.bootlog.subjects import ARGUMENTS, SUBJECTS, boot_seconds, speculating, subject_of
from sparktui.schema.bootlog import BootDifference, BootReport, FactChange
from sparktui.schema.codec import SCHEMA_VERSION
from sparktui.schema.live import Finding

_SAME = 0.01  # relative
_SLOWER, _SLOWER_S = 0.25, 5.0
_VARYING = {
    *SUBJECTS["seconds"],
    "gpu_free_gib",
    "gpu_requested_gib",
    "kv_available_gib",
    "cudagraph_estimate_gib",
    "cudagraph_memory_gib",
}
_MEASURED = {"kv_cache_tokens", "max_concurrency", "weights_gib", "checkpoint_gib", "gpu_total_gib"}
# who may call the server and what it prints: not how it runs
_OUTSIDE = {
    "host",
    "port",
    "uds",
    "model_tag",
    "served_model_name",
    "api_key",
    "root_path",
    "ssl_keyfile",
    "ssl_certfile",
    "disable_uvicorn_access_log",
    "disable_access_log_for_endpoints",
    "uvicorn_log_level",
    "log_level",
    "enable_log_requests",
    "cudagraph_metrics",
    "speculative_config",  # compared as facts, as are the flags in short
    "spec_method",
    "spec_model",
    "spec_tokens",
}


def difference(a: BootReport, b: BootReport) -> BootDifference:
    """What B's boot has that A's has not, and the other way round; "no difference" when there is none."""
    changes = (*_changes(_completed(a.facts, b.facts), _completed(b.facts, a.facts)), *_boot_seconds(a, b))
    only_a, only_b = _only(a, b), _only(b, a)
    text = in_words(a, b, changes, only_a, only_b)
    return BootDifference(SCHEMA_VERSION, changes, only_a, only_b, text or ("no difference",))


def _completed(facts: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """With what the log says by leaving it out, where the other one says it."""
    whole = dict(facts)
    if speculating(facts) is False:
        whole["spec_method"] = "off"
    elif speculating(facts):
        whole.setdefault("spec_method", "draft_model")
    if "max_num_scheduled_tokens" in other and "max_num_batched_tokens" in facts:
        whole.setdefault("max_num_scheduled_tokens", facts["max_num_batched_tokens"])
    return whole


def _changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[FactChange]:
    told = set()
    for name in dict.fromkeys((*_in_order(), *a, *b)):
        if name in _VARYING or name == ARGUMENTS or not _comparable(name, a, b):
            continue
        if not _alike(name, a.get(name), b.get(name)):
            told.add(name)
            yield FactChange(name, a.get(name), b.get(name))
    given_a, given_b = a.get(ARGUMENTS), b.get(ARGUMENTS)
    if isinstance(given_a, dict) and isinstance(given_b, dict):
        for name in dict.fromkeys((*given_a, *given_b)):
            if name not in _OUTSIDE | told and given_a.get(name) != given_b.get(name):
                yield FactChange(f"{ARGUMENTS}.{name}", given_a.get(name), given_b.get(name))


def _in_order() -> Iterator[str]:
    for names in SUBJECTS.values():
        yield from names


def _comparable(name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether both logs state the fact, or one has no drafter that it could be about."""
    if name in a and name in b:
        return True
    without = a if name not in a else b
    return (
        (name in a or name in b) and subject_of(name) == "speculation" and without.get("spec_method") == "off"
    )


def _alike(name: str, a: Any, b: Any) -> bool:
    if name in _MEASURED and isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) < _SAME * max(abs(a), abs(b)) or a == b
    return bool(a == b)


def _boot_seconds(a: BootReport, b: BootReport) -> Iterator[FactChange]:
    """Only when they differ by more than boots do by themselves."""
    s_a, s_b = boot_seconds(a), boot_seconds(b)
    if s_a is None or s_b is None:
        return
    if abs(s_a - s_b) > max(_SLOWER_S, _SLOWER * min(s_a, s_b)):
        yield FactChange(BOOT_S, s_a, s_b)


def _only(report: BootReport, other: BootReport) -> tuple[Finding, ...]:
    """Findings that the other boot hasn't, by what they are and not by their words; none that is harmless."""
    there = {finding.id for finding in other.findings}
    return tuple(f for f in report.findings if f.id not in there and f.severity != "harmless")

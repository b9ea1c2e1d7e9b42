"""What a boot report says, by subject: for ``explain`` to list and ``diff`` to compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparktui.schema.bootlog import BootReport

SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "model": (
        "vllm_version",
        "architecture",
        "dtype",
        "quantization",
        "max_model_len",
        "device",
        "tensor_parallel_size",
        "nccl_version",
    ),
    "speculation": (
        "spec_method",
        "draft_model",
        "num_speculative_tokens",
        "draft_architecture",
        "draft_attention_backend",
        "draft_moe_backend",
        "draft_moe_weights",
        "draft_capture",
    ),
    "scheduler": (
        "async_scheduling",
        "model_runner",
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_num_scheduled_tokens",
        "chunked_prefill",
        "prefix_caching",
    ),
    "graphs and kernels": (
        "cudagraph_mode",
        "graphs_captured",
        "largest_capture_size",
        "attention_backend",
        "flash_attention_version",
        "moe_backend",
        "moe_weights",
        "linear_backend",
        "mamba_backend",
        "mamba_cache_mode",
        "mamba_block_tokens",
    ),
    "memory": (
        "weights_gib",
        "kv_cache_tokens",
        "kv_cache_dtype",
        "max_concurrency",
        "kv_available_gib",
        "checkpoint_gib",
        "cudagraph_memory_gib",
        "cudagraph_estimate_gib",
        "gpu_free_gib",
        "gpu_total_gib",
        "gpu_requested_gib",
    ),
    "sampling": ("sampling_overrides",),
    "seconds": ("load_s", "compile_s", "capture_s", "init_engine_s"),
}
ARGUMENTS = "non_default_args"
_SUBJECT = {name: subject for subject, names in SUBJECTS.items() for name in names}


def subject_of(name: str) -> str:
    """The subject that a fact belongs to; ``other`` for one that no subject names."""
    return _SUBJECT.get(name, "other")


def by_subject(facts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The facts in reading order, without the arguments; subjects that nothing is known of are absent."""
    known = {subject: {n: facts[n] for n in names if n in facts} for subject, names in SUBJECTS.items()}
    other = {n: v for n, v in facts.items() if n not in _SUBJECT and n != ARGUMENTS}
    return {subject: values for subject, values in {**known, "other": other}.items() if values}


def shown(value: Any) -> str:
    """A value in few words: switches as on and off."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {shown(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value)
    return "—" if value is None else str(value)


def boot_seconds(report: BootReport) -> float | None:
    """From the log's first line to readiness; None for a boot that didn't get there."""
    return next((phase.start_s for phase in report.phases if phase.name == "ready"), None)


def speculating(facts: Mapping[str, Any]) -> bool | None:
    """Whether the server speculates; None when the log doesn't say."""
    if any(name in facts for name in ("spec_method", "draft_model", "num_speculative_tokens")):
        return True
    # the line of the arguments and the engine's config dump would have named it
    return False if isinstance(facts.get(ARGUMENTS), dict) or "device" in facts else None

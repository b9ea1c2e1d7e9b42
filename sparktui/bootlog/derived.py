"""Findings that no single line states: from a boot's facts, once it has ended.

Fact names read: cudagraph_estimate_gib, cudagraph_memory_gib, cudagraph_mode, draft_capture,
gpu_requested_gib, gpu_total_gib, graphs_captured, kv_available_gib, max_num_batched_tokens,
max_num_scheduled_tokens, model_runner, moe_backend, moe_weights, nccl_version, non_default_args,
num_speculative_tokens, spec_method, tensor_parallel_size, weights_gib. Each may be missing; nothing is
claimed without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparktui.bootlog.context import Context
from sparktui.bootlog.facts.rows import WITHOUT_DRAFTER
from sparktui.bootlog.rules import release
from sparktui.schema.live import Finding

Facts = Mapping[str, Any]

_MUCH = 0.10  # of a budget
_STARVED = 0.50  # of what should be left for the KV cache
_ESTIMATES_OFF = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"
_NCCL_FIXED = (2, 30, 4)


def derived(facts: Facts, context: Context, ended: bool) -> tuple[Finding, ...]:
    """Findings of a boot that has ended, one way or other; none before.

    Their line is 0. The same facts make the same findings, so that they may be asked for again.
    """
    if not ended:
        return ()
    rows = (_drafter, _estimate, _starved, _budget, _cutlass, _nccl)
    return tuple(finding for row in rows for finding in row(facts, context))


def _drafter(facts: Facts, _: Context) -> Iterator[Finding]:
    """V2 captures a drafter's graphs under a bar of their own. V1 shows none, so nothing is known there."""
    method, mode = facts.get("spec_method"), str(facts.get("cudagraph_mode", ""))
    if method is None or method in WITHOUT_DRAFTER or facts.get("model_runner") != "V2":
        return
    captured = facts.get("graphs_captured")
    seen = facts.get("draft_capture") is False or (isinstance(captured, dict) and captured.get("FULL"))
    if facts.get("draft_capture") or not seen or "FULL" not in mode:
        return
    count = facts.get("num_speculative_tokens")
    passes = f"{count} passes" if count else "k passes"
    yield Finding(
        id="cg-draft-none",
        severity="costs speed",
        line=0,
        text=f"no CUDA graphs were captured for the {method} drafter",
        meaning="The model's decode steps run from full CUDA graphs, the drafter's don't: the log shows no "
        "capture of its own. It is launched kernel by kernel.",
        cost=f"{passes} of the drafter in every step, each without a graph.",
        remedy="Give the drafter another attention_backend in --speculative-config, or compare with "
        "speculation off.",
        flag="--speculative-config",
        source="one report: vLLM issue 54992",
    )


def _estimate(facts: Facts, _: Context) -> Iterator[Finding]:
    estimate = _number(facts, "cudagraph_estimate_gib")
    if estimate is None:
        return
    if estimate < 0:
        yield _estimated(
            estimate,
            "A negative size makes the KV cache larger than there is memory for.",
            f"The KV cache is {-estimate:.2f} GiB too large; running out of memory is likely.",
            "one report: vLLM issue 44740 (a GB10 with MTP)",
        )
        return
    budget = _budget_gib(facts, estimate)
    taken = _number(facts, "cudagraph_memory_gib")
    if budget and estimate > _MUCH * budget and not (taken and taken > estimate / 2):
        yield _estimated(
            estimate,
            f"That is {estimate / budget:.0%} of the memory that vLLM may use, far more than graphs mostly "
            "take.",
            "The KV cache is smaller by what the graphs don't take; one report has 246,000 tokens instead of "
            "770,000.",
            "two reports: vLLM issues 45178 (B200) and 53013 (GB300)",
        )


def _estimated(estimate: float, meaning: str, cost: str, source: str) -> Finding:
    return Finding(
        id="mem-cg-est",
        severity="costs memory",
        line=0,
        text=f"Estimated CUDA graph memory: {estimate:.2f} GiB total",
        meaning=f"vLLM estimates {estimate:.2f} GiB for CUDA graphs and sizes the KV cache by it. {meaning}",
        cost=cost,
        remedy=f"Set {_ESTIMATES_OFF}=0, or give the cache's size with --kv-cache-memory-bytes.",
        flag=_ESTIMATES_OFF,
        source=source,
    )


def _starved(facts: Facts, _: Context) -> Iterator[Finding]:
    """Only where the log says how much memory vLLM was to use."""
    kv, weights = _number(facts, "kv_available_gib"), _number(facts, "weights_gib")
    requested = _requested_gib(facts)
    if kv is None or weights is None or requested is None or kv < 0:
        return
    left = requested - weights - max(0.0, _number(facts, "cudagraph_estimate_gib") or 0.0)
    if left <= 1.0 or kv >= _STARVED * left:
        return
    yield Finding(
        id="mem-kv-starved",
        severity="costs memory",
        line=0,
        text=f"KV cache {kv:.1f} GiB, weights {weights:.1f} GiB, of {requested:.1f} GiB",
        meaning=f"Beside the weights there is room for {left:.1f} GiB of KV cache, and it got {kv:.1f}. "
        "Something that is gone later, such as a compiler's memory, was counted while vLLM measured; a large "
        "--max-num-batched-tokens or images also take much.",
        cost="Fewer and shorter requests at a time.",
        remedy="Start again now that compiled code is cached; if it stays, lower --max-num-batched-tokens.",
        flag="--max-num-batched-tokens",
        source="one report: spark-vllm-docker pull request 286 (9.5 GiB instead of 40)",
    )


def _budget(facts: Facts, _: Context) -> Iterator[Finding]:
    whole, left = _number(facts, "max_num_batched_tokens"), _number(facts, "max_num_scheduled_tokens")
    if not whole or left is None or not 0 < whole - left > _MUCH * whole:
        return
    yield Finding(
        id="spec-slots-many",
        severity="costs speed",
        line=0,
        text=f"{left:.0f} of {whole:.0f} tokens of a step are left for the scheduler",
        meaning=f"Slots for drafted tokens take {(whole - left) / whole:.0%} of a step's token budget.",
        cost="Prefill and TTFT under load.",
        remedy="Raise --max-num-batched-tokens, or lower num_speculative_tokens or --max-num-seqs.",
        flag="--max-num-batched-tokens",
        source="vLLM's source",
        cause="spec-slots",
    )


def _cutlass(facts: Facts, context: Context) -> Iterator[Finding]:
    kernel = facts.get("moe_backend"), facts.get("moe_weights", "NvFp4")
    if kernel != ("FLASHINFER_CUTLASS", "NvFp4") or not context.holds("sm_12x"):
        return
    yield Finding(
        id="moe-cutlass-sm12x",
        severity="note",
        line=0,
        text="Using 'FLASHINFER_CUTLASS' MoE backend",
        meaning="On GB10 and RTX Blackwell this expert kernel was reported slow, and wrong in some builds.",
        remedy="Check an answer, and compare --moe-backend marlin.",
        flag="--moe-backend",
        source="two reports: FlashInfer issues 3013 (slow) and 2723 (wrong); others run it without trouble",
    )


def _nccl(facts: Facts, context: Context) -> Iterator[Finding]:
    version = release(str(facts.get("nccl_version", "")))
    if not version or version >= _NCCL_FIXED or facts.get("cudagraph_mode") == "NONE":
        return
    if not context.holds("sm_12x") or (_number(facts, "tensor_parallel_size") or 1) < 2:
        return
    yield Finding(
        id="nccl-graphs",
        severity="note",
        line=0,
        text=f"vLLM is using nccl=={facts['nccl_version']}",
        meaning="Two GB10 with an NCCL before 2.30.4 and CUDA graphs were reported to hang while serving.",
        remedy="Take NCCL 2.30.4 or newer.",
        source="one report: vLLM issue 52504",
    )


def _requested_gib(facts: Facts) -> float | None:
    """What vLLM may use: stated, or the GPU's size times the share that was asked for."""
    requested, total = _number(facts, "gpu_requested_gib"), _number(facts, "gpu_total_gib")
    if requested is not None:
        return requested
    arguments = facts.get("non_default_args")
    share = _number(arguments, "gpu_memory_utilization") if isinstance(arguments, dict) else None
    return total * share if total is not None and share is not None else None


def _budget_gib(facts: Facts, estimate: float) -> float | None:
    """What vLLM may use, or at least the parts of it that the log states."""
    parts = [_number(facts, "weights_gib"), _number(facts, "kv_available_gib")]
    return _requested_gib(facts) or (None if None in parts else estimate + sum(part or 0.0 for part in parts))


def _number(facts: Facts, name: str) -> float | None:
    value = facts.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

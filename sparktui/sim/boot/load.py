"""The model's lines of a boot: backends, weights, the drafter, torch.compile."""

from __future__ import annotations

from collections.abc import Iterator

from sparktui.sim.boot.facts import BootFacts
from sparktui.sim.boot.moments import Moment, engine, mark, shards

_NVFP4_BACKENDS = [
    "FLASHINFER_TRTLLM",
    "FLASHINFER_CUTEDSL",
    "FLASHINFER_CUTLASS",
    "VLLM_CUTLASS",
    "MARLIN",
    "EMULATION",
]
_NO_FP4 = (
    "Your GPU does not have native support for FP4 computation but FP4 quantization is being used. Weight-"
    "only FP4 compression will be used leveraging the Marlin kernel. This may degrade performance for "
    "compute-heavy workloads."
)
_CACHE = "~/.cache/vllm/torch_compile_cache"
_WEIGHTS = 0.24  # share of the boot


def weights(facts: BootFacts) -> Iterator[Moment]:
    """From the model's first layer to what it weighs."""
    if facts.plan.runner == "V2":
        yield engine(0.03, "model_runner.py:308", "Loading model from scratch...")
    else:
        yield engine(0.03, "gpu_model_runner.py:5308", f"Starting to load model {facts.model}...")
    yield from _attention(facts)
    yield mark("layers")
    yield from _kernels(facts)
    took = facts.seconds * 0.2
    yield from shards(_WEIGHTS, facts.shape.shards, took)
    yield engine(0, "default_loader.py:430", f"Loading weights took {took:.2f} seconds")
    yield mark("weights")
    gib = facts.shape.weights_gib
    if facts.speculative:
        yield from _drafter(facts)
        gib += facts.shape.drafter_gib if _has_model(facts) else 0.0
    unit = "GiB" if facts.plan.runner == "V2" and not facts.release.since("0.28.0") else "GiB memory"
    file = "model_runner.py:329" if facts.plan.runner == "V2" else "gpu_model_runner.py:5405"
    yield engine(0.01, file, f"Model loading took {gib:.2f} {unit} and {took * 1.1:.6f} seconds")


def compilation(facts: BootFacts) -> Iterator[Moment]:
    """torch.compile, from an empty cache. From 0.32 on lines say which part they are about."""
    part, seconds = ("[backbone] " if facts.release.since("0.32.0") else ""), facts.seconds
    cache = f"{_CACHE}/27e91aef9a/rank_0_0/backbone"
    yield engine(0.04, "backends.py:1094", f"{part}Using cache directory: {cache} for vLLM's torch.compile")
    yield engine(0, "backends.py:1155", f"{part}Dynamo bytecode transform time: {seconds * 0.04:.2f} s")
    span = f"(1, {facts.max_num_batched_tokens})"
    yield engine(0.06, "backends.py:378", f"{part}Cache the graph of compile range {span} for later use")
    graph = f"{part}Compiling a graph for compile range {span} takes {seconds * 0.1:.2f} s"
    yield engine(0.04, "backends.py:393", graph)
    if facts.release.since("0.24.0"):
        path = f"{_CACHE}/torch_aot_compile/7e737970a5/rank_0_0/model"
        yield engine(0.01, "decorators.py:708", f"{part}saved AOT compiled function to {path}")
    took = "took" if facts.release.since("0.19.0") else "takes"
    yield engine(0.03, "monitor.py:53", f"{part}torch.compile {took} {seconds * 0.2:.2f} s in total")
    if facts.release.since("0.19.0"):
        text = f"{part}Initial profiling/warmup run took {seconds * 0.02:.2f} s"
        yield engine(0.02, "monitor.py:81", text)


def _has_model(facts: BootFacts) -> bool:
    return facts.method not in ("ngram", "ngram_gpu", "suffix")


def _attention(facts: BootFacts) -> Iterator[Moment]:
    if "attention_backend" in facts.chosen:
        yield engine(0.01, "cuda.py:422", f"Using AttentionBackendEnum.{facts.backend} backend.")
        return
    others = [name for name in ("FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION") if name != facts.backend]
    text = f"Using {facts.backend} attention backend out of potential backends: {[facts.backend, *others]}."
    yield engine(0.01, "cuda.py:482", text)


def _kernels(facts: BootFacts) -> Iterator[Moment]:
    """Linear, MoE and Mamba kernels."""
    fp4 = "fp4" in facts.shape.quantization
    if linear := _linear_fallback(facts):
        yield engine(0, "__init__.py:386", linear, "WARNING")
    if facts.moe_backend and fp4:
        text = f"Using '{facts.moe_backend}' NvFp4 MoE backend out of potential backends: {_NVFP4_BACKENDS}."
        yield engine(0, "nvfp4.py:239", text)
        if facts.moe_backend == "MARLIN":
            yield engine(0, "marlin_utils_fp4.py:354", _NO_FP4, "WARNING")
    if facts.shape.mamba and facts.release.since("0.21.0"):
        backend = facts.chosen.get("mamba_backend", "triton")
        yield engine(0, "ssu_dispatch.py:310", f"Using {backend} Mamba SSU backend.")
        if algorithm := facts.chosen.get("mamba_ssu_algorithm"):
            yield engine(0, "ssu_dispatch.py:129", f"Using FlashInfer Mamba SSU algorithm: {algorithm}")


def _linear_fallback(facts: BootFacts) -> str:
    """From 0.28 on a linear kernel that a layer type lacks is replaced with a warning."""
    backend = str(facts.chosen.get("linear_backend", "auto"))
    if not backend.endswith("b12x") or not facts.release.since("0.28.0"):
        return ""
    if facts.release.since("0.30.0"):
        return (
            f"--linear-backend={backend} has no kernel for this linear layer type; using automatic selection "
            "for that layer type."
        )
    return (
        f"--linear-backend={backend} was requested, but no {backend} kernel exists for NVFP4 layers; falling "
        "back to normal kernel selection for this layer."
    )


def _drafter(facts: BootFacts) -> Iterator[Moment]:
    if facts.plan.runner == "V1":
        yield engine(0.01, "gpu_model_runner.py:5332", "Loading drafter model...")
    yield mark("drafter")
    if not _has_model(facts):
        return
    if facts.shape.moe_backend:
        backend = "TRITON"
        text = f"Using {backend} Unquantized MoE backend out of potential backends: ['{backend}']."
        if not facts.release.since("0.21.0"):
            text = f"Using {backend} backend for Unquantized MoE"
        yield engine(0, "unquantized.py:272", text)
    took = facts.seconds * 0.02
    yield from shards(0.01, 1, took)
    yield engine(0, "default_loader.py:430", f"Loading weights took {took:.2f} seconds")

"""The first lines of a boot: what the API server makes of its arguments, and the engine's start."""

from __future__ import annotations

from collections.abc import Iterator

from sparktui.sim.boot.facts import BootFacts
from sparktui.sim.boot.moments import Moment, api, engine, mark

_ASYNC_METHODS = ("eagle", "eagle3", "mtp", "ngram_gpu", "dspark")  # from 0.32 on also these:
_ASYNC_METHODS_032 = ("draft_model", "dflash")
_INDUCTOR = (
    "Inductor compilation was disabled by user settings, optimizations settings that are only active during "
    "inductor compilation will be ignored."
)
_MODE_VALUES = {"NONE": "0", "PIECEWISE": "1", "FULL": "2"}
_MODE_VALUES |= {"FULL_DECODE_ONLY": "(2, 0)", "FULL_AND_PIECEWISE": "(2, 1)"}


def configuration(facts: BootFacts) -> Iterator[Moment]:
    """The API server's lines, up to the start of the engine."""
    yield api(0.06, "model.py:645", f"Resolved architecture: {facts.shape.architecture}")
    yield mark("config")
    yield api(0, "model.py:1883", f"Using max model len {facts.max_model_len}")
    chunked = f"Chunked prefill is enabled with max_num_batched_tokens={facts.max_num_batched_tokens}."
    yield api(0, "scheduler.py:242", chunked)
    yield from _cache_lines(facts)
    yield from _async_lines(facts)
    for warning in _settings(facts):
        yield api(0, warning[0], warning[1], "WARNING")
    if facts.plan.fallback:
        yield api(0, "vllm.py:616", _runner_warning(facts), "WARNING")


def engine_start(facts: BootFacts) -> Iterator[Moment]:
    """The engine's lines before it loads the model."""
    yield engine(0.09, "core.py:121", _engine_config(facts))
    if facts.plan.fallback:
        yield engine(0, "vllm.py:616", _runner_warning(facts), "WARNING")
    world = f"world_size={facts.engines} rank={{rank}} local_rank={{rank}}"
    init = "distributed_init_method=tcp://127.0.0.1:35085 backend=nccl"
    yield engine(0.03, "parallel_state.py:1640", f"{world} {init}")
    if facts.release.since("0.24.0"):
        ranks = "DP rank {rank}, PP rank 0, PCP rank 0, TP rank 0, EP rank N/A, EPLB rank N/A"
        if facts.release.since("0.32.0"):
            ranks = ranks.replace("TP rank 0", "TP rank 0, ETP rank 0")
        text = f"rank {{rank}} in world size {facts.engines} is assigned as {ranks}"
        yield engine(0, "parallel_state.py:1977", text)
    yield mark("device")
    if facts.plan.runner == "V2":
        yield engine(0, "gpu_worker.py:385", "Using V2 Model Runner")
    if facts.speculative and facts.release.since("0.17.0"):
        text = "min_p and logit_bias parameters won't work with speculative decoding."
        yield engine(0, "__init__.py:205", text, "WARNING")


def _cache_lines(facts: BootFacts) -> Iterator[Moment]:
    """KV cache and Mamba cache, as hybrid models have them."""
    dtype = str(facts.chosen.get("kv_cache_dtype", "auto"))
    if dtype.startswith("fp8"):
        text = (
            f"Using {dtype} data type to store kv cache. It reduces the GPU memory footprint and boosts the "
            "performance. Meanwhile, it may cause accuracy drop without a proper scaling factor."
        )
        yield api(0, "cache.py:296", text)
    if facts.shape.mamba and facts.prefix_caching and facts.release.since("0.17.0"):
        mode = "align"
        text = f"Mamba cache mode is set to '{mode}' for {facts.shape.architecture} by default when prefix "
        level = "INFO" if facts.release.since("0.28.0") else "WARNING"
        yield api(0, "config.py:618", text + "caching is enabled", level)
        if not facts.release.since("0.28.0"):
            text = (
                f"Warning: Prefix caching in Mamba cache '{mode}' mode is currently enabled. Its support for "
            )
            text += "Mamba layers is experimental. Please report any issues you may observe."
            yield api(0, "config.py:638", text)


def _async_lines(facts: BootFacts) -> Iterator[Moment]:
    """Async scheduling is on by default from 0.17 on, unless the method of speculation can't have it."""
    if not facts.release.since("0.17.0"):
        return
    supported = _ASYNC_METHODS + (_ASYNC_METHODS_032 if facts.release.since("0.32.0") else ())
    chosen = facts.chosen.get("async_scheduling")
    enabled = not facts.method or facts.method in supported if chosen is None else bool(chosen)
    if chosen is None and not enabled:
        text = f"Async scheduling not supported with {facts.method}-based speculative decoding"
        yield api(0, "vllm.py:1113", f"{text} and will be disabled.", "WARNING")
    if not facts.release.since("0.27.0"):
        state = "enabled" if enabled else "disabled"
        yield api(0, "vllm.py:1006", f"Asynchronous scheduling is {state}.")


def _settings(facts: BootFacts) -> Iterator[tuple[str, str]]:
    """Warnings about the configuration: where, and what."""
    if facts.method == "mtp" and facts.k > 1:
        text = "Enabling num_speculative_tokens > 1 will run multiple times of forward on same MTP layer"
        yield "speculative.py:912", f"{text},which may result in lower acceptance rate"
    if facts.eager:
        yield "vllm.py:1194", _eager(facts)
        yield "vllm.py:1247", _INDUCTOR
    left = _scheduled_tokens(facts)
    if facts.speculative and facts.release.since("0.21.0") and left < 8192:
        yield "vllm.py:1757", _slots(facts, left)


def _eager(facts: BootFacts) -> str:
    if facts.release.since("0.32.0"):
        return (
            "Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup. This is "
            "equivalent to setting -cc.mode=none -cc.cudagraph_mode=none and "
            "--kernel_config.enable_jit_warmup=False"
        )
    return (
        "Enforce eager set, disabling torch.compile and CUDAGraphs. This is equivalent to setting "
        "-cc.mode=none -cc.cudagraph_mode=none"
    )


def _scheduled_tokens(facts: BootFacts) -> int:
    """A draft model takes one slot a request, as recorded up to 0.27.1; in 0.32.0 it takes none."""
    takes = facts.method == "draft_model" and not facts.release.since("0.32.0")
    return max(facts.max_num_batched_tokens - (facts.max_num_seqs if takes else 0), 1)


def _slots(facts: BootFacts, left: int) -> str:
    seqs = "" if facts.release.since("0.32.0") else " or max_num_seqs"
    return (
        f"max_num_scheduled_tokens is set to {left} based on the speculative decoding settings. This may "
        "lead to suboptimal performance. Consider increasing max_num_batched_tokens to accommodate the "
        f"additional draft token slots, or decrease num_speculative_tokens{seqs}."
    )


def _runner_warning(facts: BootFacts) -> str:
    return f"Model Runner V2 does not yet support {facts.plan.fallback}; using the V1 model runner instead."


def _engine_config(facts: BootFacts) -> str:
    """The dump; its cudagraph_mode is the one asked for, as the real one's."""
    spec = "None"
    if facts.speculative:
        model = facts.speculative.get("model")
        spec = f"SpeculativeConfig(method={facts.method!r}, model={model!r}, num_spec_tokens={facts.k})"
    compile_mode = "<CompilationMode.NONE: 0>" if facts.eager else "<CompilationMode.VLLM_COMPILE: 3>"
    mode = f"<CUDAGraphMode.{facts.plan.wanted}: {_MODE_VALUES[facts.plan.wanted]}>"
    return (
        f"Initializing a V1 LLM engine (v{facts.release.version}) with config: model={facts.model!r}, "
        f"speculative_config={spec}, tokenizer={facts.model!r}, skip_tokenizer_init=False, "
        f"tokenizer_mode=auto, revision=None, trust_remote_code=False, dtype=torch.bfloat16, "
        f"max_seq_len={facts.max_model_len}, tensor_parallel_size={facts.tensor_parallel}, "
        f"pipeline_parallel_size={facts.pipeline_parallel}, "
        f"data_parallel_size={facts.engines}, quantization={facts.shape.quantization or None}, "
        f"enforce_eager={facts.eager}, kv_cache_dtype={facts.chosen.get('kv_cache_dtype', 'auto')}, "
        f"device_config=cuda, enable_prefix_caching={facts.prefix_caching}, enable_chunked_prefill=True, "
        f"compilation_config={{'mode': {compile_mode}, 'cudagraph_mode': {mode}}}"
    )

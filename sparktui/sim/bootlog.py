"""The boot as vLLM 0.27.1 prints it: stages of lines, each with its share of the boot's seconds.

Grammar from recorded 0.27.1 (CPU) and 0.24.0 (H200, FlashInfer) boots; the CUDA graph warning is verbatim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sparktui.sim.logfile import Log

VERSION = "0.27.1"
DOWNGRADE = (
    "CUDAGraphMode.FULL_AND_PIECEWISE is not supported with spec-decode for attention backend "
    "FlashInferBackend (support: AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE); "
    "setting cudagraph_mode=PIECEWISE"
)
_RUNNER = "gpu_model_runner.py"
_SHARDS = 5


@dataclass(frozen=True, slots=True)
class BootFacts:
    """What the lines say. ``seconds``: the whole boot. ``downgraded``: speculation lost the FULL graphs."""

    model: str
    shown_args: dict[str, Any]
    seconds: float
    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    kv_tokens: int
    backend: str  # attention backend, in vLLM's spelling
    speculative: dict[str, Any] | None = None
    downgraded: bool = False
    eager: bool = False
    prefix_caching: bool = True
    extra: dict[str, Any] = field(default_factory=dict)  # moe_backend, mamba_backend, kv_cache_dtype

    @property
    def method(self) -> str:
        """The speculative method; empty when off."""
        config = self.speculative or {}
        return str(config.get("method") or ("draft_model" if "model" in config else "")) if config else ""


@dataclass(frozen=True, slots=True)
class Moment:
    """Wait for ``share`` of the boot, then print."""

    share: float
    emit: Callable[[Log], None]


def banner(log: Log, facts: BootFacts) -> None:
    """Logo, what this is, and the arguments: before the port is bound."""
    for line in (
        "",
        "       █     █     █▄   ▄█",
        f" ▄▄ ▄█ █     █     █ ▀▄▀ █  version {VERSION}",
        f"  █▄█▀ █     █     █     █  model   {facts.model}",
        "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀",
        "",
    ):
        log.api("api_utils.py:345", line)
    log.api("api_utils.py:273", f"non-default args: {facts.shown_args!r}")
    log.api(
        "sim.py:1",
        "This is sparktui's stand-in server: figures come from a model, not from a GPU.",
        "WARNING",
    )


def moments(facts: BootFacts) -> Iterator[Moment]:
    """Everything between the bound port and the HTTP server's start. Shares add up to about 0.97."""
    yield from _configuration(facts)
    yield from _weights(facts)
    if not facts.eager:
        yield from _compile(facts)
    yield from _memory(facts)
    if not facts.eager:
        yield from _capture(facts)
    took = f"init engine (profile, create kv cache, warmup model) took {facts.seconds * 0.55:.2f} s"
    if not facts.eager:
        took += f" (compilation: {facts.seconds * 0.2:.2f} s)"
    yield _engine(0.04, "core.py:355", took)
    yield _api(0.05, "api_server.py:678", "Supported tasks: ['generate']")
    yield _api(
        0,
        "hf.py:540",
        "Detected the chat template content format to be 'openai'. You can set "
        "`--chat-template-content-format` to override this.",
    )


def _api(share: float, file: str, message: str, level: str = "INFO") -> Moment:
    return Moment(share, lambda log: log.api(file, message, level))


def _engine(share: float, file: str, message: str, level: str = "INFO") -> Moment:
    return Moment(share, lambda log: log.engine(file, message, level))


def _configuration(facts: BootFacts) -> Iterator[Moment]:
    architecture = "NemotronHForCausalLM" if "nemotron" in facts.model.lower() else "LlamaForCausalLM"
    yield _api(0.06, "model.py:645", f"Resolved architecture: {architecture}")
    yield _api(0, "model.py:1883", f"Using max model len {facts.max_model_len}")
    chunked = f"Chunked prefill is enabled with max_num_batched_tokens={facts.max_num_batched_tokens}."
    yield _api(0, "scheduler.py:252", chunked)
    if facts.method in ("ngram", "draft_model", "suffix", "medusa"):
        text = f"Async scheduling not supported with {facts.method}-based speculative decoding"
        text += " and will be disabled."
        yield _api(0, "vllm.py:1113", text, "WARNING")
    if facts.eager:
        text = (
            "Enforce eager set, disabling torch.compile and CUDAGraphs. This is equivalent to setting "
            "-cc.mode=none -cc.cudagraph_mode=none"
        )
        yield _api(0, "vllm.py:1194", text, "WARNING")
    if facts.speculative:
        yield _api(0, "vllm.py:1757", _scheduled_tokens(facts), "WARNING")
    yield _engine(0.09, "core.py:121", _engine_config(facts))
    world = "world_size=1 rank=0 local_rank=0 distributed_init_method=tcp://127.0.0.1:35085 backend=nccl"
    yield _engine(0.03, "parallel_state.py:1640", world)


def _scheduled_tokens(facts: BootFacts) -> str:
    left = max(facts.max_num_batched_tokens - facts.max_num_seqs, 1)
    return (
        f"max_num_scheduled_tokens is set to {left} based on the speculative decoding settings. This may "
        "lead to suboptimal performance. Consider increasing max_num_batched_tokens to accommodate the "
        "additional draft token slots, or decrease num_speculative_tokens or max_num_seqs."
    )


def _engine_config(facts: BootFacts) -> str:
    spec = "None"
    if facts.speculative:
        k = facts.speculative.get("num_speculative_tokens")
        model = facts.speculative.get("model")
        spec = f"SpeculativeConfig(method={facts.method!r}, model={model!r}, num_spec_tokens={k})"
    return (
        f"Initializing a V1 LLM engine (v{VERSION}) with config: model={facts.model!r}, "
        f"speculative_config={spec}, tokenizer={facts.model!r}, skip_tokenizer_init=False, "
        f"tokenizer_mode=auto, revision=None, trust_remote_code=False, dtype=torch.bfloat16, "
        f"max_seq_len={facts.max_model_len}, "
        f"tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, "
        f"enforce_eager={facts.eager}, kv_cache_dtype={facts.extra.get('kv_cache_dtype', 'auto')}, "
        "device_config=cuda, "
        f"enable_prefix_caching={facts.prefix_caching}, enable_chunked_prefill=True"
    )


def _weights(facts: BootFacts) -> Iterator[Moment]:
    yield _engine(0.03, f"{_RUNNER}:5160", f"Starting to load model {facts.model}...")
    yield _engine(0.01, "cuda.py:420", f"Using AttentionBackendEnum.{facts.backend} backend.")
    if moe := facts.extra.get("moe_backend"):
        yield _engine(0, "nvfp4.py:250", f"Using '{str(moe).upper()}' NvFp4 MoE backend.")
    if mamba := facts.extra.get("mamba_backend"):
        yield _engine(0, "ssu_dispatch.py:90", f"Using {mamba} Mamba SSU backend.")
    yield from _shards(0.04, facts.seconds)
    took = facts.seconds * 0.2
    yield _engine(0, "default_loader.py:430", f"Loading weights took {took:.2f} seconds")
    if facts.speculative:
        yield _engine(0.01, f"{_RUNNER}:5184", "Loading drafter model...")
        yield _engine(0, "unquantized.py:180", "Using TRITON Unquantized MoE backend.")
    loaded = f"Model loading took 18.12 GiB memory and {took * 1.1:.6f} seconds"
    yield _engine(0.01, f"{_RUNNER}:5255", loaded)


def _shards(share: float, seconds: float) -> Iterator[Moment]:
    pace = max(share * seconds, 1e-3)
    for done in range(_SHARDS + 1):
        percent = 100 * done // _SHARDS
        timing = "[00:00<?, ?it/s]" if not done else f"[00:00<00:00, {1 / pace:5.2f}it/s]"
        text = f"Loading safetensors checkpoint shards: {percent:3d}% Completed | {done}/{_SHARDS} {timing}"
        yield Moment(share, lambda log, text=text: log.engine_raw(text))  # type: ignore[misc]
    yield Moment(0, lambda log: log.engine_raw(""))


def _compile(facts: BootFacts) -> Iterator[Moment]:
    cache = "~/.cache/vllm/torch_compile_cache/27e91aef9a/rank_0_0/backbone"
    yield _engine(0.04, "backends.py:1089", f"Using cache directory: {cache} for vLLM's torch.compile")
    yield _engine(0, "backends.py:1148", f"Dynamo bytecode transform time: {facts.seconds * 0.04:.2f} s")
    span = f"(1, {facts.max_num_batched_tokens})"
    yield _engine(0.06, "backends.py:378", f"Cache the graph of compile range {span} for later use")
    graph = f"Compiling a graph for compile range {span} takes {facts.seconds * 0.1:.2f} s"
    yield _engine(0.04, "backends.py:393", graph)
    yield _engine(0.04, "monitor.py:53", f"torch.compile took {facts.seconds * 0.2:.2f} s in total")
    warm = f"Initial profiling/warmup run took {facts.seconds * 0.02:.2f} s"
    yield _engine(0.02, "monitor.py:81", warm)


def _memory(facts: BootFacts) -> Iterator[Moment]:
    if facts.downgraded and not facts.eager:
        yield _engine(0.02, "compilation.py:1405", DOWNGRADE, "WARNING")
    if not facts.eager:
        graphs = "PIECEWISE=51 (largest=512)"
        graphs += "" if facts.downgraded else ", FULL=35 (largest=256)"
        yield _engine(0, f"{_RUNNER}:6483", f"Profiling CUDA graph memory: {graphs}")
        yield _engine(0.01, f"{_RUNNER}:6588", "Estimated CUDA graph memory: 0.11 GiB total")
    yield _engine(0.02, "gpu_worker.py:508", "Available KV cache memory: 40.05 GiB")
    yield _engine(0, "kv_cache_utils.py:2235", f"GPU KV cache size: {facts.kv_tokens:,} tokens")
    concurrency = facts.kv_tokens / facts.max_model_len
    text = f"Maximum concurrency for {facts.max_model_len:,} tokens per request: {concurrency:.2f}x"
    yield _engine(0, "kv_cache_utils.py:2236", text)


def _capture(facts: BootFacts) -> Iterator[Moment]:
    share = 0.14 if facts.downgraded else 0.07
    yield from _bar("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", 51, share)
    if not facts.downgraded:
        yield from _bar("Capturing CUDA graphs (decode, FULL)", 35, share)
    took = max(1, round(facts.seconds * 0.14))
    yield _engine(0, f"{_RUNNER}:6656", f"Graph capturing finished in {took} secs, took 0.17 GiB")
    text = (
        "Kernel JIT monitor activated — Triton JIT compilations during inference will be logged as warnings."
    )
    yield _engine(0.01, "jit_monitor.py:60", text)


def _bar(title: str, total: int, share: float) -> Iterator[Moment]:
    """A tqdm bar without a terminal: one line whose states follow each other after carriage returns."""
    yield Moment(0, lambda log: log.engine_part(log.engine_prefix))
    steps = 8
    for step in range(steps + 1):
        done = total * step // steps
        blocks = "█" * (10 * done // total)
        timing = "[00:00<?, ?it/s]" if not done else "[00:01<00:00, 24.60it/s]"
        text = f"\r{title}: {100 * done // total:3d}%|{blocks:<10}| {done}/{total} {timing}"
        yield Moment(share / steps, lambda log, text=text: log.engine_part(text))  # type: ignore[misc]
    yield Moment(0, lambda log: log.engine_part("\n"))

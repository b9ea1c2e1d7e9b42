"""Boots that fail as published or recorded: why, where in the boot, and in whose words.

Texts are vLLM's own (0.27.1's sources, the recorded failing boots of 0.24.0 and 0.32.0, the write-ups);
tracebacks keep their shape and the frames that name the culprit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sparktui.sim.arguments import ServeArguments
from sparktui.sim.boot.facts import BootFacts
from sparktui.sim.boot.logfile import Log

_SITE = "/opt/vllm/site-packages/vllm"
_HEAD = "Traceback (most recent call last):\n"
_UNQUANTIZED = ["triton", "flashinfer_trtllm", "flashinfer_cutlass", "aiter"]
_BACKENDS = (
    "FLASH_ATTN",
    "FLASH_ATTN_DIFFKV",
    "TRITON_ATTN",
    "ROCM_ATTN",
    "FLASHINFER",
    "FLASHINFER_MLA",
    "TRITON_MLA",
    "CUTLASS_MLA",
    "FLASHMLA",
    "FLASH_ATTN_MLA",
    "FLEX_ATTENTION",
    "TREE_ATTN",
    "CUSTOM",
)
_DEFAULT_UTILIZATION = 0.92  # --gpu-memory-utilization


@dataclass(frozen=True, slots=True)
class BootFailure:
    """``mark``: where the boot stops. ``frames``: innermost last, each a place and its code."""

    mark: str
    error: str
    frames: tuple[tuple[str, str], ...]
    process: Literal["engine", "api"] = "engine"


def boot_failure(given: ServeArguments, facts: BootFacts) -> BootFailure | None:
    """What ends this boot: --sim-fail, or flags that end it in reality too; None when it succeeds."""
    chosen = _MAKERS.get(given.sim.fail)
    if chosen is not None:
        return chosen(facts)
    if facts.impossible:
        return _graphs(facts)
    return next((make(facts) for applies, make in _CAUSES if applies(facts)), None)


def tell(log: Log, failure: BootFailure) -> None:
    """The log of a failed boot, up to the API server's own traceback."""
    if failure.process == "api":
        log.api_raw(_api_stack(log, failure.frames) + failure.error)
        return
    stack = _engine_stack(failure.frames) + failure.error
    log.engine("core.py:1349", f"EngineCore failed to start.\n{stack}", "ERROR")
    for rank, name in enumerate(log.names):
        log.engine_raw(f"Process {name}:\n{stack}", rank)
    tell_engine_lost(log, "{}")


def tell_engine_lost(log: Log, processes: str) -> None:
    """What the API server says of an engine that didn't start. ``processes``: a Python dict's text."""
    frame = _worker("v1/engine/utils.py", 1272, "wait_for_engine_startup", "raise RuntimeError(")
    text = "Engine core initialization failed. See root cause above. Failed core proc(s): "
    log.api_raw(_api_stack(log, (frame,)) + f"RuntimeError: {text}{processes}")


def port_taken(log: Log, error: OSError) -> None:
    """The API server's traceback of a failed bind."""
    module = _entry(log)
    if log.release.since("0.32.0"):
        module = f"{_SITE}/entrypoints/launchers/launcher.py"
    frames = (
        (f'{module}", line 398, in setup_server', "sock = create_server_socket(sock_addr)"),
        (f'{module}", line 348, in create_server_socket', "sock.bind(addr)"),
    )
    log.api_raw(_api_stack(log, frames) + f"OSError: [Errno {error.errno}] {error.strerror}")


def interrupted(log: Log) -> None:
    """The API server's tracebacks of a boot that SIGINT ended."""
    cancelled = _api_stack(log, ()) + "asyncio.exceptions.CancelledError"
    again = "During handling of the above exception, another exception occurred:"
    runner = _frame(
        '/usr/local/lib/python3.11/asyncio/runners.py", line 123, in run', "raise KeyboardInterrupt()"
    )
    log.api_raw(f"{cancelled}\n\n{again}\n\n{_HEAD}{runner}KeyboardInterrupt")


def _frame(place: str, code: str) -> str:
    return f'  File "{place}\n    {code}\n'


def _engine_stack(frames: tuple[tuple[str, str], ...]) -> str:
    outer = (
        (f'{_SITE}/v1/engine/core.py", line 1318, in run_engine_core', "engine_core = EngineCoreProc("),
        (f'{_SITE}/v1/engine/core.py", line 123, in __init__', "self.model_executor = executor_class("),
    )
    return _HEAD + "".join(_frame(*frame) for frame in (*outer, *frames))


def _entry(log: Log) -> str:
    """The API server's module."""
    name = "launchers/api_server/entry.py" if log.release.since("0.30.0") else "openai/api_server.py"
    return f"{_SITE}/entrypoints/{name}"


def _api_stack(log: Log, frames: tuple[tuple[str, str], ...]) -> str:
    outer = (
        ('/opt/vllm/bin/vllm", line 8, in <module>', "sys.exit(main())"),
        (f'{_SITE}/entrypoints/cli/serve.py", line 148, in cmd', "uvloop.run(run_server(args))"),
        (f'{_entry(log)}", line 663, in run_server', "await run_server_worker("),
    )
    return _HEAD + "".join(_frame(*frame) for frame in (*outer, *frames))


def _worker(module: str, line: int, function: str, code: str) -> tuple[str, str]:
    return f'{_SITE}/{module}", line {line}, in {function}', code


_LOAD = _worker("v1/worker/gpu_worker.py", 384, "load_model", "self.model_runner.load_model(")


def _graphs(facts: BootFacts) -> BootFailure:
    frame = _worker(
        "config/compilation.py", 1402, "resolve_cudagraph_mode_and_sizes", "raise ValueError(msg)"
    )
    return BootFailure("kv", f"ValueError: {facts.impossible}", (frame,))


def _oom(facts: BootFacts) -> BootFailure:
    error = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity "
        f"of {facts.shape.total_gib:.2f} GiB of which 812.00 MiB is free. Including non-PyTorch memory, this "
        f"process has {facts.shape.total_gib * 0.81:.2f} GiB memory in use."
    )
    return BootFailure("weights", error, (_LOAD,))


def _linear(facts: BootFacts) -> BootFailure:
    backend = facts.chosen.get("linear_backend", "flashinfer_b12x")
    error = (
        f"ValueError: --linear-backend={backend} was requested but no '{backend}' kernel exists for this "
        "layer type."
    )
    module = "model_executor/kernels/linear/__init__.py"
    frame = _worker(module, 590, "choose_scaled_mm_linear_kernel", "raise ValueError(")
    return BootFailure("layers", error, (_LOAD, frame))


def _moe(facts: BootFacts) -> BootFailure:
    module = "model_executor/layers/fused_moe/oracle/nvfp4.py"
    frame = _worker(module, 412, "convert_to_nvfp4_moe_kernel_format", "scales = scales.reshape(rows, -1)")
    error = "RuntimeError: shape '[344064, 116]' is invalid for input of size 41287680"
    return BootFailure("weights", error, (_LOAD, frame))


def _marlin(facts: BootFacts) -> BootFailure:
    error = (
        "ValueError: moe_backend='marlin' is not supported for unquantized MoE. Expected one of "
        f"{_UNQUANTIZED}."
    )
    module = "model_executor/layers/fused_moe/oracle/unquantized.py"
    frame = _worker(module, 161, "map_unquantized_backend", "raise ValueError(")
    mark = "drafter" if facts.speculative else "layers"
    return BootFailure(mark, error, (_LOAD, frame))


def _kv(facts: BootFacts) -> BootFailure:
    """When the flags don't make it too small, the failing cache holds half of one request."""
    wanted = facts.max_model_len
    tokens = facts.kv_tokens if wanted > facts.kv_tokens else max(wanted // 2, 1)
    available = facts.shape.kv_gib * tokens / facts.kv_tokens
    needed = facts.shape.kv_gib * wanted / facts.kv_tokens
    error = (
        f"ValueError: To serve at least one request with the model's max seq len ({wanted}), ({needed:.2f} "
        "GiB KV cache is needed, which is larger than the available KV cache memory "
        f"({available:.2f} GiB). Based on the available memory, the estimated maximum model length is "
        f"{tokens}. Try increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU "
        "backend) or decreasing `max_model_len` when initializing the engine. See "
        "https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
    )
    frame = _worker("v1/core/kv_cache_utils.py", 778, "_check_enough_kv_cache_memory", "raise ValueError(")
    return BootFailure("kv", error, (frame,))


def _memory(facts: BootFacts) -> BootFailure:
    """Free memory is a little below what the flags ask for."""
    utilization = float(facts.chosen.get("gpu_memory_utilization", _DEFAULT_UTILIZATION))
    wanted = utilization * facts.shape.total_gib
    error = (
        f"ValueError: Free memory on device cuda:0 ({wanted * 0.6:.2f}/{facts.shape.total_gib:.2f} GiB) on "
        f"startup is less than desired GPU memory utilization ({utilization}, {wanted:.2f} GiB). Decrease "
        "GPU memory utilization or reduce GPU memory used by other processes."
    )
    frame = _worker("v1/worker/utils.py", 419, "request_memory", "raise ValueError(")
    return BootFailure("device", error, (frame,))


def _attention(facts: BootFacts) -> BootFailure:
    error = f"ValueError: Unknown attention backend: '{facts.backend}'. Valid options are: "
    module = "v1/attention/backends/registry.py"
    frame = _worker(module, 28, "__getitem__", "raise ValueError(")
    return BootFailure("config", error + ", ".join(_BACKENDS), (frame,), "api")


_MAKERS: dict[str, Callable[[BootFacts], BootFailure]] = {
    "engine-oom": _oom,
    "b12x-linear": _linear,
    "b12x-moe": _moe,
    "marlin-mtp": _marlin,
    "kv-too-small": _kv,
    "free-memory": _memory,
}


def _linear_missing(facts: BootFacts) -> bool:
    backend = str(facts.chosen.get("linear_backend", "auto"))
    return backend.endswith("b12x") and not facts.release.since("0.28.0")


def _moe_misshapen(facts: BootFacts) -> bool:
    return facts.moe_backend == "FLASHINFER_B12X"


def _marlin_for_mtp(facts: BootFacts) -> bool:
    early = not facts.release.since("0.19.0")
    return early and facts.method == "mtp" and facts.moe_backend == "MARLIN"


def _kv_too_small(facts: BootFacts) -> bool:
    return facts.max_model_len > facts.kv_tokens


def _backend_unknown(facts: BootFacts) -> bool:
    return "attention_backend" in facts.chosen and facts.backend not in _BACKENDS


_CAUSES: tuple[tuple[Callable[[BootFacts], bool], Callable[[BootFacts], BootFailure]], ...] = (
    (_backend_unknown, _attention),
    (_linear_missing, _linear),
    (_moe_misshapen, _moe),
    (_marlin_for_mtp, _marlin),
    (_kv_too_small, _kv),
)

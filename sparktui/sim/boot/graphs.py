"""Which CUDA graphs a boot ends up with: asked for, allowed by the backend, said in the log.

The order of decisions is vLLM's ``resolve_cudagraph_mode_and_sizes`` (0.27.1 and 0.32.0 read); what
FlashInfer supports by release and GPU comes from its ``get_cudagraph_support``; the warning is as recorded on
an H200.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from sparktui.sim.arguments import ServeArguments
from sparktui.sim.model.capture import capture_sizes
from sparktui.sim.model.truth import BootShape, GraphMode
from sparktui.sim.release import Release

Runner = Literal["V1", "V2"]
_WANTED = "FULL_AND_PIECEWISE"
_MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
_VLLM_COMPILE = 3
_V2_SPEC = ("eagle", "eagle3", "mtp", "dflash", "dspark")  # 0.24 to 0.30; 0.32 has the list of the others
_NOT_V2_SPEC = ("suffix", "medusa", "mlp_speculator", "custom_class")
_CLASSES = {
    "FLASHINFER": "FlashInferBackend",
    "FLASH_ATTN": "FlashAttentionBackend",
    "TRITON_ATTN": "TritonAttentionBackend",
    "FLEX_ATTENTION": "FlexAttentionBackend",
}


class Support(IntEnum):
    """AttentionCGSupport: what of a step a backend can capture whole."""

    NEVER = 0
    UNIFORM_SINGLE_TOKEN_DECODE = 1
    UNIFORM_BATCH = 2
    ALWAYS = 3


class GraphsImpossible(ValueError):
    """FULL graphs were asked for and the backend has none: the boot fails with this text."""


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """``wanted``: the mode asked for, which the config dump and the table's header go on showing.

    ``mode``: what decode steps run as. ``warnings``: the log's lines about it, in order.
    """

    mode: GraphMode
    wanted: str
    warnings: tuple[str, ...] = ()
    runner: Runner = "V1"
    fallback: str = ""  # what model runner V2 doesn't support, as its warning names it
    sizes: tuple[int, ...] = ()  # captured token counts, ascending
    full_sizes: tuple[int, ...] = ()  # of those, the ones captured as whole decode steps

    @property
    def warning(self) -> str | None:
        """The last warning: the one that says what the mode came down to."""
        return self.warnings[-1] if self.warnings else None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What of a command line decides about graphs. ``k``: num_speculative_tokens, 0: off."""

    backend: str
    k: int
    eager: bool
    level: int | None  # --optimization-level
    compilation: Mapping[str, Any]


def plan(release: Release, shape: BootShape, given: ServeArguments) -> GraphPlan:
    """Raises GraphsImpossible."""
    asked = _Asked(
        attention_backend(shape, given),
        given.k,
        given.eager,
        given.get("optimization_level", None),
        given.get("compilation_config", {}),
    )
    wanted, notes = _requested(asked)
    runner, fallback = model_runner(release, shape, given.method)
    mode, warnings = _resolve(wanted, _weakest(release, shape, asked.backend), asked.k)
    effective: GraphMode = "none" if mode == "NONE" else "piecewise" if mode == "PIECEWISE" else "full"
    sizes = capture_sizes(given.max_num_seqs, given.k, effective)
    longest = given.max_num_seqs * (1 + given.k) if effective == "full" else 0
    full = tuple(size for size in sizes if size <= longest)
    return GraphPlan(effective, wanted, (*notes, *warnings), runner, fallback, sizes, full)


def attention_backend(shape: BootShape, given: ServeArguments) -> str:
    """In vLLM's spelling: the one asked for, else the model's."""
    return str(given.get("attention_backend", shape.attention_backend)).upper()


def model_runner(release: Release, shape: BootShape, method: str) -> tuple[Runner, str]:
    """The model runner, and what kept V2 from being it. VLLM_USE_V2_MODEL_RUNNER decides when it is set.

    V2 is the default for dense models from 0.24 on, for all from 0.32 on; DSpark exists in V2 alone.
    """
    forced = os.environ.get("VLLM_USE_V2_MODEL_RUNNER", "")
    if forced in ("0", "1"):
        return ("V2" if forced == "1" else "V1"), ""
    if not release.since("0.24.0"):
        return "V1", ""
    if release.since("0.32.0"):
        missing = f"speculative method '{method}'" if method in _NOT_V2_SPEC else ""
        return ("V1" if missing else "V2"), missing
    if method == "dspark":
        return "V2", ""
    if shape.mamba or shape.moe_backend:
        return "V1", ""
    if method in ("ngram", "ngram_gpu"):
        return "V1", "ngram/ngram_gpu speculative decoding"
    if method and method not in _V2_SPEC:
        return "V1", f"speculative method '{method}'"
    return "V2", ""


def _requested(asked: _Asked) -> tuple[str, list[str]]:
    """The mode asked for, and what the configuration says of it."""
    config = asked.compilation
    if asked.eager or asked.level == 0:
        return "NONE", []
    wanted = _mode_name(config.get("cudagraph_mode", "PIECEWISE" if asked.level == 1 else _WANTED))
    compile_mode = config.get("mode", _VLLM_COMPILE)
    if compile_mode != _VLLM_COMPILE and "PIECEWISE" in wanted:
        text = (
            f"Cudagraph mode CUDAGraphMode.{wanted} is not compatible with compilation mode {compile_mode}."
        )
        return "NONE", [f"{text}Overriding to NONE."]
    return wanted, []


def _mode_name(value: object) -> str:
    """``full``, ``FULL`` and 2 are the same mode; an unknown one is the default."""
    name = _MODES[value] if isinstance(value, int) and 0 <= value < 3 else str(value).upper()
    return name if name in _MODES else _WANTED


def _weakest(release: Release, shape: BootShape, backend: str) -> tuple[str, Support]:
    """The layers that support least, attention or Mamba, by their backend's class."""
    name = _CLASSES.get(backend, backend.title().replace("_", "") + "Backend")
    found = _backend_support(release, shape.capability, backend)
    if shape.mamba and found > Support.UNIFORM_BATCH:
        return "Mamba2AttentionBackend", Support.UNIFORM_BATCH
    return name, found


def _backend_support(release: Release, capability: str, backend: str) -> Support:
    if backend == "FLASHINFER":
        return _flashinfer(release, int(capability.partition(".")[0]))
    if backend in ("TRITON_ATTN", "FLEX_ATTENTION"):
        return Support.ALWAYS
    if backend == "FLASH_ATTN":  # version 3 on sm_90, 2 on others
        return Support.ALWAYS if capability.startswith("9.") else Support.UNIFORM_BATCH
    if backend in ("CUTLASS_MLA", "TRITON_MLA"):
        later = backend == "TRITON_MLA" and release.since("0.33.0")
        return Support.UNIFORM_BATCH if later else Support.UNIFORM_SINGLE_TOKEN_DECODE
    return Support.UNIFORM_BATCH if "MLA" in backend else Support.NEVER


def _flashinfer(release: Release, major: int) -> Support:
    """From its first release with whole graphs for several tokens: 0.28 on sm_12x, 0.32 on sm_90, …"""
    since = {10: "0.13.0", 12: "0.28.0", 9: "0.32.0"}.get(major, "0.33.0")
    return Support.UNIFORM_BATCH if release.since(since) else Support.UNIFORM_SINGLE_TOKEN_DECODE


def _resolve(mode: str, weakest: tuple[str, Support], k: int) -> tuple[str, list[str]]:
    """The mode in effect and its warnings, in vLLM's order of checks."""
    name, support = weakest
    said = f"(support: AttentionCGSupport.{support.name})"
    warnings: list[str] = []
    if mode == "FULL" and support is not Support.ALWAYS:
        text = f"CUDAGraphMode.FULL is not supported with {name} backend {said}"
        if support is Support.NEVER:
            advice = "please try cudagraph_mode=PIECEWISE, and make sure compilation mode is VLLM_COMPILE"
            raise GraphsImpossible(f"{text}; {advice}")
        warnings.append(f"{text}; setting cudagraph_mode=FULL_AND_PIECEWISE")
        mode = _WANTED
    if mode.startswith("FULL") and support is Support.NEVER:
        text = f"CUDAGraphMode.{mode} is not supported with {name} backend {said}"
        warnings.append(f"{text}; setting cudagraph_mode=PIECEWISE because attention is compiled piecewise")
        mode = "PIECEWISE"
    if mode.startswith("FULL") and k and support < Support.UNIFORM_BATCH:
        text = f"CUDAGraphMode.{mode} is not supported with spec-decode for attention backend {name} {said}"
        warnings.append(f"{text}; setting cudagraph_mode=PIECEWISE")
        mode = "PIECEWISE"
    return mode, warnings

"""What the boot log has to say, taken from the arguments and the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sparktui.sim.arguments import ServeArguments
from sparktui.sim.boot.graphs import GraphPlan, GraphsImpossible, attention_backend, plan
from sparktui.sim.model.truth import BootShape, Truth
from sparktui.sim.release import Release

_MODEL_LEN = 32768
_NO_GRAPHS = GraphPlan("none", "NONE")


@dataclass(frozen=True, slots=True)
class BootFacts:
    """What the lines say. ``seconds``: the modelled machine's whole boot; printed times are shares of it."""

    model: str
    shown_args: dict[str, Any]
    seconds: float
    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    kv_tokens: int
    backend: str  # attention backend, in vLLM's spelling
    speculative: dict[str, Any] | None = None
    method: str = ""  # of speculation; empty when off
    k: int = 0  # num_speculative_tokens; 0 when off
    eager: bool = False
    prefix_caching: bool = True
    chosen: dict[str, Any] = field(default_factory=dict)  # flags set by hand that lines repeat
    release: Release = field(default_factory=Release)
    shape: BootShape = field(default_factory=BootShape)
    plan: GraphPlan = _NO_GRAPHS
    engines: int = 1  # data_parallel_size
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    impossible: str = ""  # why the graphs asked for cannot be had: the boot fails

    @property
    def moe_backend(self) -> str:
        """In vLLM's spelling; empty for a dense model."""
        chosen = str(self.chosen.get("moe_backend", "auto"))
        return (self.shape.moe_backend if chosen == "auto" else chosen).upper()


_CHOSEN = (
    "moe_backend",
    "linear_backend",
    "attention_backend",
    "mamba_backend",
    "mamba_ssu_algorithm",
    "kv_cache_dtype",
    "gpu_memory_utilization",
    "async_scheduling",
)


def boot_facts(given: ServeArguments, truth: Truth) -> BootFacts:
    """The boot of one command line."""
    shape, impossible, graphs = truth.boot, "", _NO_GRAPHS
    try:
        graphs = plan(given.release, shape, given)
    except GraphsImpossible as error:
        impossible = str(error)
    hides_key = given.release.since("0.32.0")  # 0.27.1 writes the key into its log
    hidden = {"api_key": "***"} if hides_key and "api_key" in given.given else {}
    return BootFacts(
        model=given.model,
        shown_args=given.given | hidden,
        seconds=shape.seconds,
        max_model_len=_max_model_len(given, truth),
        max_num_batched_tokens=int(given.get("max_num_batched_tokens", 8192)),
        max_num_seqs=given.max_num_seqs,
        kv_tokens=truth.kv_cache_tokens,
        backend=attention_backend(shape, given),
        speculative=given.speculative,
        method=given.method,
        k=given.k,
        eager=given.eager,
        prefix_caching=bool(given.get("enable_prefix_caching", True)),
        chosen={name: given.given[name] for name in _CHOSEN if name in given.given},
        release=given.release,
        shape=shape,
        plan=graphs,
        engines=given.engines,
        tensor_parallel=int(given.get("tensor_parallel_size", 1)),
        pipeline_parallel=int(given.get("pipeline_parallel_size", 1)),
        impossible=impossible,
    )


def boot_wait_s(given: ServeArguments, facts: BootFacts) -> float:
    """How long the boot takes here: the modelled one at --boot-speed, else --sim-boot-seconds."""
    speed = given.sim.boot_speed
    return facts.seconds / speed if speed else given.sim.boot_seconds


def _max_model_len(given: ServeArguments, truth: Truth) -> int:
    """As asked; -1 (auto), like no flag at all: the model's 32,768, or what the KV cache holds."""
    asked = int(given.get("max_model_len", -1))
    return asked if asked > 0 else min(_MODEL_LEN, truth.kv_cache_tokens)

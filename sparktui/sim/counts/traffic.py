"""What a step reads and writes in a GPU's memory, for ``vllm:estimated_…_per_gpu`` (--enable-mfu-metrics).

vLLM derives it from the model's configuration, layer by layer (vllm/v1/metrics/perf.py). Here, the same parts
as sums: all weights once a step, the KV cache of the context that is looked at, the KV of each scheduled
token. A drafter's weights are not in it, as they are not in vLLM's.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparktui.sim.model.requests import Step
from sparktui.sim.model.truth import BootShape

_GIB = 2.0**30
_FLOPS_PER_BYTE = 2.0  # a multiplication and an addition for a weight of one byte


@dataclass(frozen=True, slots=True)
class Traffic:
    """Of one GPU. ``weights``: bytes of the model; ``token``: bytes of KV cache that one token takes."""

    weights: float
    token: float

    @classmethod
    def of(cls, shape: BootShape, kv_tokens: int, gpus: int) -> Traffic:
        """``gpus``: that share one engine's model."""
        token = shape.kv_gib * _GIB / kv_tokens
        return cls(shape.weights_gib * _GIB / gpus, token / gpus)

    def read(self, step: Step) -> float:
        """Bytes."""
        return self.weights + self.token * (step.context + step.prompt_tokens)

    def written(self, step: Step) -> float:
        """Bytes."""
        return self.token * step.scheduled_tokens

    def flops(self, step: Step) -> float:
        """Floating point operations, the attention's own left out."""
        return _FLOPS_PER_BYTE * self.weights * step.scheduled_tokens

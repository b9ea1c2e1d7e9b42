"""What the stand-in's engine does: one machine with one model, as figures that a user can measure.

``Truth()`` is the shipped model file nemotron-lightning-gb10: a published deployment of vLLM 0.27.1 with
77.5 tok/s without speculation and 41 with k=3 at 53.7 % accepted, one stream. The comments of that file tell
what was published and what is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sparktui.sim.model.curve import Curve

GraphMode = Literal["full", "piecewise", "none"]
PrefixCacheKind = Literal["on", "useless"]
Chain = tuple[float, ...]
_LEAST_STEP = 0.3  # of the nearest measured step: where a line through two of them would leave the plausible


@dataclass(frozen=True, slots=True)
class ModeCost:
    """How long a decode step takes in each graph mode, relative to each other."""

    full: float = 1.0
    piecewise: float = 2.5
    none: float = 3.0

    def of(self, mode: GraphMode) -> float:
        return {"full": self.full, "piecewise": self.piecewise, "none": self.none}[mode]


@dataclass(frozen=True, slots=True)
class BootShape:
    """What a boot's log says of the machine and the model. GiB; ``seconds``: a real boot."""

    seconds: float = 300.0
    weights_gib: float = 18.12
    drafter_gib: float = 1.0
    kv_gib: float = 40.05
    total_gib: float = 119.6
    shards: int = 5
    architecture: str = "NemotronHForCausalLM"
    capability: str = "12.1"
    attention_backend: str = "FLASHINFER"
    moe_backend: str = "FLASHINFER_CUTLASS"
    mamba: bool = True
    quantization: str = "modelopt_fp4"


@dataclass(frozen=True, slots=True)
class GpuShape:
    """What the sensors show. ``power_w``: by running requests; ``utilization``: 0 to 1, when busy."""

    name: str = "NVIDIA GB10"
    idle_w: float = 5.0
    power_w: Curve = field(default_factory=lambda: Curve(((1, 32.0), (32, 60.0), (256, 80.0))))
    idle_clock_mhz: float = 208.0
    clock_mhz: float = 2405.0
    max_clock_mhz: float = 3003.0
    utilization: float = 0.94
    idle_c: float = 40.0
    busy_c: float = 62.0  # after minutes at one running request's power


def _off() -> Curve:
    return Curve(((1, 12.903), (8, 14.71), (32, 20.9), (256, 78.71)))


def _on() -> dict[int, Curve]:
    return {
        2: Curve(((1, 56.2), (8, 79.8), (32, 160.7), (256, 916.0))),
        3: Curve(((1, 63.683), (8, 90.43), (32, 182.1), (256, 1038.0))),
        4: Curve(((1, 92.0), (8, 130.6), (32, 263.1), (256, 1500.0))),
    }


def _measured() -> dict[int, Chain]:
    return {
        1: (0.750,),
        2: (0.738, 0.510),
        3: (0.750, 0.520, 0.341),
        4: (0.750, 0.520, 0.341, 0.197),
    }


def _greedy() -> dict[int, Chain]:
    return {3: (0.800, 0.590, 0.410)}


@dataclass(frozen=True, slots=True)
class Truth:
    """One machine and model. Steps in milliseconds by number of decoding requests; see docs/sim.md."""

    name: str = "nemotron-lightning-gb10"
    about: str = "Nemotron 3.5 Lightning 30B-A3B on a GB10: speculation halves the speed"
    off_step_ms: Curve = field(default_factory=_off)
    off_graphs: GraphMode = "full"  # in which mode the figures were measured
    on_step_ms: Mapping[int, Curve] = field(default_factory=_on)  # by k
    on_graphs: GraphMode = "piecewise"
    mode_cost: ModeCost = field(default_factory=ModeCost)
    context_ms: float = 0.02  # what a step grows by for each 1000 tokens of context in it
    prefill_tok_s: float = 4000.0
    accepted: Mapping[int, Chain] = field(default_factory=_measured)  # by k, unconditional
    greedy: Mapping[int, Chain] = field(default_factory=_greedy)  # by k; empty: as measured
    sampled_at: float = 1.0  # the temperature from which on ``accepted`` holds
    kv_cache_tokens: int = 656_128
    state_tokens: int = 0  # KV cache that one recurrent state takes; a sequence holds 1 + k of them
    natural_mean: float = 400.0  # tokens of an answer without ignore_eos
    natural_sd: float = 100.0
    prefix_cache: PrefixCacheKind = "on"
    boot: BootShape = field(default_factory=BootShape)
    gpu: GpuShape = field(default_factory=GpuShape)

    def acceptance(self, k: int, temperature: float | None = None) -> Chain:
        """Probability that each of ``k`` draft positions is accepted, unconditional.

        Without a temperature: as measured. From temperature 0 (``greedy``) to ``sampled_at`` it moves in a
        straight line, and stays there.
        """
        sampled = _chain(self.accepted, k)
        if temperature is None or temperature >= self.sampled_at or not self.greedy:
            return sampled
        share = max(temperature, 0.0) / self.sampled_at
        best = _chain(self.greedy, k)
        return tuple(low * share + high * (1.0 - share) for low, high in zip(sampled, best, strict=True))

    def tokens_per_step(self, k: int, temperature: float | None = None) -> float:
        """Mean tokens a decode step yields for one request: 1 with k = 0."""
        return 1.0 + sum(self.acceptance(k, temperature))

    def default_graphs(self, k: int) -> GraphMode:
        """The mode in which the figures for ``k`` were measured."""
        return self.on_graphs if k else self.off_graphs

    def step_s(
        self, k: int, batch: int = 1, *, context: float = 0.0, graphs: GraphMode | None = None
    ) -> float:
        """Seconds of one decode step, without noise. ``k`` = 0: speculation off. ``context``: tokens, summed.

        ``graphs``: None for the mode in which the figures were measured.
        """
        step = self._table_ms(k, max(batch, 1))
        if graphs is not None:
            step *= self.mode_cost.of(graphs) / self.mode_cost.of(self.default_graphs(k))
        return (step + self.context_ms * context / 1000.0) / 1000.0

    def decode_tok_s(self, k: int, batch: int = 1, *, graphs: GraphMode | None = None) -> float:
        """Expected decode tok/s of each stream: 77.5 off, 41 with k = 3, at batch 1."""
        return self.tokens_per_step(k) / self.step_s(k, batch, graphs=graphs)

    def _table_ms(self, k: int, batch: int) -> float:
        """Measured, else on the line through the two nearest k at this batch; off counts when only one is."""
        if k <= 0:
            return self.off_step_ms.at(batch)
        if k in self.on_step_ms:
            return self.on_step_ms[k].at(batch)
        known = {key: curve.at(batch) for key, curve in self.on_step_ms.items()}
        if len(known) < 2:
            known[0] = self.off_step_ms.at(batch)
        near, next_ = sorted(sorted(known, key=lambda key: abs(key - k))[:2])
        slope = (known[next_] - known[near]) / (next_ - near)
        step = known[near] + slope * (k - near)
        return max(step, _LEAST_STEP * min(known[near], known[next_]))


def _chain(table: Mapping[int, Chain], k: int) -> Chain:
    """``k`` positions: as measured, else cut from the next longer one, else the longest one continued."""
    if k <= 0:
        return ()
    if k in table:
        return table[k]
    longer = [key for key in table if key > k]
    if longer:
        return table[min(longer)][:k]
    chain = list(table[max(table)])
    conditional = chain[-1] / chain[-2] if len(chain) > 1 and chain[-2] > 0 else chain[-1]
    while len(chain) < k:
        chain.append(chain[-1] * conditional)
    return tuple(chain)


def true_ratio(k: int = 3, batch: int = 1, truth: Truth | None = None) -> float:
    """Expected on/off ratio of decode tok/s per stream: 0.529 for the default model."""
    model = truth or Truth()
    return model.decode_tok_s(k, batch) / model.decode_tok_s(0, batch)

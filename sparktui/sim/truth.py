"""What the stand-in's engine is calibrated to: one published deployment of vLLM 0.27.1, and assumptions.

Published: 77.5 tok/s without speculation, 41 with k=3 at 53.7 % accepted, one stream. Everything marked
"assumed" only makes the model move the right way (with load, k, graph mode); nobody measured it.
"""

from __future__ import annotations

from dataclasses import dataclass

# Unconditional acceptance by position. k=2 and k=4 reproduce the acceptance rates of 62.4 % and 45.2 %.
_CHAINS: dict[int, tuple[float, ...]] = {
    1: (0.750,),
    2: (0.738, 0.510),
    3: (0.750, 0.520, 0.341),
    4: (0.750, 0.520, 0.341, 0.197),
}
_LATER_CONDITIONAL = 0.58  # assumed: chance of position i > 4 once i-1 is accepted


@dataclass(frozen=True, slots=True)
class Truth:
    """Constants of the engine model. Seconds and tokens per second; costs are relative, per extra request."""

    off_tok_s: float = 77.5
    on_tok_s: float = 41.0  # k = 3, PIECEWISE graphs
    reference_k: int = 3
    step_per_draft: float = 0.08  # assumed: step grows by this a draft token, relative to k = 3
    full_graph_factor: float = 0.4  # assumed: the same step when the backend keeps FULL graphs
    batch_cost_off: float = 0.02  # assumed
    batch_cost_on: float = 0.06  # assumed
    prefill_tok_s: float = 4000.0  # assumed
    kv_cache_tokens: int = 656_128
    natural_mean: float = 400.0  # tokens of an answer without ignore_eos, assumed
    natural_sd: float = 100.0

    def acceptance(self, k: int) -> tuple[float, ...]:
        """Unconditional acceptance probability of each of ``k`` draft positions."""
        if k in _CHAINS:
            return _CHAINS[k]
        chain = list(_CHAINS[4][: max(k, 0)])
        while len(chain) < k:
            chain.append(chain[-1] * _LATER_CONDITIONAL)
        return tuple(chain)

    def tokens_per_step(self, k: int) -> float:
        """Mean tokens a decode step yields for one request: 1 with k = 0."""
        return 1.0 + sum(self.acceptance(k))

    def step_s(self, k: int, batch: int = 1, *, full_graphs: bool = False) -> float:
        """Seconds of one decode step, without noise. ``k`` = 0: speculation off."""
        extra = max(batch - 1, 0)
        if k == 0:
            return (1.0 + self.batch_cost_off * extra) / self.off_tok_s
        reference = self.tokens_per_step(self.reference_k) / self.on_tok_s
        step = reference * (1.0 + self.step_per_draft * (k - self.reference_k))
        if full_graphs:
            step *= self.full_graph_factor
        return step * (1.0 + self.batch_cost_on * extra)

    def decode_tok_s(self, k: int, batch: int = 1, *, full_graphs: bool = False) -> float:
        """Expected decode tok/s of each stream: 77.5 off, 41 with k = 3, at batch 1."""
        return self.tokens_per_step(k) / self.step_s(k, batch, full_graphs=full_graphs)


def true_ratio(k: int = 3, batch: int = 1, truth: Truth | None = None) -> float:
    """Expected on/off ratio of decode tok/s per stream: 0.529 for the defaults."""
    model = truth or Truth()
    return model.decode_tok_s(k, batch) / model.decode_tok_s(0, batch)

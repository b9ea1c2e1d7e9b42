"""CUDA graph capture sizes, and which graph a step runs in: what vLLM's ``--cudagraph-metrics`` table counts.

Sizes as vLLM 0.24.0 captured them on an H200: 51 PIECEWISE ones up to 512; 49 and 33 FULL ones up to 256 with
k=3 and 64 sequences; 128 the largest without speculation and 64 sequences.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

from sparktui.sim.model.truth import GraphMode

RunMode = Literal["FULL", "PIECEWISE", "NONE"]
_LARGEST = 512
_STEPS = (1, 2, 4, *range(8, 256, 8), *range(256, _LARGEST + 1, 16))


def capture_sizes(max_num_seqs: int, k: int, graphs: GraphMode) -> tuple[int, ...]:
    """Token counts with a graph, ascending. Multiples of 1 + k where whole decode steps are captured."""
    largest = min(_LARGEST, max_num_seqs * 2 * (1 + k))
    if graphs == "none":
        return ()
    grain = 1 + k if graphs == "full" else 1
    rounded = {-(-size // grain) * grain for size in _STEPS}
    return tuple(sorted(size for size in rounded if size <= largest))


@dataclass(frozen=True, slots=True)
class Graphs:
    """The graphs of one engine. ``full_up_to``: the largest decode step, in tokens, that is one graph."""

    sizes: tuple[int, ...]
    full_up_to: int

    @classmethod
    def of(cls, max_num_seqs: int, k: int, graphs: GraphMode) -> Graphs:
        sizes = capture_sizes(max_num_seqs, k, graphs)
        return cls(sizes, min(max_num_seqs * (1 + k), _LARGEST) if graphs == "full" else 0)

    def run(self, tokens: int, *, uniform: bool) -> tuple[RunMode, int]:
        """Mode and padded tokens of a step. ``uniform``: decoding only, 1 + k tokens for each request."""
        place = bisect_left(self.sizes, tokens)
        if place == len(self.sizes):
            return "NONE", tokens
        full = uniform and tokens <= self.full_up_to
        return ("FULL" if full else "PIECEWISE"), self.sizes[place]

"""What one engine's statistics log knows: sums since boot, the last interval. Counter resets spare it."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

from sparktui.sim.model.requests import Step

_RECENT_REQUESTS = 1000  # vLLM's hit rate is over the last thousand requests looked up


@dataclass(frozen=True, slots=True)
class Totals:
    """Running sums for the periodic statistics line. ``computed_tokens``: prompt tokens not from a cache."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    cache_queries: int = 0
    cache_hits: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted: tuple[int, ...] = ()
    computed_tokens: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.prompt_tokens + other.prompt_tokens,
            self.generation_tokens + other.generation_tokens,
            self.cache_queries + other.cache_queries,
            self.cache_hits + other.cache_hits,
            self.drafts + other.drafts,
            self.draft_tokens + other.draft_tokens,
            tuple(a + b for a, b in zip(self.accepted, other.accepted, strict=True)),
            self.computed_tokens + other.computed_tokens,
        )


@dataclass(frozen=True, slots=True)
class GraphStep:
    """One kind of step in the cudagraph table. ``mode``: FULL, PIECEWISE or NONE."""

    scheduled_tokens: int
    padded_tokens: int
    mode: str


class Observed:
    """Fed with every step; read once an interval."""

    def __init__(self, k: int) -> None:
        self.totals = Totals(accepted=(0,) * k)
        self.running = 0
        self.waiting = 0
        self.kv_usage = 0.0
        self._k = k
        self._lookups: deque[tuple[int, int, int]] = deque()  # requests, queries, hits
        self._recent = [0, 0, 0]
        self._graphs: Counter[GraphStep] = Counter()

    @property
    def hit_rate(self) -> float | None:
        """Share of the tokens of recent requests that the prefix cache had, 0 to 1; None before any."""
        requests, queries, hits = self._recent
        if not requests:
            return None
        return hits / queries if queries else 0.0

    def take_graphs(self) -> Counter[GraphStep]:
        """The interval's steps by kind; the next interval begins."""
        taken, self._graphs = self._graphs, Counter()
        return taken

    def see(self, step: Step) -> None:
        """Add one completed step."""
        first, queries, hits = step.first, step.cache_queries, step.cache_hits
        prompt = sum(request.prompt_tokens for request in first)
        self.totals += Totals(
            prompt,
            step.generated,
            queries,
            hits,
            step.drafts,
            step.draft_tokens,
            step.accepted or (0,) * self._k,
            prompt - sum(request.cached_tokens for request in first),
        )
        if step.admitted:
            self._look_up((len(step.admitted), queries, hits))
        if step.scheduled_tokens:
            self._graphs[GraphStep(step.scheduled_tokens, step.padded_tokens, step.mode)] += 1

    def _look_up(self, lookups: tuple[int, int, int]) -> None:
        self._change(lookups, 1)
        self._lookups.append(lookups)
        while len(self._lookups) > 1 and self._recent[0] > _RECENT_REQUESTS:
            self._change(self._lookups.popleft(), -1)

    def _change(self, lookups: tuple[int, int, int], sign: int) -> None:
        self._recent = [had + sign * more for had, more in zip(self._recent, lookups, strict=True)]

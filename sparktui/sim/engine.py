"""The engine model: continuous batching, first come first served, chain acceptance. No clock and no I/O.

Time is whatever the caller passes: seconds on any clock. A step that is due at ``Engine.due`` is completed by
``Engine.step(now)``; the next one starts at that deadline, not at ``now``, so that rates do not drift.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from sparktui.sim.truth import Truth

FinishReason = Literal["stop", "length"]
_MAX_LATENESS_S = 1.0  # further behind, the engine starts afresh instead of bursting
_NOISE_MEMORY = 0.9  # AR(1) coefficient from step to step


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """``k``: num_speculative_tokens, 0 = off. Noise: relative standard deviations."""

    k: int = 0
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    full_graphs: bool = False  # speculating without the PIECEWISE downgrade
    noise: float = 0.01  # from step to step
    restart_noise: float = 0.005  # drawn once a process
    truth: Truth = field(default_factory=Truth)


@dataclass(slots=True, eq=False)
class Request:
    """One request. ``stop_after``: natural length in tokens, None with ignore_eos. Engine's seconds."""

    id: str
    prompt_tokens: int
    max_tokens: int
    stop_after: int | None = None
    cached_tokens: int = 0
    arrived: float = 0.0
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    generated: int = 0
    preemptions: int = 0

    @property
    def context(self) -> int:
        """Tokens in the KV cache while it runs."""
        return self.prompt_tokens + self.generated


@dataclass(frozen=True, slots=True)
class Output:
    """What one step gave one request. ``gap``: seconds since its previous output, None for the first."""

    request: Request
    tokens: int
    gap: float | None
    finish_reason: FinishReason | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One completed step. ``accepted``: drafts whose position i was accepted, by i."""

    at: float
    duration: float
    outputs: tuple[Output, ...]
    prefilled: tuple[Request, ...]
    preempted: int
    drafts: int
    draft_tokens: int
    accepted: tuple[int, ...]


class Engine:
    """Requests in, steps out."""

    def __init__(self, config: EngineConfig, rng: random.Random) -> None:
        self.config = config
        self._rng = rng
        self._chain = config.truth.acceptance(config.k)
        self._process_factor = math.exp(rng.gauss(0.0, config.restart_noise))
        self._noise = 0.0
        self._waiting: deque[Request] = deque()
        self._running: list[Request] = []
        self._prefilling: list[Request] = []
        self._preempted = 0
        self._started = 0.0
        self.due: float | None = None

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def kv_usage(self) -> float:
        """Share of the KV cache in use, 0 to 1."""
        return min(1.0, self._context() / self.config.truth.kv_cache_tokens)

    def add(self, request: Request, now: float) -> None:
        """Queue a request; an idle engine starts its next step at once."""
        request.arrived = now
        self._waiting.append(request)
        if self.due is None:
            self._begin(now)

    def abort(self, request: Request) -> None:
        """Forget a request wherever it is; unknown ones are ignored."""
        for pool in (self._running, self._prefilling, self._waiting):
            if request in pool:
                pool.remove(request)

    def step(self, now: float) -> Step | None:
        """Complete the step that is due at or before ``now``; None when there is none."""
        if self.due is None or now < self.due:
            return None
        at, prefilled, preempted = self.due, tuple(self._prefilling), self._preempted
        duration = at - self._started
        accepted = [0] * len(self._chain)
        outputs, drafts = [], 0
        fresh = set(prefilled)
        for request in self._running:
            gain = 0
            if self._chain and request not in fresh:
                drafts += 1
                gain = self._accept(accepted)
            outputs.append(_deliver(request, 1 + gain, at))
        self._running = [o.request for o in outputs if o.finish_reason is None]
        self._begin(at if now - at < _MAX_LATENESS_S else now)
        draft_tokens = drafts * len(self._chain)
        return Step(at, duration, tuple(outputs), prefilled, preempted, drafts, draft_tokens, tuple(accepted))

    def _accept(self, counts: list[int]) -> int:
        """Accepted tokens of one draft: one draw for the whole chain, so that position i implies i-1."""
        draw = self._rng.random()
        gain = 0
        for position, probability in enumerate(self._chain):
            if draw >= probability:
                break
            counts[position] += 1
            gain += 1
        return gain

    def _begin(self, at: float) -> None:
        self._preempted = self._preempt()
        self._prefilling = self._admit(at)
        self._started = at
        self.due = at + self._duration() if self._running else None

    def _context(self) -> int:
        return sum(request.context for request in self._running)

    def _preempt(self) -> int:
        """Send the youngest requests back to the queue while the KV cache overflows."""
        count = 0
        while len(self._running) > 1 and self._context() > self.config.truth.kv_cache_tokens:
            request = self._running.pop()
            request.preemptions += 1
            self._waiting.appendleft(request)
            count += 1
        return count

    def _admit(self, at: float) -> list[Request]:
        admitted: list[Request] = []
        budget = self.config.max_num_batched_tokens - len(self._running) * (1 + self.config.k)
        free = self.config.truth.kv_cache_tokens - self._context()
        while self._waiting and len(self._running) < self.config.max_num_seqs:
            request = self._waiting[0]
            cost = request.context - request.cached_tokens
            if (admitted and cost > budget) or (self._running and request.context > free):
                break
            self._waiting.popleft()
            budget -= cost
            free -= request.context
            request.scheduled = at if request.scheduled is None else request.scheduled
            self._running.append(request)
            admitted.append(request)
        return admitted

    def _duration(self) -> float:
        config = self.config
        base = config.truth.step_s(config.k, len(self._running), full_graphs=config.full_graphs)
        spread = config.noise * math.sqrt(1.0 - _NOISE_MEMORY**2)
        self._noise = _NOISE_MEMORY * self._noise + self._rng.gauss(0.0, spread)
        prefill = sum(request.context - request.cached_tokens for request in self._prefilling)
        step = base * math.exp(self._noise) + prefill / config.truth.prefill_tok_s
        return step * self._process_factor


def _deliver(request: Request, tokens: int, at: float) -> Output:
    """Give ``tokens`` to the request, cut at its end."""
    limit, reason = request.max_tokens, "length"
    if request.stop_after is not None and request.stop_after <= request.max_tokens:
        limit, reason = request.stop_after, "stop"
    tokens = min(tokens, limit - request.generated)
    request.generated += tokens
    gap = None if request.last_token is None else at - request.last_token
    request.first_token = at if request.first_token is None else request.first_token
    request.last_token = at
    done = request.generated >= limit
    finish: FinishReason | None = None
    if done:
        finish = "stop" if reason == "stop" else "length"
    return Output(request, tokens, gap, finish)

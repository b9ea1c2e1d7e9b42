"""Who gets how many tokens in the next step, as vLLM's V1 scheduler decides it.

Running requests first: those that decode take 1 + k tokens, unfinished prompts a chunk of what is left; then
new ones in the order of their arrival. Where the KV cache is full the youngest goes back to the queue and
starts over.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from sparktui.sim.model.kv import BLOCK_TOKENS, KvBlocks
from sparktui.sim.model.requests import EngineConfig, Request, Seat
from sparktui.sim.model.truth import Chain


@dataclass(slots=True)
class Plan:
    """One step. ``context``: tokens of the decoding requests, summed."""

    decoding: list[Request] = field(default_factory=list)
    chunks: list[tuple[Request, int]] = field(default_factory=list)
    admitted: list[Request] = field(default_factory=list)
    preempted: int = 0
    context: int = 0
    tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        return sum(count for _, count in self.chunks)


class Scheduler:
    """The queue, the running requests and their blocks."""

    def __init__(self, config: EngineConfig) -> None:
        truth = config.truth
        self._config = config
        self._spread = 1 + config.k  # tokens that a decoding request takes in a step
        self._states = -(-truth.state_tokens * (1 + config.k) // BLOCK_TOKENS)
        self._caching = config.prefix_caching
        self._findable = config.prefix_caching and truth.prefix_cache == "on"
        self._chains: dict[float | None, Chain] = {}
        self.kv = KvBlocks(truth.kv_cache_tokens)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []

    def plan(self, at: float) -> Plan:
        """Schedule the step that begins at ``at``."""
        plan = Plan()
        budget = self._decodes(plan, max(self._config.max_num_batched_tokens, self._spread))
        budget = self._unfinished(plan, budget)
        if not plan.preempted:
            self._admit(plan, budget, at)
        plan.tokens = len(plan.decoding) * self._spread + plan.prompt_tokens
        return plan

    def computed(self, request: Request, tokens: int) -> bool:
        """Note a finished chunk; whether the whole context is there now."""
        seat = request.seat
        if seat is None:
            return False
        seat.pending -= tokens
        if self._findable and request.blocks:
            self._publish(request, seat, request.context - seat.pending)
        return seat.pending == 0

    def leave(self, request: Request) -> None:
        """Free what a running request holds. The caller takes it off the list."""
        seat, request.seat = request.seat, None
        if seat is not None:
            self.kv.give(seat.private)
            self.kv.drop(seat.shared)

    def remove(self, request: Request) -> None:
        """Forget a request wherever it is; unknown ones are ignored."""
        if request.seat is not None and request in self.running:
            self.leave(request)
            self.running.remove(request)
        elif request in self.waiting:
            self.waiting.remove(request)

    def _decodes(self, plan: Plan, budget: int) -> int:
        spread = self._spread
        for request in tuple(self.running):
            seat = request.seat
            if seat is None or seat.pending:  # preempted a moment ago, or still without its whole prompt
                continue
            if budget < spread:
                break
            context = request.prompt_tokens + request.generated
            if context + spread > seat.room and not self._grow(request, seat, context + spread, plan):
                continue
            budget -= spread
            plan.context += context
            plan.decoding.append(request)
        return budget

    def _unfinished(self, plan: Plan, budget: int) -> int:
        for request in tuple(self.running):
            seat = request.seat
            if budget <= 0:
                break
            if seat is None or not seat.pending:
                continue
            count = min(seat.pending, budget)
            budget -= count
            plan.chunks.append((request, count))
        return budget

    def _grow(self, request: Request, seat: Seat, tokens: int, plan: Plan) -> bool:
        """Give it blocks for ``tokens``, from the youngest if need be. False: it was the youngest."""
        need = -(-tokens // BLOCK_TOKENS) - seat.room // BLOCK_TOKENS
        while self.kv.free < need and len(self.running) > 1:
            victim = self.running[-1]
            self._preempt(victim, plan)
            if victim is request:
                return False
        self.kv.take(need)
        seat.private += need
        seat.room += need * BLOCK_TOKENS
        return True

    def _preempt(self, victim: Request, plan: Plan) -> None:
        self.running.pop()
        self.leave(victim)
        victim.preemptions += 1
        self.waiting.appendleft(victim)
        plan.preempted += 1
        if victim in plan.decoding:
            plan.decoding.remove(victim)
            plan.context -= victim.context

    def _admit(self, plan: Plan, budget: int, at: float) -> None:
        while self.waiting and budget > 0 and len(self.running) < self._config.max_num_seqs:
            request = self.waiting[0]
            seat = self._seat(request)
            if seat is None:
                break
            self.waiting.popleft()
            if request.scheduled is None:
                request.scheduled = max(at, request.arrived)  # a step may begin late, and be dated earlier
                if self._caching:
                    plan.admitted.append(request)
                if request.blocks:
                    request.cached_tokens = request.context - seat.pending
            request.seat = seat
            self.running.append(request)
            count = min(seat.pending, budget)
            budget -= count
            plan.chunks.append((request, count))

    def _seat(self, request: Request) -> Seat | None:
        """Blocks for a request's whole context, or None when there are too few of them."""
        keys = request.blocks[: (request.prompt_tokens - 1) // BLOCK_TOKENS] if self._findable else ()
        found = list(keys[: self.kv.hits(keys)])
        blocks = -(-request.context // BLOCK_TOKENS)
        private = blocks - len(found) + self._states
        if self.running and self.kv.free < private + self.kv.idle(found):
            return None
        self.kv.hold(found)
        self.kv.take(private)
        cached = len(found) * BLOCK_TOKENS if request.blocks else request.cached_tokens
        pending = max(1, request.context - cached)
        return Seat(self._chain(request.temperature), pending, blocks * BLOCK_TOKENS, private, found)

    def _publish(self, request: Request, seat: Seat, tokens: int) -> None:
        """Let others find the prompt's blocks that are computed by now."""
        complete = min(tokens, request.prompt_tokens) // BLOCK_TOKENS
        for key in request.blocks[len(seat.shared) : complete]:
            if not self.kv.publish(key):
                break
            seat.shared.append(key)
            seat.private -= 1

    def _chain(self, temperature: float | None) -> Chain:
        chain = self._chains.get(temperature)
        if chain is None:
            if len(self._chains) > 1000:  # temperatures come from outside
                self._chains.clear()
            chain = self._config.truth.acceptance(self._config.k, temperature)
            self._chains[temperature] = chain
        return chain

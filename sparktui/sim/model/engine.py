"""The engine model: continuous batching, first come first served, chain acceptance. No clock and no I/O.

Time is whatever the caller passes: seconds on any clock. A step that is due at ``Engine.due`` is completed by
``Engine.step(now)``; the next one starts at that deadline, not at ``now``, so that rates do not drift.
"""

from __future__ import annotations

import math
import random

from sparktui.sim.model.capture import Graphs
from sparktui.sim.model.power import GpuMeter, GpuReading
from sparktui.sim.model.requests import EngineConfig, FinishReason, Output, Request, Step, deliver
from sparktui.sim.model.scheduler import Plan, Scheduler

__all__ = ["Engine", "EngineConfig", "FinishReason", "Output", "Request", "Step"]

_MAX_LATENESS_S = 1.0  # further behind, the engine starts afresh instead of bursting
_MOST_DRIFT = math.log(1000.0)
_NOISE_MEMORY = 0.9  # AR(1) coefficient from step to step


class Drift:
    """A rate of slowing down, compounding since the first step that it meets, up to a limit."""

    def __init__(self, per_s: float = 0.0) -> None:
        self.per_s = per_s
        self._since: float | None = None

    def at(self, now: float) -> float:
        """What multiplies the time of a step that begins ``now``."""
        if not self.per_s:
            return 1.0
        if self._since is None:
            self._since = now
        grown = self.per_s * (now - self._since)
        return math.exp(max(-_MOST_DRIFT, min(_MOST_DRIFT, grown)))


class Engine:
    """Requests in, steps out.

    What may be set while it runs: ``slowdown`` multiplies the time of a step and lowers the clock;
    ``drift_per_s`` lets steps grow by this share a second, compounding, until it is 0 again.
    """

    def __init__(self, config: EngineConfig, rng: random.Random) -> None:
        truth = config.truth
        self.config = config
        self.slowdown = 1.0
        self.due: float | None = None
        self._rng = rng
        self._scheduler = Scheduler(config)
        graphs = config.graphs or truth.default_graphs(config.k)
        self._graphs = Graphs.of(config.max_num_seqs, config.k, graphs)
        self._meter = GpuMeter(truth.gpu)
        self._process_factor = math.exp(rng.gauss(0.0, config.restart_noise))
        self._spread = config.noise * math.sqrt(1.0 - _NOISE_MEMORY**2)
        self._noise = 0.0
        self._drift = Drift()
        self._pause = 0.0
        self._plan = Plan()
        self._started = 0.0

    @property
    def running(self) -> int:
        return len(self._scheduler.running)

    @property
    def waiting(self) -> int:
        return len(self._scheduler.waiting)

    @property
    def kv_usage(self) -> float:
        """Share of the KV cache's blocks in use, 0 to 1."""
        return self._scheduler.kv.usage

    def add(self, request: Request, now: float) -> None:
        """Queue a request; an idle engine starts its next step at once."""
        request.arrived = now
        self._scheduler.waiting.append(request)
        if self.due is None:
            self._begin(now)

    def abort(self, request: Request) -> None:
        """Forget a request wherever it is; unknown ones are ignored. A step under way takes its time."""
        self._scheduler.remove(request)

    def reset_prefix_cache(self) -> bool:
        """Forget every prompt; False while requests hold blocks."""
        return self._scheduler.kv.forget()

    @property
    def drift_per_s(self) -> float:
        return self._drift.per_s

    @drift_per_s.setter
    def drift_per_s(self, value: float) -> None:
        self._drift = Drift(value)

    def pause(self, seconds: float) -> None:
        """Make the next step longer by this, as a kernel compiled during inference does."""
        self._pause += max(seconds, 0.0)

    def gpu(self, now: float) -> GpuReading:
        """What the GPU's sensors say at ``now``."""
        return self._meter.read(now)

    def step(self, now: float) -> Step | None:
        """Complete the step that is due at or before ``now``; None when there is none."""
        if self.due is None or now < self.due:
            return None
        at, plan, duration = self.due, self._plan, self.due - self._started
        outputs, accepted, drafts = self._decode(plan, at)
        prefilled = self._prefill(plan, outputs, at)
        self._retire(outputs)
        uniform = not plan.chunks
        mode, padded = self._graphs.run(plan.tokens, uniform=uniform)
        done = Step(
            at,
            duration,
            tuple(outputs),
            tuple(prefilled),
            plan.preempted,
            drafts,
            drafts * self.config.k,
            accepted,
            tuple(plan.admitted),
            plan.prompt_tokens,
            plan.tokens,
            padded,
            mode,
            plan.context,
        )
        self._begin(at if now - at < _MAX_LATENESS_S else now)
        return done

    def _decode(self, plan: Plan, at: float) -> tuple[list[Output], tuple[int, ...], int]:
        """Outputs, accepted drafts by position, drafts. One draw a chain, so that position i implies i-1."""
        k, draw = self.config.k, self._rng.random
        gains = [0] * (k + 1)
        outputs = []
        for request in plan.decoding:
            seat = request.seat
            if seat is None:  # aborted while the step was under way
                continue
            gain = 0
            if k:
                luck = draw()
                for probability in seat.chain:
                    if luck >= probability:
                        break
                    gain += 1
            gains[gain] += 1
            if k and request.gains is not None:
                request.gains.append(gain)
            outputs.append(deliver(request, 1 + gain, at))
        accepted = tuple(sum(gains[position + 1 :]) for position in range(k))
        return outputs, accepted, len(outputs) if k else 0

    def _prefill(self, plan: Plan, outputs: list[Output], at: float) -> list[Request]:
        """Requests whose context is complete: each gets one token."""
        prefilled = [request for request, tokens in plan.chunks if self._scheduler.computed(request, tokens)]
        outputs.extend(deliver(request, 1, at) for request in prefilled)
        return prefilled

    def _retire(self, outputs: list[Output]) -> None:
        finished = [output.request for output in outputs if output.finish_reason is not None]
        if not finished:
            return
        for request in finished:
            self._scheduler.leave(request)
        self._scheduler.running = [r for r in self._scheduler.running if r.seat is not None]

    def _begin(self, at: float) -> None:
        self._plan = plan = self._scheduler.plan(at)
        self._started = at
        self.due = at + self._duration(plan) if plan.tokens else None
        self._meter.load(at, len(self._scheduler.running), self.slowdown)

    def _duration(self, plan: Plan) -> float:
        """Decoding, or when nobody decodes one step without speculation, and the prompts' tokens."""
        config, truth = self.config, self.config.truth
        if plan.decoding:
            batch = len(plan.decoding)
            base = truth.step_s(config.k, batch, context=plan.context, graphs=config.graphs)
        else:
            base = truth.step_s(0, len(plan.chunks))
        self._noise = _NOISE_MEMORY * self._noise + self._rng.gauss(0.0, self._spread)
        step = base * math.exp(self._noise) + plan.prompt_tokens / truth.prefill_tok_s
        pause, self._pause = self._pause, 0.0
        return step * self._process_factor * self.slowdown * self._drift.at(self._started) + pause

"""A load on the engine in virtual time: minutes of serving in a fraction of a second, no server."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import count

from sparktui.sim.model.engine import Engine, EngineConfig, Request, Step
from sparktui.sim.model.kv import BLOCK_TOKENS
from sparktui.sim.model.power import GpuReading
from sparktui.sim.model.truth import GraphMode, Truth

LOG_PERIOD_S = 10.0  # vLLM logs its throughputs this often


@dataclass(frozen=True, slots=True)
class Load:
    """A closed loop: ``clients`` requests at a time, for ``seconds`` or until ``requests`` are complete."""

    clients: int = 1
    prompt_tokens: int = 512
    max_tokens: int = 256
    temperature: float | None = None
    seconds: float = 300.0
    requests: int | None = None
    same_prompt: bool = False  # every request repeats one prompt


@dataclass(frozen=True, slots=True)
class Figures:
    """What the load showed. Rates in tokens a second; shares 0 to 1; means over complete requests."""

    seconds: float
    requests: int
    decode_tok_s: float  # of each stream: tokens after the first one / seconds after the first one
    output_tok_s: float  # of the server
    peak_tok_s: float  # the largest logged "Avg generation throughput"
    ttft_s: tuple[float, ...]  # of each complete request, in the order of completion
    step_ms: float  # of steps in which somebody decoded and no prompt was computed
    acceptance: tuple[float, ...]  # by position
    acceptance_rate: float
    kv_mean: float
    kv_peak: float
    preemptions: int
    cache_queries: int
    cache_hits: int
    gpu: GpuReading

    @property
    def mean_ttft_s(self) -> float:
        return _mean(self.ttft_s)


@dataclass(slots=True)
class _Tally:
    generated: int = 0
    logged: int = 0  # tokens in the log period under way
    period_ends: float = LOG_PERIOD_S
    peak: float = 0.0
    drafts: int = 0
    accepted: list[int] = field(default_factory=list)
    kv_seconds: float = 0.0
    kv_peak: float = 0.0
    busy: float = 0.0
    pure_steps: int = 0
    pure_seconds: float = 0.0
    preemptions: int = 0
    queries: int = 0
    hits: int = 0
    done: list[Request] = field(default_factory=list)

    def see(self, step: Step, kv_usage: float) -> None:
        """``kv_usage``: while the step ran."""
        while step.at >= self.period_ends:
            self.peak = max(self.peak, self.logged / LOG_PERIOD_S)
            self.logged, self.period_ends = 0, self.period_ends + LOG_PERIOD_S
        tokens = step.generated
        self.generated += tokens
        self.logged += tokens
        self.drafts += step.drafts
        self.accepted = [a + b for a, b in zip(self.accepted, step.accepted, strict=True)]
        self.kv_seconds += kv_usage * step.duration
        self.kv_peak = max(self.kv_peak, kv_usage)
        self.busy += step.duration
        if not step.prompt_tokens:
            self.pure_steps += 1
            self.pure_seconds += step.duration
        self.preemptions += step.preempted
        self.queries += step.cache_queries
        self.hits += step.cache_hits


def run(
    truth: Truth,
    k: int,
    load: Load,
    *,
    max_num_seqs: int = 256,
    max_num_batched_tokens: int = 8192,
    graphs: GraphMode | None = None,
    noise: float = 0.01,
    restart_noise: float = 0.0,
    seed: int = 1,
) -> Figures:
    """Serve ``load`` with ``k`` draft tokens, 0 = speculation off. The same seed gives the same figures."""
    config = EngineConfig(
        k=k,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        graphs=graphs,
        noise=noise,
        restart_noise=restart_noise,
        truth=truth,
    )
    engine = Engine(config, random.Random(seed))
    tally = _Tally(accepted=[0] * k)
    ids = count()
    for _ in range(load.clients):
        engine.add(_request(load, next(ids)), 0.0)
    now = 0.0
    while engine.due is not None and not _over(load, tally, engine.due):
        now, usage = engine.due, engine.kv_usage
        step = engine.step(now)
        if step is None:
            break
        tally.see(step, usage)
        for output in step.outputs:
            if output.finish_reason is not None:
                tally.done.append(output.request)
                engine.add(_request(load, next(ids)), now)
    return _figures(tally, now, engine.gpu(now))


def _over(load: Load, tally: _Tally, due: float) -> bool:
    if load.requests is not None:
        return len(tally.done) >= load.requests
    return due > load.seconds


def _request(load: Load, number: int) -> Request:
    same = 0 if load.same_prompt else number
    blocks = tuple((same << 20) + i for i in range(load.prompt_tokens // BLOCK_TOKENS))
    return Request(
        str(number),
        load.prompt_tokens,
        load.max_tokens,
        temperature=load.temperature,
        blocks=blocks,
    )


def _figures(tally: _Tally, seconds: float, gpu: GpuReading) -> Figures:
    rates, waits = [], []
    for request in tally.done:
        first, last = request.first_token, request.last_token
        if first is None or last is None:
            continue
        waits.append(first - request.arrived)
        if last > first:
            rates.append((request.generated - 1) / (last - first))
    chain = tuple(count / tally.drafts for count in tally.accepted) if tally.drafts else ()
    return Figures(
        seconds=seconds,
        requests=len(tally.done),
        decode_tok_s=_mean(rates),
        output_tok_s=tally.generated / seconds if seconds else 0.0,
        peak_tok_s=tally.peak,
        ttft_s=tuple(waits),
        step_ms=1000 * tally.pure_seconds / tally.pure_steps if tally.pure_steps else 0.0,
        acceptance=chain,
        acceptance_rate=_mean(chain),
        kv_mean=tally.kv_seconds / tally.busy if tally.busy else 0.0,
        kv_peak=tally.kv_peak,
        preemptions=tally.preemptions,
        cache_queries=tally.queries,
        cache_hits=tally.hits,
        gpu=gpu,
    )


def _mean(values: list[float] | tuple[float, ...]) -> float:
    return sum(values) / len(values) if values else 0.0

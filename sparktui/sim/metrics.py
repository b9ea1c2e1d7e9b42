"""vLLM 0.27.1's /metrics: the same names, types, labels and buckets, in a registry of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from sparktui.sim import families
from sparktui.sim.engine import Engine, Output, Request, Step


@dataclass(frozen=True, slots=True)
class Totals:
    """Running sums for the periodic statistics line."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    cache_queries: int = 0
    cache_hits: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted: tuple[int, ...] = ()


class Metrics:
    """Counts what the engine did. ``k``: draft positions, 0 leaves the spec_decode counters out."""

    def __init__(self, model_name: str, k: int, cache_config: Mapping[str, str]) -> None:
        self._registry = CollectorRegistry()
        GCCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        ProcessCollector(registry=self._registry)
        self._labels = {"engine": "0", "model_name": model_name}
        spec = self._spec_counters(k)
        self._counters = spec | {name: self._counter(name, text) for name, text in families.COUNTERS.items()}
        self._gauges = {name: self._gauge(name, text) for name, text in families.GAUGES.items()}
        self._histograms = {name: self._histogram(name, *rest) for name, rest in families.HISTOGRAMS.items()}
        self._success = self._labelled(
            "request_success",
            "Count of successfully processed requests.",
            "finished_reason",
            families.FINISHED_REASONS,
        )
        self._sources = self._labelled(
            "prompt_tokens_by_source",
            "Number of prompt tokens by source.",
            "source",
            ("local_compute", "local_cache_hit", "external_kv_transfer"),
        )
        self._constant_gauges(cache_config)
        self.totals = Totals(accepted=(0,) * k)

    def record(self, step: Step, engine: Engine) -> None:
        """Count one completed step and the engine's state after it."""
        self._count_step(step)
        for output in step.outputs:
            self._count_output(output, step.at)
        self.set_state(engine)

    def set_state(self, engine: Engine) -> None:
        """Refresh the gauges."""
        self._gauges["num_requests_running"].set(engine.running)
        self._gauges["num_requests_waiting"].set(engine.waiting)
        self._gauges["kv_cache_usage_perc"].set(engine.kv_usage)
        self._capacity.set(engine.waiting)

    def page(self) -> bytes:
        """The text of /metrics."""
        return generate_latest(self._registry)

    def _count_step(self, step: Step) -> None:
        generated = sum(output.tokens for output in step.outputs)
        queries = hits = 0
        for request in step.prefilled:
            if request.first_token == step.at:
                queries += request.prompt_tokens
                hits += request.cached_tokens
        self._add("generation_tokens", generated)
        self._add("prompt_tokens", queries)
        self._add("prompt_tokens_cached", hits)
        self._add("prefix_cache_queries", queries)
        self._add("prefix_cache_hits", hits)
        self._add("num_preemptions", step.preempted)
        self._sources["local_compute"].inc(queries - hits)
        self._sources["local_cache_hit"].inc(hits)
        self._histograms["iteration_tokens_total"].observe(generated + queries - hits)
        self._count_drafts(step)
        old = self.totals
        self.totals = Totals(
            old.prompt_tokens + queries,
            old.generation_tokens + generated,
            old.cache_queries + queries,
            old.cache_hits + hits,
            old.drafts + step.drafts,
            old.draft_tokens + step.draft_tokens,
            tuple(a + b for a, b in zip(old.accepted, step.accepted, strict=True)),
        )

    def _count_drafts(self, step: Step) -> None:
        if not step.accepted:
            return
        self._add("spec_decode_num_drafts", step.drafts)
        self._add("spec_decode_num_draft_tokens", step.draft_tokens)
        self._add("spec_decode_num_accepted_tokens", sum(step.accepted))
        for counter, value in zip(self._positions, step.accepted, strict=True):
            counter.inc(value)

    def _count_output(self, output: Output, at: float) -> None:
        if output.gap is None:
            self._observe("time_to_first_token_seconds", at - output.request.arrived)
        else:
            self._observe("inter_token_latency_seconds", output.gap)
        if output.finish_reason is not None:
            self._success[output.finish_reason].inc()
            self._count_request(output.request)

    def _count_request(self, request: Request) -> None:
        scheduled = request.arrived if request.scheduled is None else request.scheduled
        first = scheduled if request.first_token is None else request.first_token
        last = first if request.last_token is None else request.last_token
        self._observe("request_prompt_tokens", request.prompt_tokens)
        self._observe("request_generation_tokens", request.generated)
        self._observe("request_max_num_generation_tokens", request.generated)
        self._observe("request_params_n", 1)
        self._observe("request_params_max_tokens", request.max_tokens)
        per_token = (last - first) / (request.generated - 1) if request.generated > 1 else 0.0
        self._observe("request_time_per_output_token_seconds", per_token)
        self._observe("e2e_request_latency_seconds", last - request.arrived)
        self._observe("request_queue_time_seconds", scheduled - request.arrived)
        self._observe("request_inference_time_seconds", last - scheduled)
        self._observe("request_prefill_time_seconds", first - scheduled)
        self._observe("request_decode_time_seconds", last - first)
        self._observe("request_prefill_kv_computed_tokens", request.prompt_tokens - request.cached_tokens)

    def _add(self, name: str, amount: float) -> None:
        self._counters[name].inc(amount)

    def _observe(self, name: str, amount: float) -> None:
        self._histograms[name].observe(amount)

    def _counter(self, name: str, text: str) -> Counter:
        family = Counter(f"vllm:{name}", text, list(self._labels), registry=self._registry)
        return family.labels(**self._labels)

    def _gauge(self, name: str, text: str) -> Gauge:
        family = Gauge(f"vllm:{name}", text, list(self._labels), registry=self._registry)
        return family.labels(**self._labels)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        family = Histogram(f"vllm:{name}", text, list(self._labels), buckets=buckets, registry=self._registry)
        return family.labels(**self._labels)

    def _labelled(self, name: str, text: str, label: str, values: tuple[str, ...]) -> dict[str, Counter]:
        """A counter with one more label, every value present from the start."""
        family = Counter(f"vllm:{name}", text, [*self._labels, label], registry=self._registry)
        return {value: family.labels(**self._labels, **{label: value}) for value in values}

    def _spec_counters(self, k: int) -> dict[str, Counter]:
        self._positions: list[Counter] = []
        if not k:
            return {}
        counters = {name: self._counter(name, text) for name, text in families.SPEC_COUNTERS.items()}
        by_position = self._labelled(
            "spec_decode_num_accepted_tokens_per_pos",
            "Accepted tokens per draft position.",
            "position",
            tuple(str(i) for i in range(k)),
        )
        self._positions = list(by_position.values())
        return counters

    def _constant_gauges(self, cache_config: Mapping[str, str]) -> None:
        labels = [*self._labels, "reason"]
        text = "Number of waiting requests by reason."
        by_reason = Gauge("vllm:num_requests_waiting_by_reason", text, labels, registry=self._registry)
        self._capacity = by_reason.labels(**self._labels, reason="capacity")
        by_reason.labels(**self._labels, reason="deferred")
        labels = [*self._labels, "sleep_state"]
        sleep = Gauge("vllm:engine_sleep_state", "Engine sleep state", labels, registry=self._registry)
        for state in ("awake", "weights_offloaded", "discard_all"):
            sleep.labels(**self._labels, sleep_state=state).set(state == "awake")
        text = "Information of the LLMEngine CacheConfig"
        info = Gauge("vllm:cache_config_info", text, [*cache_config, "engine"], registry=self._registry)
        info.labels(**cache_config, engine="0").set(1)

"""What one engine's part of /metrics counts, step by step, with vLLM's rules of when something counts.

Plain numbers, no locks: a step with 256 outputs is counted in a fraction of a millisecond.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparktui.sim.counts.choices import whole_requests
from sparktui.sim.counts.exposition import Histogram
from sparktui.sim.counts.families import FAMILIES, token_bounds
from sparktui.sim.counts.traffic import Traffic
from sparktui.sim.model.requests import Output, Request, Step

_FINISHED = (
    "request_prompt_tokens",
    "request_generation_tokens",
    "request_params_max_tokens",
    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_inference_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_num_preemptions",
    "request_prefill_kv_computed_tokens",
)


class EngineCounts:
    """Counters and histograms since ``created`` (unix seconds). ``traffic``: None leaves estimates at 0."""

    __slots__ = ("_counters", "_traffic", "created", "histograms")

    def __init__(
        self, bounds: Mapping[str, tuple[float, ...]], created: float, traffic: Traffic | None = None
    ) -> None:
        self.created = created
        self._traffic = traffic
        self.histograms = {name: Histogram(ends) for name, ends in bounds.items()}
        self._counters: dict[str, dict[str, float]] = {}

    def value(self, name: str, label: str = "") -> float:
        """A counter's value; 0 for what never happened. ``label``: its own label's value, if it has one."""
        return self._counters.get(name, {}).get(label, 0.0)

    def add(self, name: str, amount: float, label: str = "") -> None:
        """Raise a counter."""
        values = self._counters.setdefault(name, {})
        values[label] = values.get(label, 0.0) + amount

    def count(self, step: Step) -> None:
        """Count one completed step."""
        first, generated = step.first, step.generated
        self.add("generation_tokens", generated)
        self.add("num_preemptions", step.preempted)
        self._count_prompts(first)
        if step.outputs:
            computed = sum(request.prompt_tokens - request.cached_tokens for request in first)
            self.histograms["iteration_tokens_total"].observe(generated + computed)
        self._count_waits(step, first)
        self._count_finished([o for o in step.outputs if o.finish_reason is not None])
        self._count_lookups(step)
        self._count_drafts(step)
        if self._traffic is not None and step.scheduled_tokens:
            self._count_traffic(step, self._traffic)

    def _count_traffic(self, step: Step, traffic: Traffic) -> None:
        self.add("estimated_flops_per_gpu", traffic.flops(step))
        self.add("estimated_read_bytes_per_gpu", traffic.read(step))
        self.add("estimated_write_bytes_per_gpu", traffic.written(step))

    def _count_prompts(self, first: list[Request]) -> None:
        """A prompt counts as a whole, with its first token, however many steps prefilled it."""
        prompt = sum(request.prompt_tokens for request in first)
        cached = sum(request.cached_tokens for request in first)
        self.add("prompt_tokens", prompt)
        self.add("prompt_tokens_cached", cached)
        self.add("prompt_tokens_by_source", prompt - cached, "local_compute")
        self.add("prompt_tokens_by_source", cached, "local_cache_hit")
        whole = sum(request.cached_tokens + 1 == request.prompt_tokens for request in first)
        self.add("prompt_tokens_recomputed", whole)

    def _count_waits(self, step: Step, first: list[Request]) -> None:
        waits = [max(0.0, step.at - request.arrived) for request in first]  # a step may end late
        self.histograms["time_to_first_token_seconds"].observe_all(waits)
        latency = self.histograms["inter_token_latency_seconds"]
        gap, times = 0.0, 0
        for output in step.outputs:  # most of a batch had its previous output in the same step
            if output.gap == gap:
                times += 1
            elif output.gap is not None:
                latency.observe(gap, times)
                gap, times = output.gap, 1
        latency.observe(gap, times)

    def _count_lookups(self, step: Step) -> None:
        """Queries and hits count at the first admission, not at one after a preemption."""
        hits = step.cache_hits
        self.add("prefix_cache_queries", step.cache_queries)
        self.add("prefix_cache_hits", hits)
        self.add("prompt_tokens_cached_by_source", hits, "device")

    def _count_drafts(self, step: Step) -> None:
        if not step.drafts:
            return
        self.add("spec_decode_num_drafts", step.drafts)
        self.add("spec_decode_num_draft_tokens", step.draft_tokens)
        self.add("spec_decode_num_accepted_tokens", sum(step.accepted))
        for position, accepted in enumerate(step.accepted):
            self.add("spec_decode_num_accepted_tokens_per_pos", accepted, str(position))

    def _count_finished(self, finished: list[Output]) -> None:
        for output in finished:
            self.add("request_success", 1, str(output.finish_reason))
        rows = (_figures(output.request) for output in finished)
        for name, values in zip(_FINISHED, zip(*rows, strict=True), strict=False):  # no columns without rows
            self.histograms[name].observe_all(values)
        for n, longest in whole_requests([output.request for output in finished]):
            self.histograms["request_params_n"].observe(n)
            self.histograms["request_max_num_generation_tokens"].observe(longest)


def _figures(request: Request) -> tuple[float, ...]:
    """A finished request's values, in the order of ``_FINISHED``."""
    scheduled = request.arrived if request.scheduled is None else request.scheduled
    first = scheduled if request.first_token is None else request.first_token
    last = first if request.last_token is None else request.last_token
    generated = request.generated
    return (
        request.prompt_tokens,
        generated,
        request.max_tokens,
        (last - first) / max(generated - 1, 1),
        last - request.arrived,
        scheduled - request.arrived,
        last - scheduled,
        first - scheduled,
        last - first,
        request.preemptions,
        request.prompt_tokens - request.cached_tokens,
    )


def histogram_bounds(max_model_len: int) -> dict[str, tuple[float, ...]]:
    """Buckets of every histogram that any release has, by the name it is counted under."""
    tokens = token_bounds(max_model_len)
    return {row.name: row.bounds or tokens for row in FAMILIES if row.kind == "histogram" and not row.reads}

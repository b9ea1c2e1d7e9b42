"""The metric families of vLLM's /metrics, release by release: one row each, in the order of the page.

Recorded from real pages: 0.24.0 (GPU), 0.27.1 and 0.32.0 (CPU). Every other release is put together from
the names in its source. A family that a release deprecates is hidden one release later and comes back with
``--show-hidden-metrics-for-version``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sparktui.sim.release import Release

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ITERATION = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)
_SECONDS = (0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
_TTFT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, *_SECONDS, 160.0, 640.0, 2560.0)
_ITL = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, *_SECONDS[1:])
_MINUTES = (10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)
_E2E = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, *_MINUTES)
_N = (1.0, 2.0, 5.0, 10.0, 20.0)
_PREEMPTIONS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)

_REASONS = ("stop", "length", "abort")
_LATER_REASONS = (*_REASONS, "error", "repetition")
_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
_TIERS = ("device", "host", "p2p", "disk", "external_unspecified")
_QUEUE_LIMITS = ("max_num_queued_reqs", "max_num_queued_tokens")
_SLEEP = ("awake", "weights_offloaded", "discard_all")


@dataclass(frozen=True, slots=True)
class Family:
    """One family. ``name``: as on the page, without ``vllm:`` and a counter's ``_total``.

    ``label`` and ``values``: one more label besides engine and model_name, every value present from the
    start. ``bounds``: a histogram's buckets; empty: 1, 2, 5, 10 … up to the model's length. ``since``: the
    first release that has it; ``until``: the first that has not; ``hidden``: the first that hides it.
    ``reads``: the name its figures are counted under, where that is another one.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    label: str = ""
    values: tuple[str, ...] = ("",)
    bounds: tuple[float, ...] = ()
    since: str = "0.11.0"
    until: str = ""
    hidden: str = ""
    reads: str = ""
    per_engine: bool = True

    @property
    def key(self) -> str:
        """The name its figures are counted under."""
        return self.reads or self.name

    def on_page(self, release: Release, hidden: bool) -> bool:
        """Whether a server of ``release`` shows it; ``hidden``: with the hidden ones."""
        gone = self.until and release.since(self.until)
        veiled = self.hidden and release.since(self.hidden) and not hidden
        return release.since(self.since) and not gone and not veiled


def of(release: Release, k: int, hidden: bool = False) -> Iterator[Family]:
    """The families of one server, in the page's order. ``k``: draft positions; 0 has no spec_decode_*."""
    rows = (*SPECULATION, _positions(k), *FAMILIES) if k else FAMILIES
    return (family for family in rows if family.on_page(release, hidden))


def token_bounds(limit: int) -> tuple[float, ...]:
    """1, 2, 5, 10, 20, 50 … up to ``limit`` tokens."""
    found, power = [], 1
    while power <= limit:
        found += [float(power * mantissa) for mantissa in (1, 2, 5) if power * mantissa <= limit]
        power *= 10
    return tuple(found)


def _counter(name: str, text: str, **more: str) -> Family:
    return Family(name, "counter", text, **more)  # type: ignore[arg-type]


def _seconds(name: str, text: str, bounds: tuple[float, ...] = _E2E) -> Family:
    return Family(name, "histogram", text, bounds=bounds)


def _tokens(name: str, text: str, since: str = "0.11.0") -> Family:
    return Family(name, "histogram", text, since=since)


def _estimate(name: str, what: str) -> Family:
    text = f"Estimated number of {what} per GPU (for Model Flops Utilization calculations)."
    return Family(f"estimated_{name}_per_gpu", "counter", text, since="0.17.0")


def _positions(k: int) -> Family:
    text = "Accepted tokens per draft position."
    values = tuple(str(position) for position in range(k))
    return Family("spec_decode_num_accepted_tokens_per_pos", "counter", text, "position", values)


_HIT = "in terms of number of cached tokens."
_QUERY = "in terms of number of queried tokens."
_EXTERNAL = "from KV connector cross-instance cache sharing"
_WAITING_REASONS = (
    "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; "
    "'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all "
    "reasons equals vllm:num_requests_waiting."
)
_SLEEP_STATE = (
    "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; "
    "weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2."
)
_BY_TIER = (
    "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to "
    "DRAM), disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at "
    "admission; sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits."
)
_GPU_USAGE = "GPU KV-cache usage. 1 means 100 percent usage.DEPRECATED: Use vllm:kv_cache_usage_perc instead."
_GPU_QUERIES = f"GPU prefix cache queries, {_QUERY}DEPRECATED: Use vllm:prefix_cache_queries instead."
_GPU_HITS = f"GPU prefix cache hits, {_HIT}DEPRECATED: Use vllm:prefix_cache_hits instead."
_TPOT = (
    "Histogram of time per output token in seconds.DEPRECATED: Use vllm:inter_token_latency_seconds instead."
)
_SUCCESS = "Count of successfully processed requests."
_PHASE = "Histogram of time spent in {} phase for request."

SPECULATION = (
    _counter("spec_decode_num_drafts", "Number of spec decoding drafts."),
    _counter("spec_decode_num_draft_tokens", "Number of draft tokens."),
    _counter("spec_decode_num_accepted_tokens", "Number of accepted tokens."),
)
FAMILIES = (
    _estimate("flops", "floating point operations"),
    _estimate("read_bytes", "bytes read from memory"),
    _estimate("write_bytes", "bytes written to memory"),
    Family("num_requests_running", "gauge", "Number of requests in model execution batches."),
    Family("num_requests_waiting", "gauge", "Number of requests waiting to be processed."),
    Family(
        "num_requests_waiting_by_reason",
        "gauge",
        _WAITING_REASONS,
        "reason",
        ("capacity", "deferred"),
        since="0.21.0",
    ),
    Family("engine_sleep_state", "gauge", _SLEEP_STATE, "sleep_state", _SLEEP),
    Family(
        "gpu_cache_usage_perc",
        "gauge",
        _GPU_USAGE,
        until="0.12.0",
        hidden="0.11.0",
        reads="kv_cache_usage_perc",
    ),
    _counter(
        "gpu_prefix_cache_queries",
        _GPU_QUERIES,
        until="0.12.0",
        hidden="0.11.0",
        reads="prefix_cache_queries",
    ),
    _counter("gpu_prefix_cache_hits", _GPU_HITS, until="0.12.0", hidden="0.11.0", reads="prefix_cache_hits"),
    Family("kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage."),
    _counter("prefix_cache_queries", f"Prefix cache queries, {_QUERY}"),
    _counter("prefix_cache_hits", f"Prefix cache hits, {_HIT}"),
    _counter("external_prefix_cache_queries", f"External prefix cache queries {_EXTERNAL}, {_QUERY}"),
    _counter("external_prefix_cache_hits", f"External prefix cache hits {_EXTERNAL}, {_HIT}"),
    _counter("mm_cache_queries", "Multi-modal cache queries, in terms of number of queried items."),
    _counter("mm_cache_hits", "Multi-modal cache hits, in terms of number of cached items."),
    _counter("num_preemptions", "Cumulative number of preemption from the engine."),
    _counter("prompt_tokens", "Number of prefill tokens processed."),
    Family(
        "prompt_tokens_by_source",
        "counter",
        "Number of prompt tokens by source.",
        "source",
        _SOURCES,
        since="0.17.0",
    ),
    _counter("prompt_tokens_cached", "Number of cached prompt tokens (local + external).", since="0.17.0"),
    _counter(
        "prompt_tokens_recomputed",
        "Number of cached tokens recomputed for forward pass.",
        since="0.17.0",
        until="0.20.0",
    ),
    Family("prompt_tokens_cached_by_source", "counter", _BY_TIER, "source", _TIERS, since="0.32.0"),
    _counter("generation_tokens", "Number of generation tokens processed."),
    Family("request_success", "counter", _SUCCESS, "finished_reason", _REASONS, until="0.24.0"),
    Family("request_success", "counter", _SUCCESS, "finished_reason", _LATER_REASONS, since="0.24.0"),
    Family(
        "admission_rejections",
        "counter",
        "Number of admission attempts rejected by a queue limit, by reason.",
        "reason",
        _QUEUE_LIMITS,
        since="0.32.0",
        per_engine=False,
    ),
    _tokens("request_prompt_tokens", "Number of prefill tokens processed."),
    _tokens("request_generation_tokens", "Number of generation tokens processed."),
    _seconds("iteration_tokens_total", "Histogram of number of tokens per engine_step.", _ITERATION),
    _tokens(
        "request_max_num_generation_tokens",
        "Histogram of maximum number of requested generation tokens.",
    ),
    _seconds("request_params_n", "Histogram of the n request parameter.", _N),
    _tokens("request_params_max_tokens", "Histogram of the max_tokens request parameter."),
    _seconds("time_to_first_token_seconds", "Histogram of time to first token in seconds.", _TTFT),
    Family(
        "time_per_output_token_seconds",
        "histogram",
        _TPOT,
        bounds=_ITL,
        until="0.14.0",
        hidden="0.12.0",
        reads="inter_token_latency_seconds",
    ),
    _seconds("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", _ITL),
    _seconds(
        "request_time_per_output_token_seconds",
        "Histogram of time_per_output_token_seconds per request.",
        _ITL,
    ),
    _seconds("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds."),
    _seconds("request_queue_time_seconds", _PHASE.format("WAITING")),
    _seconds("request_inference_time_seconds", _PHASE.format("RUNNING")),
    _seconds("request_prefill_time_seconds", _PHASE.format("PREFILL")),
    _seconds("request_decode_time_seconds", _PHASE.format("DECODE")),
    Family(
        "request_num_preemptions",
        "histogram",
        "Histogram of the number of times a request was preempted.",
        bounds=_PREEMPTIONS,
        since="0.30.0",
    ),
    _tokens(
        "request_prefill_kv_computed_tokens",
        "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
        since="0.13.0",
    ),
)

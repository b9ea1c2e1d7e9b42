"""One /metrics page as numbers. The only module on the reading side that imports prometheus_client.

Names are vLLM's (0.11 … 0.33); older spellings map to the newer one. Counters and histograms are summed
over engines and models, KV usage is the maximum over engines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

_P = "vllm:"
# older name -> the one used here (facts of the releases: gpu_* until 0.12, time_per_output_token until 0.16)
_RENAMED = {
    "gpu_cache_usage_perc": "kv_cache_usage_perc",
    "gpu_prefix_cache_queries_total": "prefix_cache_queries_total",
    "gpu_prefix_cache_hits_total": "prefix_cache_hits_total",
    "time_per_output_token_seconds": "inter_token_latency_seconds",
}
COUNTERS = (
    "generation_tokens_total",
    "prompt_tokens_total",
    "num_preemptions_total",
    "prefix_cache_queries_total",
    "prefix_cache_hits_total",
    "request_success_total",
    "spec_decode_num_drafts_total",
    "spec_decode_num_draft_tokens_total",
    "spec_decode_num_accepted_tokens_total",
)
HISTOGRAMS = (
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
)
_CREATED = "generation_tokens_created"  # when the engine's counters began; absent with several API servers
_GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", _CREATED)
_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"
_WANTED = (*COUNTERS, *HISTOGRAMS, *_GAUGES, _PER_POSITION, *_RENAMED)


class PageError(ValueError):
    """The text is not a vLLM /metrics page."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative: ``buckets`` maps the upper bound (seconds) to the count at or under it."""

    sum: float = 0.0
    count: float = 0.0
    buckets: dict[float, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed page. ``t`` is CLOCK_MONOTONIC seconds at the middle of the scrape. Absent is not zero."""

    t: float
    counters: Mapping[str, float]
    histograms: Mapping[str, Histogram]
    accepted_by_position: tuple[float, ...]
    running: float | None
    waiting: float | None
    kv_usage: float | None
    engines: int
    created: float | None = None  # unix seconds

    @property
    def speculating(self) -> bool:
        """spec_decode counters are registered (at 0) exactly when speculation is configured."""
        return "spec_decode_num_drafts_total" in self.counters


@dataclass(slots=True)
class _Sums:
    counters: dict[str, float] = field(default_factory=dict)
    positions: dict[int, float] = field(default_factory=dict)
    gauges: dict[str, list[float]] = field(default_factory=dict)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    engines: set[str] = field(default_factory=set)
    spoilt: set[str] = field(default_factory=set)  # had a NaN or an infinite sample: not known

    def add(self, name: str, labels: Mapping[str, str], value: float) -> None:
        self.engines.add(labels.get("engine", "0"))
        if not math.isfinite(value):
            base = name.rpartition("_")[0]
            self.spoilt |= {name, _RENAMED.get(base, base)}
        if name == _PER_POSITION:
            position = int(labels["position"])
            self.positions[position] = self.positions.get(position, 0.0) + value
        elif name in _GAUGES:
            self.gauges.setdefault(name, []).append(value)
        elif name in COUNTERS:
            self.counters[name] = self.counters.get(name, 0.0) + value
        else:
            self._add_histogram(name, labels, value)

    def drop_spoilt(self) -> None:
        """A figure made of one bad sample would be wrong as a whole: absent instead."""
        for name in self.spoilt:
            self.counters.pop(name, None)
            self.gauges.pop(name, None)
            self.histograms.pop(name, None)
        if _PER_POSITION in self.spoilt:
            self.positions.clear()

    def _add_histogram(self, name: str, labels: Mapping[str, str], value: float) -> None:
        base, _, part = name.rpartition("_")
        base = _RENAMED.get(base, base)
        if base not in HISTOGRAMS:
            return
        old = self.histograms.get(base, Histogram())
        if part == "bucket":
            bound = float(labels["le"])
            old.buckets[bound] = old.buckets.get(bound, 0.0) + value
            self.histograms[base] = old
        elif part == "sum":
            self.histograms[base] = Histogram(old.sum + value, old.count, old.buckets)
        elif part == "count":
            self.histograms[base] = Histogram(old.sum, old.count + value, old.buckets)


def parse(text: str, t: float) -> Page:
    """Numbers of a page scraped at ``t``. Raises PageError when it is none of vLLM's."""
    sums = _Sums()
    try:
        for family in text_string_to_metric_families("\n".join(_relevant(text)) + "\n"):
            for sample in family.samples:
                name = sample.name.removeprefix(_P)
                sums.add(_RENAMED.get(name, name), sample.labels, float(sample.value))
    except (ValueError, KeyError, IndexError) as exc:
        raise PageError(f"not a Prometheus page: {exc}") from None
    sums.drop_spoilt()
    if not sums.counters and not sums.gauges:
        raise PageError("no vLLM metric on the page")
    positions = tuple(sums.positions[i] for i in sorted(sums.positions))
    usage = sums.gauges.get("kv_cache_usage_perc")
    return Page(
        t=t,
        counters=sums.counters,
        histograms=sums.histograms,
        accepted_by_position=positions,
        running=_sum(sums.gauges.get("num_requests_running")),
        waiting=_sum(sums.gauges.get("num_requests_waiting")),
        kv_usage=max(usage) if usage else None,
        engines=len(sums.engines),
        created=min(sums.gauges.get(_CREATED, ()), default=None),
    )


def _relevant(text: str) -> Iterator[str]:
    """Only the lines that are read: the parser's time goes with the lines it sees.

    A page in between two releases has a figure under its old name and its new one: the old one is left out.
    """
    doubled = tuple(old for old, new in _RENAMED.items() if f"{_P}{new}" in text)
    for line in text.splitlines():
        bare = line.removeprefix("# TYPE ")
        if not (bare.startswith(_P) and bare.startswith(_WANTED, len(_P))):
            continue
        if doubled and bare.startswith(doubled, len(_P)):
            continue
        if "_created" not in bare or bare.startswith(_CREATED, len(_P)):
            yield line


def _sum(values: list[float] | None) -> float | None:
    return sum(values) if values else None

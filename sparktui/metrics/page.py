"""One /metrics page as numbers. The only module on the reading side that imports prometheus_client.

Names are vLLM's (0.11 … 0.33); older spellings map to the newer one. Counters and histograms are summed
over engines and models, KV usage is the maximum over engines; the counters' series are kept apart too,
because a sum hides that one of them began anew. Gauges with a ``pid`` are what each API server heard last
(vLLM PR 28792: one of eight says 0.65, the others 0.0): their maximum holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from sparktui.metrics.histogram import Histogram

_P = "vllm:"
_ESCAPED = "vllm_"  # prometheus_client's OpenMetrics writes its samples so, unless asked not to
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
    "estimated_read_bytes_per_gpu_total",
)
HISTOGRAMS = (
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
)
_CREATED = "generation_tokens_created"  # when the engine's counters began; absent with several API servers
_RUNNING, _WAITING, _KV = "num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"
_GAUGES = (_RUNNING, _WAITING, _KV, _CREATED)
_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"
_PARTS = ("_bucket", "_sum", "_count")
_HISTOGRAMS = frozenset((*HISTOGRAMS, *(old for old, new in _RENAMED.items() if new in HISTOGRAMS)))
_SAMPLES = frozenset(f"{name}{part}" for name in _HISTOGRAMS for part in _PARTS)
_NAMES = frozenset((*COUNTERS, *_GAUGES, _PER_POSITION, *_RENAMED)) | _HISTOGRAMS | _SAMPLES
_LONGEST_NAME = 100  # characters of a line in which a name ends
_LONGEST_LINE = 16 * 1024  # the parser's time grows with the square of a line's labels

Series = tuple[str, ...]  # name, engine, and every other label as "name=value", sorted


class PageError(ValueError):
    """The text is not a vLLM /metrics page."""


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed page. ``t`` is CLOCK_MONOTONIC seconds at the middle of the scrape. Absent is not zero.

    ``kv_usage_each`` and ``running_each`` are by engine, in the engines' order. ``unknown``: names that had
    a sample which is no number, and so are absent on this page only.
    """

    t: float
    counters: Mapping[str, float]
    histograms: Mapping[str, Histogram]
    accepted_by_position: tuple[float, ...]
    running: float | None
    waiting: float | None
    kv_usage: float | None
    engines: int
    kv_usage_each: tuple[float, ...] = ()
    running_each: Mapping[str, float] = field(default_factory=dict)
    series: Mapping[Series, float] = field(default_factory=dict)
    births: Mapping[Series, float] = field(default_factory=dict)  # unix seconds
    unknown: frozenset[str] = frozenset()

    @property
    def speculating(self) -> bool:
        """spec_decode counters are registered (at 0) exactly when speculation is configured."""
        return "spec_decode_num_drafts_total" in self.counters

    @property
    def created(self) -> float | None:
        """When the first engine's counters began, unix seconds."""
        return min(self.births.values(), default=None)

    def each(self) -> Mapping[Series, float]:
        """The counters one by one; of a page without series, as they are."""
        return self.series or {(name,): value for name, value in self.counters.items()}


@dataclass(slots=True)
class _Sums:
    series: dict[Series, float] = field(default_factory=dict)
    positions: dict[int, float] = field(default_factory=dict)
    gauges: dict[Series, float] = field(default_factory=dict)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    engines: set[str] = field(default_factory=set)
    spoilt: set[str] = field(default_factory=set)  # had a NaN or an infinite sample: not known

    def add(self, name: str, labels: Mapping[str, str], value: float) -> None:
        self.engines.add(labels.get("engine", "0"))
        if not math.isfinite(value):
            family = _family(name)
            self.spoilt |= {name, _RENAMED.get(family, family)}
        if name == _PER_POSITION:
            position = int(labels["position"])
            self.positions[position] = self.positions.get(position, 0.0) + value
        elif name in _GAUGES:
            key = _key(name, labels)
            self.gauges[key] = max(value, self.gauges.get(key, value))
        elif name in COUNTERS:
            key = _key(name, labels)
            self.series[key] = self.series.get(key, 0.0) + value
        else:
            self._add_histogram(name, labels, value)

    def drop_spoilt(self) -> None:
        """A figure made of one bad sample would be wrong as a whole: absent instead."""
        self.series = {key: value for key, value in self.series.items() if key[0] not in self.spoilt}
        self.gauges = {key: value for key, value in self.gauges.items() if key[0] not in self.spoilt}
        for name in self.spoilt:
            self.histograms.pop(name, None)
        if _PER_POSITION in self.spoilt:
            self.positions.clear()

    def _add_histogram(self, name: str, labels: Mapping[str, str], value: float) -> None:
        family, part = _family(name), name.rpartition("_")[2]
        base = _RENAMED.get(family, family)
        if family == name:
            return
        old = self.histograms.get(base, Histogram())
        if part == "bucket":
            bound = float(labels["le"])
            if math.isnan(bound):
                raise ValueError("a bucket without a bound")
            old.buckets[bound] = old.buckets.get(bound, 0.0) + value
            self.histograms[base] = old
        elif part == "sum":
            self.histograms[base] = Histogram(old.sum + value, old.count, old.buckets)
        elif part == "count":
            self.histograms[base] = Histogram(old.sum, old.count + value, old.buckets)

    def counters(self) -> dict[str, float]:
        """Each counter over all its series."""
        summed: dict[str, float] = {}
        for key, value in self.series.items():
            summed[key[0]] = summed.get(key[0], 0.0) + value
        return summed

    def by_engine(self, name: str) -> dict[str, list[float]]:
        """A gauge's values by engine, in the engines' order."""
        found: dict[str, list[float]] = {}
        for key, value in self.gauges.items():
            if key[0] == name:
                found.setdefault(key[1], []).append(value)
        return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def parse(text: str, t: float) -> Page:
    """Numbers of a page scraped at ``t``. Raises PageError when it is none of vLLM's, or breaks off."""
    lines, sums = _relevant(text), _Sums()
    if lines and not text.endswith(("\n", "# EOF")):
        raise PageError("the page breaks off")  # "… 123" may have been 1234, and series behind it are missing
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                name = sample.name[len(_P) :]
                sums.add(_RENAMED.get(name, name), sample.labels, float(sample.value))
    except (ValueError, KeyError, IndexError, OverflowError) as exc:
        raise PageError(f"not a Prometheus page: {exc}") from None
    sums.drop_spoilt()
    if not sums.series and not sums.gauges:
        raise PageError("no vLLM metric on the page")
    running = {engine: sum(values) for engine, values in sums.by_engine(_RUNNING).items()}
    usage = tuple(max(values) for values in sums.by_engine(_KV).values())
    return Page(
        t=t,
        counters=sums.counters(),
        histograms=sums.histograms,
        accepted_by_position=tuple(sums.positions[i] for i in sorted(sums.positions)),
        running=_sum(running.values()),
        waiting=_sum(sum(values) for values in sums.by_engine(_WAITING).values()),
        kv_usage=max(usage, default=None),
        engines=len(sums.engines),
        kv_usage_each=usage,
        running_each=running,
        series=sums.series,
        births={key: value for key, value in sums.gauges.items() if key[0] == _CREATED},
        unknown=frozenset(sums.spoilt),
    )


def _key(name: str, labels: Mapping[str, str]) -> Series:
    """Whatever order the labels come in."""
    rest = (f"{label}={value}" for label, value in labels.items() if label not in ("engine", "pid"))
    return (name, labels.get("engine", "0"), *sorted(rest))


def _relevant(text: str) -> list[str]:
    """Only the lines that are read: the parser's time goes with the lines it sees.

    A page in between two releases has a figure under its old name and its new one: the old one is left out.
    """
    prefix = _P if text.startswith(_P) or f"\n{_P}" in text else _ESCAPED
    lines: list[tuple[str, str]] = []
    sampled: set[str] = set()
    for line in text.split("\n"):
        bare = line.removeprefix("# TYPE ")
        if not bare.startswith(prefix):
            continue
        name = bare[len(_P) : _LONGEST_NAME].partition("{")[0].partition(" ")[0]
        if name not in _NAMES:
            continue
        if len(line) > _LONGEST_LINE:
            raise PageError(f"a line of {len(line):,} characters")
        lines.append((name, line))
        if bare is line:
            sampled.add(_family(name))
    doubled = {old for old, new in _RENAMED.items() if old in sampled and new in sampled}
    return [line for name, line in lines if _family(name) not in doubled]


def _family(name: str) -> str:
    """A histogram's samples bear its name and a part."""
    return name.rpartition("_")[0] if name in _SAMPLES else name


def _sum(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) if found else None

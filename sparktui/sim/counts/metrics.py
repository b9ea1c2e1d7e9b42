"""The stand-in's /metrics: what its engines did, in the families of the release it speaks like."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from sparktui.sim.counts import cacheinfo, exposition, families
from sparktui.sim.counts.counts import EngineCounts, histogram_bounds
from sparktui.sim.counts.exposition import label_text
from sparktui.sim.counts.families import Family
from sparktui.sim.counts.httpcounts import HttpCounts
from sparktui.sim.counts.observed import Observed
from sparktui.sim.counts.traffic import Traffic
from sparktui.sim.model.engine import Engine
from sparktui.sim.model.requests import Step
from sparktui.sim.release import Release

_DEFAULT = Release()
_MAX_MODEL_LEN = 32768


class Metrics:
    """Counts what the engines did.

    ``k``: draft positions, 0 leaves the spec_decode counters out. ``cache_config``: known labels of
    cache_config_info. ``log_stats``: False with --disable-log-stats, whose page has no family of vLLM's.
    ``hidden``: with --show-hidden-metrics-for-version. ``traffic``: with --enable-mfu-metrics.
    """

    def __init__(
        self,
        model_name: str,
        k: int,
        cache_config: Mapping[str, str],
        release: Release = _DEFAULT,
        engines: int = 1,
        max_model_len: int = _MAX_MODEL_LEN,
        log_stats: bool = True,
        hidden: bool = False,
        traffic: Traffic | None = None,
    ) -> None:
        self.release = release
        self.log_stats = log_stats
        self.http = HttpCounts()
        self.observed = tuple(Observed(k) for _ in range(engines))
        self._model = {"model_name": model_name}
        self._families = tuple(families.of(release, k, hidden)) if log_stats else ()
        self._bounds = histogram_bounds(max_model_len)
        self._traffic = traffic
        self._cache_config = cacheinfo.labels(release, cache_config)
        self._counts = self._zeros()
        self._process = _process_registry()

    def record(self, step: Step, engine: Engine, index: int = 0) -> None:
        """Count one completed step of engine ``index`` and the engine's state after it."""
        if not self.log_stats:
            return
        self._counts[index].count(step)
        self.observed[index].see(step)
        self.set_state(engine, index)

    def set_state(self, engine: Engine, index: int = 0) -> None:
        """Refresh the gauges of engine ``index``."""
        seen = self.observed[index]
        seen.running, seen.waiting, seen.kv_usage = engine.running, engine.waiting, engine.kv_usage

    def reset(self) -> None:
        """Every counter and histogram starts at 0 again, with a new creation time; gauges stay."""
        self._counts = self._zeros()
        self.http.reset()

    def page(self) -> bytes:
        """The text of /metrics."""
        lines: list[str] = []
        for family in self._families:
            lines += self._lines(family)
        if self.log_stats:
            lines += exposition.simple("vllm:cache_config_info", "gauge", cacheinfo.HELP, self._cache_info())
        text = "\n".join([*lines, *self.http.lines(), ""])
        return generate_latest(self._process) + text.encode()

    def _zeros(self) -> list[EngineCounts]:
        now = time.time()
        return [EngineCounts(self._bounds, now, self._traffic) for _ in self.observed]

    def _lines(self, family: Family) -> list[str]:
        name = f"vllm:{family.name}"
        if family.kind == "histogram":
            series = [
                (self._labels(index), counts.histograms[family.key])
                for index, counts in enumerate(self._counts)
            ]
            return exposition.histogram(name, family.help, series, self._counts[0].created)
        samples = list(self._samples(family))
        if family.kind == "counter":
            return exposition.counter(name, family.help, samples, self._counts[0].created)
        return exposition.simple(name, "gauge", family.help, samples)

    def _samples(self, family: Family) -> Iterator[tuple[str, float]]:
        for index, counts in enumerate(self._counts):
            labels = self._labels(index) if family.per_engine else self._model
            for value in family.values:
                own = {family.label: value} if family.label else {}
                found = (
                    _gauge(self.observed[index], family.key, value)
                    if family.kind == "gauge"
                    else counts.value(family.key, value)
                )
                yield label_text(labels, **own), found
            if not family.per_engine:
                return

    def _labels(self, index: int) -> dict[str, str]:
        return self._model | {"engine": str(index)}

    def _cache_info(self) -> list[tuple[str, float]]:
        return [(label_text(self._cache_config, engine=str(i)), 1.0) for i in range(len(self.observed))]


def _gauge(seen: Observed, name: str, label: str) -> float:
    """A gauge's value; nothing is ever deferred, nothing sleeps."""
    values = {
        ("num_requests_running", ""): float(seen.running),
        ("num_requests_waiting", ""): float(seen.waiting),
        ("num_requests_waiting_by_reason", "capacity"): float(seen.waiting),
        ("kv_cache_usage_perc", ""): seen.kv_usage,
        ("engine_sleep_state", "awake"): 1.0,
    }
    return values.get((name, label), 0.0)


def _process_registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    GCCollector(registry=registry)
    PlatformCollector(registry=registry)
    ProcessCollector(registry=registry)
    return registry

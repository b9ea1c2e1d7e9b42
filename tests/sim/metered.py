"""An engine without noise, its steps recorded, and the page's samples."""

from __future__ import annotations

import random
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from sparktui.sim.counts.metrics import Metrics
from sparktui.sim.model.engine import Engine
from sparktui.sim.model.requests import EngineConfig, Step


def quiet(k: int, **changes: object) -> Engine:
    """An engine without noise."""
    config = EngineConfig(k=k, noise=0.0, restart_noise=0.0)
    return Engine(replace(config, **changes), random.Random(3))  # type: ignore[arg-type]


def run(engine: Engine, metrics: Metrics, index: int = 0) -> list[Step]:
    """Every step until the engine is idle, recorded."""
    steps = []
    while engine.due is not None:
        step = engine.step(engine.due)
        assert step is not None
        metrics.record(step, engine, index)
        steps.append(step)
    return steps


def values(metrics: Metrics, engine: str = "0") -> dict[str, float]:
    """Samples of one engine, without buckets: name, and its own label's value after a colon."""
    found = {}
    for family in text_string_to_metric_families(metrics.page().decode()):
        for sample in family.samples:
            own = [v for k, v in sample.labels.items() if k not in ("engine", "model_name")]
            if "le" not in sample.labels and sample.labels.get("engine", engine) == engine:
                found[":".join([sample.name.removeprefix("vllm:"), *own[:1]])] = sample.value
    return found

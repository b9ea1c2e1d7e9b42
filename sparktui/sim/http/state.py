"""/sim/state: what goes on inside, never what is expected of it."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from sparktui.sim.http.disturb import Disturbances
from sparktui.sim.model.engine import Engine
from sparktui.sim.service import EngineService


def shown(service: EngineService, disturbances: Disturbances) -> dict[str, Any]:
    """The faults that are set, and each engine with its sensors."""
    return {
        "dead": service.dead,
        "hung": service.hung,
        "faults": disturbances.shown(),
        "engines": [_engine(engine) for engine in service.engines],
    }


def _engine(engine: Engine) -> dict[str, Any]:
    return {
        "running": engine.running,
        "waiting": engine.waiting,
        "kv_usage": engine.kv_usage,
        "gpu": {"name": engine.config.truth.gpu.name} | dataclasses.asdict(engine.gpu(time.monotonic())),
    }

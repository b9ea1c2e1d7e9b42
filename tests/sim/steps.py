"""Runs the engine model in virtual time for the tests of it."""

from __future__ import annotations

import random

from sparktui.sim.model.engine import Engine, EngineConfig, Request, Step
from sparktui.sim.model.truth import Truth

FLAT = Truth(context_ms=0.0)  # steps do not grow with what was generated
QUIET = EngineConfig(noise=0.0, restart_noise=0.0, truth=FLAT)
OFF_S = FLAT.step_s(0)


def run(engine: Engine) -> list[Step]:
    """Complete steps at their deadlines until nothing is left to do."""
    steps = []
    while engine.due is not None:
        step = engine.step(engine.due)
        assert step is not None
        steps.append(step)
    return steps


def decode(config: EngineConfig, tokens: int, seed: int = 7) -> tuple[Request, list[Step]]:
    """One request alone, prompt of one token."""
    engine = Engine(config, random.Random(seed))
    request = Request("r", prompt_tokens=1, max_tokens=tokens)
    engine.add(request, 100.0)
    return request, run(engine)


def decode_rate(request: Request) -> float:
    assert request.first_token is not None
    assert request.last_token is not None
    return (request.generated - 1) / (request.last_token - request.first_token)

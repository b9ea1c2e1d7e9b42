"""Faults on demand: what may go wrong with a server, set while it runs. Only the stand-in has this.

``POST /sim/fault`` takes one JSON object: ``{"fault": NAME, FIELD: …, "for_s": SECONDS}``. Without ``for_s``
it stays until ``DELETE /sim/fault`` clears all; the same fault set again replaces itself. ``GET /sim/state``
lists what is set. A fault that happens once takes no ``for_s``. docs/sim.md lists them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar


class BadFault(Exception):
    """Not a fault, or not one with these values; the message lists what there is."""


def _number(default: float, least: float, most: float) -> Any:
    return field(default=default, metadata={"least": least, "most": most})


@dataclass(frozen=True, slots=True)
class Fault:
    """``once``: it happens and is over."""

    once: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class SlowMetrics(Fault):
    seconds: float = _number(2.0, 0.0, 3600.0)


@dataclass(frozen=True, slots=True)
class HangingMetrics(Fault):
    pass


@dataclass(frozen=True, slots=True)
class NonsenseMetrics(Fault):
    pass


@dataclass(frozen=True, slots=True)
class DroppedStreams(Fault):
    after_chunks: int = _number(5, 0, 1_000_000)
    probability: float = _number(1.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class ServerErrors(Fault):
    status: int = _number(500, 500, 599)
    probability: float = _number(1.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class RateLimit(Fault):
    retry_after_s: int = _number(1, 0, 3600)
    probability: float = _number(1.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class KeepAliveReset(Fault):
    probability: float = _number(1.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class NoUsage(Fault):
    pass


@dataclass(frozen=True, slots=True)
class FinalUsage(Fault):
    pass


@dataclass(frozen=True, slots=True)
class EngineDeath(Fault):
    once: ClassVar[bool] = True
    after_s: float = _number(0.0, 0.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Hang(Fault):
    pass


@dataclass(frozen=True, slots=True)
class CounterReset(Fault):
    once: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Throttle(Fault):
    slowdown: float = _number(1.5, 1.0, 1000.0)


@dataclass(frozen=True, slots=True)
class ForeignTraffic(Fault):
    streams: int = _number(4, 1, 1024)
    prompt_tokens: int = _number(512, 1, 1_000_000)
    max_tokens: int = _number(256, 1, 1_000_000)


@dataclass(frozen=True, slots=True)
class LateMemory(Fault):
    seconds: float = _number(10.0, 0.0, 3600.0)


@dataclass(frozen=True, slots=True)
class JitPause(Fault):
    once: ClassVar[bool] = True
    seconds: float = _number(2.0, 0.0, 3600.0)
    kernel: str = "_compute_slot_mapping_kernel"


@dataclass(frozen=True, slots=True)
class Drift(Fault):
    per_s: float = _number(0.001, -0.1, 0.1)


FAULTS: dict[str, type[Fault]] = {
    "slow_metrics": SlowMetrics,
    "hanging_metrics": HangingMetrics,
    "nonsense_metrics": NonsenseMetrics,
    "dropped_streams": DroppedStreams,
    "server_errors": ServerErrors,
    "rate_limit": RateLimit,
    "keep_alive_reset": KeepAliveReset,
    "no_usage": NoUsage,
    "final_usage": FinalUsage,
    "engine_death": EngineDeath,
    "hang": Hang,
    "counter_reset": CounterReset,
    "throttle": Throttle,
    "foreign_traffic": ForeignTraffic,
    "late_memory": LateMemory,
    "jit_pause": JitPause,
    "drift": Drift,
}


def name_of(fault: Fault) -> str:
    """Its name in requests."""
    return next(name for name, kind in FAULTS.items() if kind is type(fault))


def parse(body: Any) -> tuple[Fault, float | None]:
    """The fault that a request asks for, and for how many seconds. Raises BadFault."""
    given = dict(body) if isinstance(body, Mapping) else {}
    kind = FAULTS.get(str(given.pop("fault", "")))
    if kind is None:
        raise BadFault(f"fault must be one of: {', '.join(FAULTS)}")
    seconds = given.pop("for_s", None)
    if seconds is not None:
        if kind.once:
            raise BadFault("it happens once and takes no for_s")
        seconds = _checked("for_s", seconds, float, 0.0, 86_400.0)
    known = {item.name: item for item in dataclasses.fields(kind)}
    if unknown := [name for name in given if name not in known]:
        raise BadFault(f"unknown: {', '.join(unknown)}; fields: {', '.join([*known, 'for_s'])}")
    return kind(**{name: _field(known[name], value) for name, value in given.items()}), seconds


def _field(known: dataclasses.Field[Any], value: Any) -> Any:
    if isinstance(known.default, str):
        if not isinstance(value, str) or not value.isidentifier():
            raise BadFault(f"{known.name} must be a name, got {value!r}")
        return value
    return _checked(known.name, value, type(known.default), known.metadata["least"], known.metadata["most"])


def _checked(name: str, value: Any, kind: type, least: float, most: float) -> Any:
    right = isinstance(value, int) or (kind is float and isinstance(value, float))
    if isinstance(value, bool) or not right or not least <= value <= most:
        what = "a whole number" if kind is int else "a number"
        raise BadFault(f"{name} must be {what} from {least:g} to {most:g}, got {value!r}")
    return value

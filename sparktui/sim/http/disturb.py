"""What is wrong with the server at the moment, and the switches that make it so."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sparktui.sim.boot.logfile import Log
from sparktui.sim.http import faults
from sparktui.sim.http.answers import Script
from sparktui.sim.http.faults import Fault
from sparktui.sim.model.engine import Request
from sparktui.sim.service import EngineDead, EngineService

_F = TypeVar("_F", bound=Fault)
_JIT_TAIL = "This causes a latency spike; consider extending warmup to cover this shape/config."


@dataclasses.dataclass(slots=True)
class EngineSwitches:
    """The engine's process, as far as faults reach it: its death, and how long it outlives the server."""

    crash: Callable[[], None]
    linger: Callable[[float], None]  # seconds; 0: not at all
    usual_linger_s: float = 0.0


@dataclasses.dataclass(slots=True)
class _Active:
    fault: Fault
    undo: Callable[[], None]
    timer: asyncio.TimerHandle | None
    until: float | None


class Disturbances:
    """The faults that are set."""

    def __init__(self, service: EngineService, switches: EngineSwitches, log: Log) -> None:
        self._service = service
        self._switches = switches
        self._log = log
        self._active: dict[type[Fault], _Active] = {}

    def find(self, kind: type[_F]) -> _F | None:
        """The fault of this kind, if it is set."""
        active = self._active.get(kind)
        return active.fault if active is not None and isinstance(active.fault, kind) else None

    def set(self, fault: Fault, for_s: float | None = None) -> None:
        """Begin a fault; the log says so. Needs a running event loop."""
        kind = type(fault)
        self.end(kind)
        ending = "" if for_s is None else f" for {for_s:g} s"
        self._log.api("faults.py:1", f"Stand-in: {faults.name_of(fault)} {_fields(fault)}{ending}", "WARNING")
        undo = self._begin(fault)
        if undo is None:
            return
        timer = None
        if for_s is not None:
            timer = asyncio.get_running_loop().call_later(for_s, self.end, kind)
        until = None if for_s is None else time.monotonic() + for_s
        self._active[kind] = _Active(fault, undo, timer, until)

    def clear(self) -> None:
        """End all of them."""
        for kind in list(self._active):
            self.end(kind)

    def shown(self) -> list[dict[str, Any]]:
        """For /sim/state; ``left_s`` is null without an end."""
        now = time.monotonic()
        return [
            {"fault": faults.name_of(item.fault)}
            | _fields(item.fault)
            | {"left_s": None if item.until is None else round(max(0.0, item.until - now), 3)}
            for item in self._active.values()
        ]

    def end(self, kind: type[Fault]) -> None:
        """End one; nothing when it is not set."""
        active = self._active.pop(kind, None)
        if active is None:
            return
        if active.timer is not None:
            active.timer.cancel()
        active.undo()
        self._log.api("faults.py:1", f"Stand-in: {faults.name_of(active.fault)} ended", "WARNING")

    def _begin(self, fault: Fault) -> Callable[[], None] | None:
        """Throw the switch; returns what throws it back, None when it is over already."""
        match fault:
            case faults.Hang():
                return self._hang()
            case faults.Throttle(slowdown=slowdown):
                return self._on_engines("slowdown", slowdown, 1.0)
            case faults.Drift(per_s=per_s):
                return self._on_engines("drift_per_s", per_s, 0.0)
            case faults.ForeignTraffic():
                return self._foreign(fault)
            case faults.LateMemory(seconds=seconds):
                self._switches.linger(seconds)
                return lambda: self._switches.linger(self._switches.usual_linger_s)
            case faults.CounterReset():
                self._service.metrics.reset()
                return None
            case faults.EngineDeath(after_s=after_s):
                return asyncio.get_running_loop().call_later(after_s, self._crash).cancel
            case faults.JitPause():
                self._jit(fault)
                return None
        return _nothing

    def _crash(self) -> None:
        self.end(faults.EngineDeath)
        self._switches.crash()

    def _hang(self) -> Callable[[], None]:
        self._service.hung = True

        def undo() -> None:
            self._service.hung = False

        return undo

    def _on_engines(self, name: str, value: float, normal: float) -> Callable[[], None]:
        def put(number: float) -> None:
            for engine in self._service.engines:
                setattr(engine, name, number)

        put(value)
        return lambda: put(normal)

    def _jit(self, fault: faults.JitPause) -> None:
        for engine in self._service.engines:
            engine.pause(fault.seconds)
        text = f"Triton kernel JIT compilation during inference: {fault.kernel}. {_JIT_TAIL}"
        self._log.engine("jit_monitor.py:106", text, "WARNING")

    def _foreign(self, fault: faults.ForeignTraffic) -> Callable[[], None]:
        tasks = [asyncio.ensure_future(_stranger(self._service, fault, i)) for i in range(fault.streams)]

        def undo() -> None:
            for task in tasks:
                task.cancel()

        return undo


async def _stranger(service: EngineService, fault: faults.ForeignTraffic, number: int) -> None:
    """Somebody else's client: one request after the other, until cancelled."""
    with contextlib.suppress(EngineDead):
        while True:
            request = Request(f"chatcmpl-foreign{number}", fault.prompt_tokens, fault.max_tokens)
            stream = service.submit(request, Script(number))
            try:
                await stream.ended()
            finally:
                service.release(stream)


def _fields(fault: Fault) -> dict[str, Any]:
    return dataclasses.asdict(fault)


def _nothing() -> None:
    """Undoes what needs no undoing."""

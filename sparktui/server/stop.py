"""Stopping a server for good: signals to the whole group, escalating, and proof that nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from sparktui.schema.records import ProcessRef
from sparktui.server.port import is_free
from sparktui.server.process import alive, living

_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds that each signal gets. A boot step finishes before SIGINT is noticed (18 s seen)."""

    interrupt_s: float = 30.0
    terminate_s: float = 10.0
    kill_s: float = 10.0
    orphan_s: float = 2.0  # for what outlived its API server: nothing coordinates it any more


@dataclass(frozen=True, slots=True)
class Stopped:
    """How it ended: the last signal that was needed ("" when nothing ran), and what is left, if anything."""

    by: str
    seconds: float
    left: tuple[ProcessRef, ...]
    port_free: bool


async def stop(
    leader: ProcessRef,
    tree: Sequence[ProcessRef],
    host: str,
    port: int,
    *,
    patience: Patience | None = None,
    reap: Callable[[], None] = lambda: None,
) -> Stopped:
    """SIGINT to the group, then SIGTERM, then SIGKILL, each only if something is left. ``reap`` is called
    between looks, so that dead children don't count as zombies for ever."""
    patience = patience or Patience()
    begun = monotonic()
    by = ""
    if not alive(leader):
        patience = Patience(patience.orphan_s, patience.orphan_s, patience.kill_s)
    stages = (
        (signal.SIGINT, patience.interrupt_s),
        (signal.SIGTERM, patience.terminate_s),
        (signal.SIGKILL, patience.kill_s),
    )
    left = living(leader, tree)
    for number, seconds in stages:
        if not left:
            break
        by = number.name
        _signal(left, number)
        left = await _gone(leader, tree, seconds, patience.orphan_s, reap)
    reap()
    return Stopped(by, monotonic() - begun, left, await _port_free(host, port))


async def _gone(
    leader: ProcessRef,
    tree: Sequence[ProcessRef],
    seconds: float,
    orphan_s: float,
    reap: Callable[[], None],
) -> tuple[ProcessRef, ...]:
    until = monotonic() + seconds
    leader_died: float | None = None
    while True:
        reap()
        left = living(leader, tree)
        if not left or monotonic() >= until:
            return left
        if leader_died is None and not alive(leader):
            leader_died = monotonic()
            until = min(until, leader_died + orphan_s)
        await asyncio.sleep(_POLL_S)


async def _port_free(host: str, port: int, seconds: float = 2.0) -> bool:
    until = monotonic() + seconds
    while not is_free(host, port):
        if monotonic() >= until:
            return False
        await asyncio.sleep(_POLL_S)
    return True


def _signal(processes: Sequence[ProcessRef], number: signal.Signals) -> None:
    for process in processes:
        if alive(process):
            try:
                os.kill(process.pid, number)
            except (ProcessLookupError, PermissionError):  # gone, or not ours: reported as left
                continue

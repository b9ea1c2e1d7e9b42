"""The A/B as a persisted state machine. Pure: no clock, no I/O; every transition gives a new value.

Starts follow each other; each start boots one arm and measures every load; a load goes through warm-up,
settle and window. What ends a start early (boot failed, server died, three voids, cancel) ends the
experiment after an orderly stop: half an answer is kept, never dressed up as a whole one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sparktui.schema.launch import After
from sparktui.schema.live import BootPhase, Finding
from sparktui.schema.records import Cell

Stage = Literal["boot", "warm-up", "settle", "window", "stop", "end"]
MAX_VOIDS = 3
DIED_UNWATCHED = "the server died while no host watched it"
PROMPTS_PER_LOAD = 1_000_000
_MAX_LOADS = 64


@dataclass(frozen=True, slots=True)
class Boot:
    """One server start: what its log said, or why it failed."""

    arm: int
    seconds: float | None = None
    version: str | None = None
    findings: tuple[Finding, ...] = ()
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    phases: tuple[BootPhase, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """``experiment.json``. ``order`` holds the arm of each start; ``start`` and ``load`` are indexes."""

    arms: tuple[int, ...]  # A and B
    order: tuple[int, ...]
    loads: tuple[int, ...]
    after: After = "original"
    original: int | None = None  # the arm that served before; None: nothing did
    serial: int = 1  # of this run's experiments; 0 stands for the load that the user sets
    resumes: int = 0
    stage: Stage = "boot"
    start: int = 0
    load: int = 0
    steady: bool = True
    voids: int = 0
    ending: str = ""  # why it ends before its last start; empty: it doesn't
    boots: tuple[Boot, ...] = ()
    cells: tuple[Cell, ...] = ()

    @property
    def first_prompt(self) -> int:
        """Number of the prompt that this load's window begins with: the same in every arm, and none that a
        server could have seen before in its life, or the prefix cache would decide."""
        return ((self.serial + 1000 * self.resumes) * _MAX_LOADS + self.load) * PROMPTS_PER_LOAD

    @property
    def arm(self) -> int:
        return self.order[min(self.start, len(self.order) - 1)]

    @property
    def concurrency(self) -> int:
        return self.loads[min(self.load, len(self.loads) - 1)]

    @property
    def last_start(self) -> bool:
        return self.start == len(self.order) - 1

    @property
    def outcome(self) -> str:
        return self.ending or "done"


def begin(
    arms: Sequence[int],
    loads: Sequence[int],
    rounds: int,
    after: After = "original",
    original: int | None = None,
    serial: int = 1,
) -> Experiment:
    """Order A B, B A, A B, …: drift falls on both arms alike. B first where it serves already: that saves
    a boot."""
    pair = tuple(arms)[:: -1 if original == arms[-1] else 1]
    order = tuple(arm for i in range(rounds) for arm in (pair if i % 2 == 0 else pair[::-1]))
    return Experiment(tuple(arms), order, tuple(loads), after, original, serial)


def serves_after(e: Experiment, winner: int | None) -> int | None:
    """The arm that serves at the end, None for none. Without a result, and after a failure or a cancel, it
    is what served before; only ``stop`` always stops."""
    if e.after == "stop":
        return None
    if e.ending or e.after == "original":
        return e.original
    if e.after == "last":
        return e.order[-1]
    return e.original if winner is None else winner


def booted(e: Experiment, boot: Boot) -> Experiment:
    """The server is ready."""
    return dataclasses.replace(e, stage="warm-up", load=0, voids=0, boots=(*e.boots, boot))


def boot_failed(e: Experiment, boot: Boot) -> Experiment:
    """The server will not be ready."""
    return _end(dataclasses.replace(e, boots=(*e.boots, boot)), boot.failure)


def warmed_up(e: Experiment) -> Experiment:
    return dataclasses.replace(e, stage="settle")


def settled(e: Experiment, steady: bool) -> Experiment:
    return dataclasses.replace(e, stage="window", steady=steady)


def measured(e: Experiment, cell: Cell) -> Experiment:
    """One window done: the next load, or the stop of this start."""
    e = dataclasses.replace(e, cells=(*e.cells, cell), voids=0)
    if e.load + 1 < len(e.loads):
        return dataclasses.replace(e, stage="warm-up", load=e.load + 1)
    return dataclasses.replace(e, stage="stop")


def voided(e: Experiment, why: str) -> Experiment:
    """The window is worth nothing: again, at most three times."""
    if e.voids + 1 >= MAX_VOIDS:
        return _end(e, f"could not measure: {why}, {MAX_VOIDS} times")
    return dataclasses.replace(e, stage="settle", voids=e.voids + 1)


def failed(e: Experiment, why: str) -> Experiment:
    """The server died or refuses our requests: this start ends, and the experiment with it."""
    return _end(e, why)


def cancelled(e: Experiment) -> Experiment:
    return _end(e, "cancelled")


def stopped(e: Experiment) -> Experiment:
    """The server of this start is gone."""
    if e.ending or e.last_start:
        return dataclasses.replace(e, stage="end")
    return dataclasses.replace(e, stage="boot", start=e.start + 1, load=0, voids=0)


def kept_serving(e: Experiment) -> Experiment:
    """The last start's server stays up."""
    return dataclasses.replace(e, stage="end")


def resumed(e: Experiment, server_lives: bool) -> Experiment:
    """A new host took over: an interrupted load begins again at its warm-up, an interrupted boot is adopted
    or begun again; a server that died unwatched while it was measured ends it all with what there is."""
    e = dataclasses.replace(e, resumes=e.resumes + 1)
    if e.stage in ("boot", "stop", "end"):
        return e
    if not server_lives:
        return _end(e, DIED_UNWATCHED)
    return dataclasses.replace(e, stage="warm-up")


def _end(e: Experiment, why: str) -> Experiment:
    return dataclasses.replace(e, stage="stop", ending=e.ending or why)

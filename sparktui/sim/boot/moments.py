"""A boot as moments: wait for a share of it, then print. With progress bars as tqdm writes them to a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sparktui.sim.boot.logfile import Log


@dataclass(frozen=True, slots=True)
class Moment:
    """``mark``: a point where a failing boot may fail, before anything is printed."""

    share: float
    emit: Callable[[Log], None]
    mark: str = ""


def api(share: float, file: str, message: str, level: str = "INFO") -> Moment:
    """A record of the API server."""
    return Moment(share, lambda log: log.api(file, message, level))


def engine(share: float, file: str, message: str, level: str = "INFO") -> Moment:
    """A record of each engine."""
    return Moment(share, lambda log: log.engine(file, message, level))


def engine_raw(share: float, text: str) -> Moment:
    """Output of each engine that is no record."""
    return Moment(share, lambda log: log.engine_raw(text))


def mark(name: str) -> Moment:
    return Moment(0.0, lambda log: None, name)


def shards(share: float, count: int, seconds: float) -> Iterator[Moment]:
    """The checkpoint's bar: states begin with a carriage return and end in a newline; an empty line ends it.

    ``seconds``: the modelled machine's, for all shards.
    """
    pace = max(seconds / count, 1e-3)
    for done in range(count + 1):
        left = f"{_clock(done * pace)}<{_clock((count - done) * pace)}, {_rate(pace)}"
        timing = "[00:00<?, ?it/s]" if not done else f"[{left}]"
        text = (
            f"\rLoading safetensors checkpoint shards: {100 * done // count:3d}% Completed | {done}/{count} "
        )
        yield Moment(share / (count + 1), _raw(text + timing))
    yield engine_raw(0.0, "")


def bar(title: str, total: int, share: float, seconds: float) -> Iterator[Moment]:
    """A tqdm bar without a terminal: one line whose states follow each other after carriage returns."""
    pace, steps = max(seconds / total, 1e-3), 8
    yield Moment(0.0, lambda log: log.engine_part(log.bar_prefix))
    for step in range(steps + 1):
        done = total * step // steps
        blocks = "█" * (10 * done // total)
        left = f"{_clock(done * pace)}<{_clock((total - done) * pace)}, {_rate(pace)}"
        timing = "[00:00<?, ?it/s]" if not done else f"[{left}]"
        text = f"\r{title}: {100 * done // total:3d}%|{blocks:<10}| {done}/{total} {timing}"
        yield Moment(share / steps, _part(text))
    yield Moment(0.0, _part("\n"))


def _raw(text: str) -> Callable[[Log], None]:
    return lambda log: log.engine_raw(text, 0)


def _part(text: str) -> Callable[[Log], None]:
    return lambda log: log.engine_part(text)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def _rate(pace: float) -> str:
    """tqdm's: iterations a second, or seconds an iteration when that is more than one."""
    return f"{pace:5.2f}s/it" if pace > 1 else f"{1 / pace:5.2f}it/s"

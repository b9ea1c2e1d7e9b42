"""How far the progress bars of a boot phase are.

Checkpoint shards have a bar that vLLM ends with a newline, ``Loading … shards:  8% Completed | 1/13 [``; the
others are tqdm's own, ``DeepGEMM warmup:  25%|██▌   | 30/120 [``, which carriage returns rewrite.
"""

from __future__ import annotations

import re

from sparktui.bootlog.lines import Line

_COUNT = r"(\d+(?:\.\d+)?)([kKMGT]?)"
_SHARDS = re.compile(rf"((?:Multi-thread l|L)oading [\w ]{{1,80}}): +\d+% Completed \| {_COUNT}/{_COUNT} \[")
_TQDM = re.compile(rf"([^|%]{{1,160}}): +\d+%\|[^|]*\| *{_COUNT}/{_COUNT} \[")
_PLAN = "Profiling CUDA graph memory: "
_PLANNED = re.compile(r"=(\d+) \(largest")
_UNITS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

Bar = tuple[str, float, float]
"""Description, done, total."""


def shards_bar(message: str) -> Bar | None:
    """The bar of a checkpoint that is being read."""
    return _bar(_SHARDS.match(message))


def tqdm_bar(message: str) -> Bar | None:
    """A bar of tqdm's own."""
    return _bar(_TQDM.match(message)) if "%|" in message else None


def planned_graphs(message: str) -> int | None:
    """How many CUDA graphs the V1 runner means to capture: ``PIECEWISE=49 (largest=512), FULL=33 (…)``."""
    if not message.startswith(_PLAN):
        return None
    return sum(int(count) for count in _PLANNED.findall(message))


def _bar(found: re.Match[str] | None) -> Bar | None:
    if found is None:
        return None
    name, done, unit, total, of_unit = found.groups()
    return name, float(done) * _UNITS[unit], float(total) * _UNITS[of_unit]


class Bars:
    """The bars of one phase, together. One that starts anew, for a drafter's weights, is another bar."""

    def __init__(self) -> None:
        self._bars: dict[tuple[str | None, str], tuple[float, float]] = {}
        self._over = 0.0  # counts of bars that started anew

    def see(self, line: Line, bar: Bar) -> None:
        name, done, total = bar
        before = self._bars.get((line.process, name), (0.0, 0.0))
        if done < before[0]:
            self._over += before[1]
        self._bars[line.process, name] = (done, total)

    def share(self, planned: float = 0.0) -> float | None:
        """Done share of what is known, 0..1; it falls when a bar comes that nobody had announced."""
        total = max(planned, self._over + sum(total for _, total in self._bars.values()))
        done = self._over + sum(done for done, _ in self._bars.values())
        return min(1.0, done / total) if total > 0 else None

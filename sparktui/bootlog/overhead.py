"""Speculation that costs and gives nothing back: hardly any drafted token is accepted."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from sparktui.schema.bootlog import SpecStats
from sparktui.schema.live import Finding

PERIOD_S = 60.0
MIN_DRAFTED = 500  # tokens; at 5 % the rate's own error is then about one point
_MOST = 1000  # intervals
TOO_LOW = 0.05
RECOVERED = 0.10  # above TOO_LOW, so that a rate that hovers there isn't told over and over


@dataclass(frozen=True, slots=True)
class _Interval:
    t: float  # its end
    accepted: int
    drafted: int
    first_position: float | None


class OverheadWatch:
    """Adds up ``SpecDecoding metrics`` lines until they cover a minute and 500 drafted tokens."""

    def __init__(self) -> None:
        # the first only marks where the second begins; bounded for lines that come without time
        self._intervals: deque[_Interval] = deque(maxlen=_MOST)
        self._told = False

    def read(self, stats: SpecStats, t: float) -> Finding | None:
        """A finding when acceptance fell under 5 %; another only after it was 10 % again. ``t``: seconds."""
        if self._intervals and t < self._intervals[-1].t:
            self._intervals.clear()
        first = stats.acceptance_by_position[0] if stats.acceptance_by_position else None
        self._intervals.append(_Interval(t, stats.accepted, stats.drafted, first))
        while self._enough(start=1):
            self._intervals.popleft()
        if not self._enough(start=0):
            return None
        return self._judge()

    def _enough(self, start: int) -> bool:
        """Whether the intervals behind ``start`` cover the period and the tokens."""
        if len(self._intervals) < start + 2:
            return False
        covered = self._intervals[-1].t - self._intervals[start].t
        if covered < PERIOD_S:
            return False
        drafted = sum(each.drafted for each in list(self._intervals)[start + 1 :])
        return drafted >= MIN_DRAFTED

    def _judge(self) -> Finding | None:
        counted = list(self._intervals)[1:]
        drafted = sum(each.drafted for each in counted)
        rate = sum(each.accepted for each in counted) / drafted
        if rate >= RECOVERED:
            self._told = False
        if rate >= TOO_LOW or self._told:
            return None
        self._told = True
        return _finding(rate, drafted, self._intervals[-1].t - self._intervals[0].t, _first_position(counted))


def _first_position(counted: list[_Interval]) -> float | None:
    """Weighted by drafted tokens: the lines don't say how many drafts there were."""
    known = [(each.first_position, each.drafted) for each in counted if each.first_position is not None]
    weight = sum(drafted for _, drafted in known)
    return sum(rate * drafted for rate, drafted in known) / weight if weight else None


def _finding(rate: float, drafted: int, seconds: float, first: float | None) -> Finding:
    position = "" if first is None else f"; position 1: {100 * first:.1f} %"
    return Finding(
        id="spec-overhead",
        severity="costs speed",
        line=0,
        text=f"{100 * rate:.1f} % of {drafted:,} drafted tokens accepted in {seconds:.0f} s{position}",
        meaning="Speculation is pure overhead: steps draft and verify tokens that are then thrown away.",
        cost="All that drafting and verifying take; a step yields about one token, as without speculation.",
        remedy="Turn speculation off. If it should work here, suspect the drafter: another model's, "
        "weights that didn't load, a broken quantization.",
        flag="--speculative-config",
    )

"""The steady window of one load, found while the load process's totals come. Pure, and reads no clock.

Every stream asks, each has had its first text, none drains.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sparktui.schema.gaps import merged
from sparktui.schema.messages import LoadTotals

_TAIL_S = 1.0  # nothing but failures for so long at the end: the server had gone
_FAILURES = 2  # in a row, with nothing between them


@dataclass(slots=True)
class Window:
    """Finds the steady window while totals come, and keeps what falls into it. Reads no clock."""

    concurrency: int
    series: list[LoadTotals] = field(default_factory=list)  # while all were asked for; without the lists
    ttft_ms: list[float] = field(default_factory=list)
    gaps: dict[str, int] = field(default_factory=dict)
    steady: bool = False
    closed: bool = False  # the time is up: what comes now is drain
    _start: int = 0  # index into series
    _full_at: float | None = None  # when every stream had begun
    _arrived: int = 0  # index of the last line with anything new
    _idle: LoadTotals | None = None

    def take(self, totals: LoadTotals) -> bool:
        """The next line of totals. True when it opened the steady window."""
        if self.closed:
            return False
        slim = replace(totals, ttft_ms=(), gaps={})
        if totals.asked != self.concurrency:
            self._idle = slim
            return False
        if not self.series:
            self.series.append(self._idle or replace(slim, t=totals.t, output_tokens=0, chunks=0))
        self.series.append(slim)
        self.ttft_ms += totals.ttft_ms
        self.gaps = merged((self.gaps, totals.gaps))
        if _moved(self.series[-2], slim):
            self._arrived = len(self.series) - 1
        return self._open(slim)

    def _open(self, totals: LoadTotals) -> bool:
        if self.steady:
            return False
        failing = totals.errors > 0 and totals.done >= self.concurrency  # a failed stream pauses
        if self._full_at is None and (totals.in_flight >= self.concurrency or failing):
            self._full_at = totals.t
        if self._full_at is None or not self._arrived:
            return False
        if totals.waiting and totals.longest_wait_s >= totals.t - self._full_at:
            return False  # one of those that wait began before all had begun
        self.steady = True
        self._start = len(self.series) - 1
        self.ttft_ms, self.gaps = [], {}
        return True

    @property
    def lost(self) -> bool:
        """Whether requests have only failed since something last came."""
        if not self.series:
            return False
        last, arrived = self.series[-1], self.series[self._arrived]
        return last.errors - arrived.errors >= _FAILURES and last.t - arrived.t >= _TAIL_S

    @property
    def silent_s(self) -> float:
        """How long ago something last came, of any stream."""
        return self.series[-1].t - self.series[self._arrived].t if self.series else 0.0

    @property
    def pause_s(self) -> float:
        """The longest time within the window in which nothing came although streams were decoding."""
        longest, since = 0.0, self.series[self._start].t if self.series else 0.0
        for a, b in itertools.pairwise(self.series[self._start :]):
            if _moved(a, b) or a.in_flight <= a.waiting:
                since = b.t
            longest = max(longest, b.t - since)
        return longest

    @property
    def arrived(self) -> bool:
        """Whether anything came in the window."""
        return self._arrived > self._start or self.steady

    @property
    def span(self) -> list[LoadTotals]:
        """The window's lines. A server that had gone is not measured: it ends with the last that came.
        Without a steady window: all of the load; empty before the first request."""
        end = self._arrived + 1 if self.lost else len(self.series)
        return self.series[self._start : max(end, self._start + 1)]

    @property
    def seconds(self) -> float:
        """Of load, from the first request to the last line before the drain."""
        return self.series[-1].t - self.series[0].t if self.series else 0.0


def _moved(a: LoadTotals, b: LoadTotals) -> bool:
    return b.chunks > a.chunks or b.output_tokens > a.output_tokens or b.ok > a.ok


def tokens_at(series: Sequence[LoadTotals], t: float) -> float:
    """Tokens that had come at ``t``, interpolated between two lines of totals."""
    for a, b in itertools.pairwise(series):
        if a.t <= t <= b.t:
            share = (t - a.t) / (b.t - a.t) if b.t > a.t else 0.0
            return a.output_tokens + share * (b.output_tokens - a.output_tokens)
    return float(series[0].output_tokens if t < series[0].t else series[-1].output_tokens)

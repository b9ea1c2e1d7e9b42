"""Totals over all streams: cumulative, and collected since they were last told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from sparktui.schema.records import Usage
from sparktui.schema.usage import USAGE_S, poorest


@dataclass(slots=True)
class Counts:
    """Cumulative over the life of the load process, except ``ttft_ms`` and ``gaps`` (see ``take``) and the
    kind of usage (see ``usage``)."""

    done: int = 0
    ok: int = 0
    errors: int = 0
    cancelled: int = 0
    output_tokens: int = 0
    decode_tokens: int = 0
    stream_seconds: float = 0.0
    chunks: int = 0
    last_error: str = ""
    ttft_ms: list[float] = field(default_factory=list)  # of the first texts since the last ``take``
    gaps: dict[int, int] = field(default_factory=dict)  # chunk gaps since then: buckets of schema.gaps
    _told: dict[Usage, float] = field(default_factory=dict)  # each kind of usage, and when it was last seen

    def saw(self, usage: Usage, t: float) -> None:
        """One answer's kind of usage, known at ``t`` (CLOCK_MONOTONIC seconds)."""
        if usage:
            self._told[usage] = max(t, self._told.get(usage, t))

    def usage(self, now: float) -> Usage:
        """The poorest kind of the last ``USAGE_S`` before ``now``; the last where none is so recent."""
        recent = [kind for kind, t in self._told.items() if t >= now - USAGE_S]
        return poorest(recent or sorted(self._told, key=self._told.__getitem__)[-1:])

    def take(self) -> tuple[tuple[float, ...], dict[str, int]]:
        """TTFTs (ms) and chunk gaps since the last call."""
        ttft, gaps = self.ttft_ms, self.gaps
        self.ttft_ms, self.gaps = [], {}
        return tuple(ttft), {str(bucket): count for bucket, count in gaps.items()}


class Open(Protocol):
    """A request in flight, as far as the totals ask."""

    @property
    def start(self) -> float: ...
    @property
    def first_text(self) -> float | None: ...
    def open_gap_s(self, now: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the requests in flight stand. ``open_gaps_s``: Σ time since the last token chunk, of those that
    are decoding: it belongs to their stream-seconds before their next chunk comes, or a stream that stalls
    would leave the figure instead of pulling it down."""

    waiting: int = 0
    longest_wait_s: float = 0.0
    open_gaps_s: float = 0.0


def standing(requests: Iterable[Open], now: float) -> Standing:
    """``now``: CLOCK_MONOTONIC seconds."""
    waiting, oldest, gaps = 0, now, 0.0
    for request in requests:
        if request.first_text is None:
            waiting += 1
            oldest = min(oldest, request.start)
        gaps += request.open_gap_s(now)
    return Standing(waiting, now - oldest, gaps)

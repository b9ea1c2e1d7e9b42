"""One load on one server: warm-up, settle, window. Batches of wall-clock time, across all streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from sparktui.compare.stats import decode_rate, decode_value, output_value, slope_is_significant
from sparktui.host.cell import Measured, batch_between
from sparktui.host.experiment import PROMPTS_PER_LOAD
from sparktui.host.live import Live
from sparktui.metrics.others import Others
from sparktui.schema.launch import MeasureSpec
from sparktui.schema.messages import LoadTarget, LoadTotals
from sparktui.schema.records import Batch, RequestRow

_WARM_UP_PROMPTS = PROMPTS_PER_LOAD // 2  # its own: a prompt seen before is a prefix hit
_SETTLE_BATCHES = 6
_JIT_QUIET_S = 2.0
_WARM_UP_LIMIT_S = 600.0
_EARLY_END = 0.1
_MIN_BATCHES = 5  # under that a batch-means error says nothing
_EARLY_S = 0.02  # totals come at 5 Hz: one that is so little early is the one meant


class Unmeasurable(Exception):
    """The server takes no requests of ours; the text is what it said."""


class Void(Exception):
    """The window is worth nothing; the text says why."""


class LoadSource(Protocol):
    """The part of the loader that measuring needs."""

    async def aim(self, target: LoadTarget) -> None:
        """Ask for a number of streams."""

    async def next_totals(self) -> LoadTotals:
        """Wait for the next line of totals."""


@dataclass(slots=True)
class Bench:
    """What a measurement works with. ``jit_lines`` counts JIT compilations that the log told of."""

    loader: LoadSource
    live: Live
    spec: MeasureSpec
    max_num_seqs: int | None
    jit_lines: Callable[[], int]
    ends_at: float | None = None  # CLOCK_MONOTONIC seconds: the countdown of this stage
    notes: list[str] = field(default_factory=list)

    async def warm_up(self, concurrency: int, ignore_eos: bool, first_prompt: int = 0) -> None:
        """2 × min(c, max_num_seqs) requests, and on until no JIT line falls for a while. Answers may end by
        themselves here, which tells whether ``ignore_eos`` measures past the natural end. What follows takes
        prompts from ``first_prompt`` on: the same in every arm, none twice in one server's life.
        Raises Unmeasurable."""
        self.ends_at = None
        warm = first_prompt + _WARM_UP_PROMPTS
        await self.loader.aim(LoadTarget(concurrency, next_prompt=warm, ignore_eos=False))
        begun = await self.loader.next_totals()
        rows_before = self.live.row_count
        wanted = 2 * min(concurrency, self.max_num_seqs or concurrency)
        quiet = _Quiet(self.jit_lines)
        give_up = monotonic() + _WARM_UP_LIMIT_S
        while True:
            totals = await self.loader.next_totals()
            check_errors(totals, begun)
            if quiet.for_s(_JIT_QUIET_S) and totals.ok - begun.ok >= wanted:
                break
            if monotonic() > give_up:
                raise Unmeasurable(f"the warm-up did not end within {_WARM_UP_LIMIT_S:g} s")
        self._note_early_ends(self.live.rows_after(rows_before), ignore_eos)
        await self.loader.aim(LoadTarget(concurrency, next_prompt=first_prompt, ignore_eos=ignore_eos))

    def _note_early_ends(self, rows: Sequence[RequestRow], ignore_eos: bool) -> None:
        early = sum(row.finish_reason == "stop" for row in rows)
        if ignore_eos and early > _EARLY_END * len(rows):
            self.notes.append(
                f"{early} of {len(rows)} warm-up answers ended by themselves before max_tokens: with "
                "ignore_eos, acceptance is measured past the natural end"
            )

    async def settle(self) -> bool:
        """Until the slope over the last six batches is not significant, at most twice ``settle_s``.
        Whether it settled. Raises Unmeasurable."""
        length = self.spec.settle_s / _SETTLE_BATCHES
        rates: list[float] = []
        before = begun = await self.loader.next_totals()
        self.ends_at = monotonic() + self.spec.settle_s
        while before.t - begun.t < 2 * self.spec.settle_s - _EARLY_S:
            now = await self._after(before, length, lambda totals: check_errors(totals, begun))
            rates.append(decode_rate(batch_between(before, now)) or 0.0)
            before = now
            if len(rates) >= _SETTLE_BATCHES and not slope_is_significant(rates[-_SETTLE_BATCHES:]):
                return True
            if len(rates) == _SETTLE_BATCHES:
                self.ends_at = monotonic() + self.spec.settle_s
        return False

    async def window(self, concurrency: int) -> Measured:
        """The measured window. Raises Void, Unmeasurable."""
        live = self.live
        live.kv_max = None
        begun = before = await self.loader.next_totals()
        rows_before = live.row_count
        watch = _Watch(self, concurrency, begun)
        batches: list[Batch] = []
        self.ends_at = monotonic() + self.spec.max_window_s
        while not self._enough(batches, before.t - begun.t, concurrency):
            now = await self._after(before, self.spec.batch_s, watch.look)
            batches.append(batch_between(before, now))
            before = now
        pages = [page for page in live.scrapes.pages if begun.t <= page.t <= before.t]
        return Measured(
            tuple(batches), begun, before, watch.series, pages, live.rows_after(rows_before), live.kv_max
        )

    def _enough(self, batches: Sequence[Batch], seconds: float, concurrency: int) -> bool:
        spec = self.spec
        if seconds >= spec.max_window_s - 0.5 * spec.batch_s:
            return True
        value = decode_value(batches) if concurrency == 1 else output_value(batches)
        precise = value is not None and len(batches) >= _MIN_BATCHES and value.half_width <= spec.precision
        return precise and seconds >= spec.min_window_s - 0.5 * spec.batch_s

    async def _after(
        self, before: LoadTotals, seconds: float, look: Callable[[LoadTotals], None]
    ) -> LoadTotals:
        """The first totals at least so long after ``before``; ``look`` sees each on the way."""
        while True:
            totals = await self.loader.next_totals()
            look(totals)
            if totals.t - before.t >= seconds - _EARLY_S:
                return totals


class _Quiet:
    """For how long no JIT line has fallen."""

    def __init__(self, jit_lines: Callable[[], int]) -> None:
        self._jit_lines = jit_lines
        self._seen = jit_lines()
        self._since: float | None = None  # no line yet: nothing to wait out

    def for_s(self, seconds: float) -> bool:
        count = self._jit_lines()
        if count != self._seen:
            self._seen, self._since = count, monotonic()
        return self._since is None or monotonic() - self._since >= seconds


class _Watch:
    """Looks at every line of totals in a window: failures, JIT lines, and running + waiting above ours in
    three scrapes in a row."""

    def __init__(self, bench: Bench, ours: int, begun: LoadTotals) -> None:
        self._bench = bench
        self._ours = ours
        self._begun = begun
        self._jit = bench.jit_lines()
        self._pages_seen = bench.live.page_count
        self._others = Others()
        self.series = [begun]

    def look(self, totals: LoadTotals) -> None:
        self.series.append(totals)
        check_errors(totals, self._begun)
        if self._bench.jit_lines() != self._jit:
            raise Void("a kernel was compiled during the window")
        if self._bench.live.page_count != self._pages_seen:
            self._pages_seen = self._bench.live.page_count
            self._count_foreign()

    def _count_foreign(self) -> None:
        page = self._bench.live.scrapes.last
        others = self._others.look(page, self._ours) if page is not None else None
        if others:
            there = others + self._ours
            raise Void(f"other traffic: {there} requests on the server, {self._ours} are ours")


def check_errors(totals: LoadTotals, begun: LoadTotals) -> None:
    """Raises Unmeasurable when requests fail and none succeeds."""
    errors, ok = totals.errors - begun.errors, totals.ok - begun.ok
    if errors >= 2 and ok == 0:
        raise Unmeasurable(f"requests fail: {totals.last_error}")

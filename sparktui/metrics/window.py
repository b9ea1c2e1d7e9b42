"""Differences of two pages, and the figures of a window. Formulas are those of DESIGN's table; pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from sparktui.metrics.histogram import Histogram
from sparktui.metrics.page import Page, Series

_GENERATED = "generation_tokens_total"
_QUERIES, _HITS = "prefix_cache_queries_total", "prefix_cache_hits_total"
_READ = "estimated_read_bytes_per_gpu_total"


@dataclass(frozen=True, slots=True)
class Delta:
    """What happened between two pages of one server life. Seconds, tokens; None: not known."""

    seconds: float
    output_tok_s: float | None
    generated: float | None
    ttft_ms: float | None
    ttft_bound: bool  # one bucket moved: the figure is an upper bound
    step_ms: float | None
    tokens_per_step: float | None
    drafted: bool | None  # None: speculation off
    acceptance_rate: float | None
    acceptance_by_position: tuple[float, ...]
    mean_acceptance_length: float | None
    prefix_hit_rate: float | None
    preemptions: float | None
    tpot_ms: float | None = None  # of requests that ended, median
    tpot_bound: bool = False
    prefix_queries: float | None = None  # prompt tokens looked up
    prefix_hits: float | None = None  # and found
    read_gb_s: float | None = None  # memory reads of one GPU, vLLM's estimate (--enable-mfu-metrics)


def restarted(old: Page, new: Page) -> bool:
    """A counter of one engine went down, vanished or began anew, or another engine counts: no window may
    span both pages. Each series is looked at by itself: in a sum, one engine hides another's restart."""
    if any(new.births.get(series, born) != born for series, born in old.births.items()):
        return True
    was, now = old.each(), new.each()
    if any(now.get(key, 0.0) < value for key, value in was.items() if key[0] not in new.unknown):
        return True
    before, after = _engines(was), _engines(now)
    return bool(before and after) and before != after


def difference(old: Page, new: Page) -> Delta:
    """Figures between ``old`` and ``new``, which must be of one server life (see ``restarted``)."""
    seconds = new.t - old.t
    generated = _delta(old, new, _GENERATED)
    ttft = _histogram(old, new, "time_to_first_token_seconds")
    steps = _histogram(old, new, "inter_token_latency_seconds")
    tokens_per_step = None
    if generated is not None and ttft is not None and steps is not None and steps.count > 0:
        tokens_per_step = (generated - ttft.count) / steps.count
    drafts = _delta(old, new, "spec_decode_num_drafts_total")
    draft_tokens = _delta(old, new, "spec_decode_num_draft_tokens_total")
    accepted = _delta(old, new, "spec_decode_num_accepted_tokens_total")
    queries, hits = _delta(old, new, _QUERIES), _delta(old, new, _HITS)
    ttft_ms, ttft_bound = _median_ms(ttft)
    tpot_ms, tpot_bound = _median_ms(_histogram(old, new, "request_time_per_output_token_seconds"))
    return Delta(
        seconds=seconds,
        output_tok_s=_over(generated, seconds),
        generated=generated,
        ttft_ms=ttft_ms,
        ttft_bound=ttft_bound,
        step_ms=_ms(steps.mean if steps else None),
        tokens_per_step=tokens_per_step,
        drafted=None if drafts is None else drafts > 0,
        acceptance_rate=_over(accepted, draft_tokens),
        acceptance_by_position=_by_position(old, new, drafts),
        mean_acceptance_length=None if not drafts or accepted is None else 1 + accepted / drafts,
        prefix_hit_rate=_over(hits, queries),
        preemptions=_delta(old, new, "num_preemptions_total"),
        tpot_ms=tpot_ms,
        tpot_bound=tpot_bound,
        prefix_queries=queries,
        prefix_hits=hits,
        read_gb_s=_read_gb_s(old, new, seconds),
    )


class Scrapes:
    """Pages of one server life, newest last, as far back as the longest window (60 s) needs."""

    def __init__(self, keep_s: float = 60.0) -> None:
        self._keep_s = keep_s
        self._pages: deque[Page] = deque()

    def add(self, page: Page) -> bool:
        """Take a page; True when it began a new life and everything older was dropped."""
        fresh = bool(self._pages) and restarted(self._pages[-1], page)
        if fresh:
            self._pages.clear()
        self._pages.append(page)
        while len(self._pages) > 2 and self._pages[1].t < page.t - self._keep_s:
            self._pages.popleft()
        return fresh

    def clear(self) -> None:
        """Forget everything: another server boots."""
        self._pages.clear()

    @property
    def pages(self) -> tuple[Page, ...]:
        """What is kept, oldest first."""
        return tuple(self._pages)

    @property
    def last(self) -> Page | None:
        """The newest page."""
        return self._pages[-1] if self._pages else None

    def window(self, seconds: float, since: float = 0.0) -> Delta | None:
        """Figures over the last ``seconds``, not reaching before ``since``; None until two pages fit."""
        if len(self._pages) < 2:
            return None
        new = self._pages[-1]
        start = max(new.t - seconds - 0.5, since)
        old = next((page for page in self._pages if page.t >= start), new)
        return difference(old, new) if old is not new else None


def _engines(each: Mapping[Series, float]) -> set[Series]:
    return {key[1:] for key in each if key[0] == _GENERATED}


def _delta(old: Page, new: Page, name: str) -> float | None:
    """None where either page lacks it: from zero on, a counter's whole life would be a burst."""
    if name not in new.counters or name not in old.counters:
        return None
    return new.counters[name] - old.counters[name]


def _histogram(old: Page, new: Page, name: str) -> Histogram | None:
    if name not in new.histograms or name not in old.histograms:
        return None
    return new.histograms[name].since(old.histograms[name])


def _by_position(old: Page, new: Page, drafts: float | None) -> tuple[float, ...]:
    before, after = old.accepted_by_position, new.accepted_by_position
    if not drafts or len(before) != len(after):
        return ()
    return tuple((b - a) / drafts for a, b in zip(before, after, strict=True))


def _read_gb_s(old: Page, new: Page, seconds: float) -> float | None:
    """Mean over the engines. vLLM registers the counter, at 0, without --enable-mfu-metrics too."""
    read = _delta(old, new, _READ)
    if read is None or not new.counters[_READ] or seconds <= 0:
        return None
    return read / seconds / 1e9 / max(1, new.engines)


def _median_ms(histogram: Histogram | None) -> tuple[float | None, bool]:
    if histogram is None:
        return None, False
    seconds, bound = histogram.quantile(0.5)
    return _ms(seconds), bound


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _over(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None

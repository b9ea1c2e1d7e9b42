"""Differences of two pages, and the figures of a window. Formulas are those of DESIGN's table; pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from sparktui.metrics.page import Histogram, Page


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


def restarted(old: Page, new: Page) -> bool:
    """A counter went down or began anew: the server is another one, and no window may span both."""
    if old.created is not None and new.created is not None and old.created != new.created:
        return True
    return any(new.counters.get(name, 0.0) < value for name, value in old.counters.items())


def difference(old: Page, new: Page) -> Delta:
    """Figures between ``old`` and ``new``, which must be of one server life (see ``restarted``)."""
    seconds = new.t - old.t
    generated = _delta(old, new, "generation_tokens_total")
    ttft = _histogram(old, new, "time_to_first_token_seconds")
    steps = _histogram(old, new, "inter_token_latency_seconds")
    tokens_per_step = None
    if generated is not None and ttft is not None and steps is not None and steps.count > 0:
        tokens_per_step = (generated - ttft.count) / steps.count
    drafts = _delta(old, new, "spec_decode_num_drafts_total")
    draft_tokens = _delta(old, new, "spec_decode_num_draft_tokens_total")
    accepted = _delta(old, new, "spec_decode_num_accepted_tokens_total")
    ttft_s, bound = _quantile(ttft, 0.5) if ttft else (None, False)
    return Delta(
        seconds=seconds,
        output_tok_s=_over(generated, seconds),
        generated=generated,
        ttft_ms=None if ttft_s is None else ttft_s * 1000,
        ttft_bound=bound,
        step_ms=steps.sum / steps.count * 1000 if steps and steps.count > 0 else None,
        tokens_per_step=tokens_per_step,
        drafted=None if drafts is None else drafts > 0,
        acceptance_rate=_over(accepted, draft_tokens),
        acceptance_by_position=_by_position(old, new, drafts),
        mean_acceptance_length=None if not drafts or accepted is None else 1 + accepted / drafts,
        prefix_hit_rate=_over(
            _delta(old, new, "prefix_cache_hits_total"), _delta(old, new, "prefix_cache_queries_total")
        ),
        preemptions=_delta(old, new, "num_preemptions_total"),
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


def _delta(old: Page, new: Page, name: str) -> float | None:
    if name not in new.counters:
        return None
    return new.counters[name] - old.counters.get(name, 0.0)


def _histogram(old: Page, new: Page, name: str) -> Histogram | None:
    if name not in new.histograms:
        return None
    b = new.histograms[name]
    a = old.histograms.get(name, Histogram())
    buckets = {bound: count - a.buckets.get(bound, 0.0) for bound, count in b.buckets.items()}
    return Histogram(b.sum - a.sum, b.count - a.count, buckets)


def _by_position(old: Page, new: Page, drafts: float | None) -> tuple[float, ...]:
    if not drafts:
        return ()
    before = old.accepted_by_position or (0.0,) * len(new.accepted_by_position)
    return tuple((b - a) / drafts for a, b in zip(before, new.accepted_by_position, strict=False))


def _quantile(histogram: Histogram, q: float) -> tuple[float | None, bool]:
    """Linear interpolation inside the bucket, as Prometheus's histogram_quantile does."""
    if histogram.count <= 0:
        return None, False
    rank = q * histogram.count
    low, below = 0.0, 0.0
    moved = 0
    found: float | None = None
    single: float | None = None
    for bound, cumulative in sorted(histogram.buckets.items()):
        inside = cumulative - below
        moved += inside > 0
        if found is None and cumulative >= rank and inside > 0:
            found = low if bound == float("inf") else low + (bound - low) * (rank - below) / inside
            single = None if bound == float("inf") else bound
        low, below = bound, cumulative
    if found is not None and moved == 1 and single is not None:
        return single, True
    return found, False


def _over(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None

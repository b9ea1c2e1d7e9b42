"""Counting one stream. Definitions are those of DESIGN's table; no clock is read here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from sparktui.load.counts import Counts
from sparktui.load.errors import StreamError, error_text
from sparktui.load.servertimes import server_times
from sparktui.schema.gaps import bucket
from sparktui.schema.records import RequestRow, Usage
from sparktui.schema.text import printable

_MOST_TOKENS = 1 << 40  # of one chunk; what is above is no count


@dataclass(slots=True, eq=False)
class StreamMeter:
    """One request. ``start`` and every ``t`` are CLOCK_MONOTONIC seconds.

    *Token chunk*: a chunk with text (content, reasoning, a tool call), or one that raises
    ``usage.completion_tokens`` (``continuous_usage_stats``): a parser may hold the text back. Under
    speculation it holds several tokens, and a busy server merges more, so chunks are never tokens.

    *TTFT*: to the first chunk with text. *Decode tokens*: the count less that of the first token chunk,
    over the time from the first to the last token chunk.

    *A count that comes late*: where text came without a count (a proxy sends ``usage`` at the end only, or
    now and then), the next count is for that text: its tokens came with it, not with the count. How many
    the first chunk held isn't known then; it held at least one, so one is taken off, and the decode tokens
    read high by whatever it held more.

    *Chunk gap*: time between reads that brought a token chunk. Chunks of one read reach a reader together,
    so they are one advance: counting zeros between them would let a server or a proxy that sends in bursts
    look smoother than one that streams.
    """

    index: int
    start: float
    counts: Counts
    first_text: float | None = None
    first_content: float | None = None
    first_token: float | None = None
    last_token: float | None = None  # the last token chunk that is counted
    last_chunk: float | None = None  # the last token chunk
    ended: float | None = None
    first_tokens: int = 0
    tokens: int = 0
    chunks: int = 0
    gap_max: float | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    metrics: object = None
    finish_reason: str | None = None
    _uncounted: bool = False  # text since the last count
    _continuous: bool = False  # counts have grown while text came
    _over: bool = False  # no more tokens will come

    def event(self, payload: bytes, t: float) -> None:
        """Count one ``data:`` payload that arrived at ``t``. Raises StreamError."""
        try:
            value = orjson.loads(payload)
            get = value.get
            if error := get("error"):
                raise StreamError(error_text({"error": error}))
            choices = get("choices")
            text = bool(choices) and self._text(choices, t)
            usage = get("usage")
            grown = self._grown(usage) if usage else 0
            if grown > 0:
                self._count(grown, t, text, bool(choices))
            elif text:
                self._uncounted = self._uncounted or not (usage and self.tokens)
                self._advance(t)
            if not choices:
                self.metrics = get("metrics") or self.metrics
        except (AttributeError, TypeError, ValueError):  # orjson's own error is a ValueError
            raise StreamError(f"not an event of a completion: {payload[:80]!r}") from None

    def end(self, t: float) -> None:
        """The stream said that it is complete, at ``t``: what comes after is the connection's business."""
        self.ended, self._over = t, True

    def open_gap_s(self, now: float) -> float:
        """Time since the last token chunk that no chunk has ended yet; 0 when it is not decoding."""
        return 0.0 if self.last_token is None or self._over else now - self.last_token

    def row(
        self, t: float, *, error: str = "", cancelled: bool = False, status: int | None = None
    ) -> RequestRow:
        """The finished request, and one more in the counts. ``t``: its end, unless it said so itself."""
        complete = self.ended is not None
        cancelled = cancelled and not complete
        error = printable(error)  # it may be the server's own words
        t = self.ended if self.ended is not None else t
        usage = self._usage_kind(ok=not error and not cancelled)
        known = bool(self.usage) and (self.tokens > 0 or not self.chunks)
        counted = self.first_token is not None and self.last_token is not None
        self._finish(t, error, cancelled, usage)
        return RequestRow(
            index=self.index,
            start=self.start,
            ok=not error and not cancelled,
            ttft_ms=self._ms(self.first_text),
            ttfc_ms=self._ms(self.first_content),
            total_ms=self._ms(t),
            prompt_tokens=_count_of(self.usage.get("prompt_tokens")),
            completion_tokens=self.tokens if known else None,
            decode_tokens=self.tokens - self.first_tokens if known else None,
            decode_s=(self.last_token or 0.0) - (self.first_token or 0.0) if counted else None,
            chunks=self.chunks,
            cached_tokens=_cached(self.usage),
            finish_reason=self.finish_reason,
            cancelled=cancelled,
            error=error,
            status=status,
            usage=usage,
            gap_max_ms=None if self.gap_max is None else self.gap_max * 1000,
            server=server_times(self.metrics),
        )

    def _text(self, choices: list[dict[str, Any]], t: float) -> bool:
        """Whether a chunk has text for the reader."""
        text = False
        for choice in choices:
            get = (choice.get("delta") or {}).get
            content = get("content")
            if content or get("reasoning") or get("reasoning_content") or get("tool_calls"):
                text = True
                if content and self.first_content is None:
                    self.first_content = t
            if reason := choice.get("finish_reason"):
                self.finish_reason, self._over = str(reason), True
        if text and self.first_text is None:
            self.first_text = t
            self.counts.ttft_ms.append((t - self.start) * 1000)
        return text

    def _grown(self, usage: dict[str, Any]) -> int:
        """By how many tokens the count has risen; a count that goes back is not believed."""
        tokens = usage.get("completion_tokens")
        self.usage = usage
        if tokens.__class__ is not int:
            if tokens is None:
                return 0
            raise TypeError("no count")
        grown: int = tokens - self.tokens
        if grown > _MOST_TOKENS:
            raise ValueError("no count")
        return grown

    def _count(self, grown: int, t: float, text: bool, choices: bool) -> None:
        """``grown`` tokens that were told at ``t``, with text or for text that is here already."""
        counts, late = self.counts, self._uncounted
        if text or (choices and not late):
            self._advance(t)
            if not self._continuous:
                self._begin_continuous(t)
            at = t
        else:
            at = self.last_chunk if self.last_chunk is not None else t
            self._over = self._over or not choices
        self.tokens += grown
        counts.output_tokens += grown
        last = self.last_token
        if last is not None:
            counts.decode_tokens += grown
            counts.stream_seconds += at - last
        elif late and self.first_text is not None:
            self.first_token, self.first_tokens = self.first_text, 1
            counts.decode_tokens += grown - 1
            counts.stream_seconds += at - self.first_text
        else:
            self.first_token, self.first_tokens = at, grown
        self.last_token = at
        self._uncounted = False

    def _begin_continuous(self, t: float) -> None:
        """A count on the very last text only, where earlier text had none, is a final one."""
        if not self._uncounted or self.finish_reason is None:
            self._continuous = True
            self.counts.saw("continuous", t)

    def _advance(self, t: float) -> None:
        """One more token chunk."""
        self.chunks += 1
        counts, last = self.counts, self.last_chunk
        counts.chunks += 1
        if last is not None and t > last:
            gap = t - last
            key = bucket(gap * 1000)
            counts.gaps[key] = counts.gaps.get(key, 0) + 1
            if self.gap_max is None or gap > self.gap_max:
                self.gap_max = gap
        self.last_chunk = t

    def _usage_kind(self, *, ok: bool) -> Usage:
        """Where the counts came from; an answer that is empty or broke off before one doesn't tell."""
        if self._continuous:
            return "continuous"
        if self.tokens:
            return "final"
        return "none" if ok and self.chunks else ""

    def _finish(self, t: float, error: str, cancelled: bool, usage: Usage) -> None:
        counts = self.counts
        counts.done += 1
        counts.saw(usage, t)
        if cancelled or error:
            counts.stream_seconds += self.open_gap_s(t)  # it stalled, or was cut while it decoded
        if cancelled:
            counts.cancelled += 1
        elif error:
            counts.errors += 1
            counts.last_error = error
        else:
            counts.ok += 1

    def _ms(self, t: float | None) -> float | None:
        return None if t is None else (t - self.start) * 1000


def _cached(usage: dict[str, Any]) -> int | None:
    details = usage.get("prompt_tokens_details")
    return _count_of(details.get("cached_tokens")) if isinstance(details, dict) else None


def _count_of(value: object) -> int | None:
    """A count from foreign JSON, or None: a row must be readable whatever a proxy sends."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MOST_TOKENS else None

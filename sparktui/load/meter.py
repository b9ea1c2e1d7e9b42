"""Counting one stream and all streams. Definitions are those of DESIGN's table; no clock is read here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from sparktui.schema.records import RequestRow
from sparktui.schema.text import printable

_TEXT_FIELDS = ("content", "reasoning", "reasoning_content", "tool_calls")


class StreamError(Exception):
    """The stream carried an error, or something that is no event of a completion."""


@dataclass(slots=True)
class Counts:
    """Cumulative over the life of the load process."""

    done: int = 0
    ok: int = 0
    errors: int = 0
    cancelled: int = 0
    output_tokens: int = 0
    decode_tokens: int = 0
    stream_seconds: float = 0.0
    last_error: str = ""


@dataclass(slots=True)
class StreamMeter:
    """One request. ``start`` and every ``t`` are CLOCK_MONOTONIC seconds.

    A token chunk is one that raises ``usage.completion_tokens`` (``continuous_usage_stats``): under
    speculation it holds several tokens, and a busy server merges more. TTFT is the first chunk with text.
    """

    index: int
    start: float
    counts: Counts
    first_text: float | None = None
    first_content: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    first_tokens: int = 0
    tokens: int = 0
    chunks: int = 0
    usage: dict[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None

    def event(self, payload: bytes, t: float) -> None:
        """Count one ``data:`` payload that arrived at ``t``. Raises StreamError."""
        try:
            value = orjson.loads(payload)
        except orjson.JSONDecodeError:
            raise StreamError(f"not an event of a completion: {payload[:80]!r}") from None
        if not isinstance(value, dict):
            raise StreamError(f"not an event of a completion: {payload[:80]!r}")
        if value.get("error"):
            raise StreamError(error_text(value))
        try:
            self._count(value, t)
        except (AttributeError, TypeError, ValueError):
            raise StreamError(f"not an event of a completion: {payload[:80]!r}") from None

    def _count(self, value: dict[str, Any], t: float) -> None:
        for choice in value.get("choices") or ():
            self._choice(choice, t)
        usage = value.get("usage")
        if usage:
            self._tokens(int(usage.get("completion_tokens") or 0), t)
            self.usage = usage

    def _choice(self, choice: dict[str, Any], t: float) -> None:
        delta = choice.get("delta") or {}
        if any(delta.get(name) for name in _TEXT_FIELDS):
            self.chunks += 1
            self.first_text = self.first_text or t
            if delta.get("content"):
                self.first_content = self.first_content or t
        self.finish_reason = choice.get("finish_reason") or self.finish_reason

    def _tokens(self, completion_tokens: int, t: float) -> None:
        grown = completion_tokens - self.tokens
        if grown <= 0:
            return
        self.tokens = completion_tokens
        self.counts.output_tokens += grown
        if self.last_token is None:
            self.first_token, self.first_tokens = t, grown
        else:
            self.counts.decode_tokens += grown
            self.counts.stream_seconds += t - self.last_token
        self.last_token = t

    def row(self, t: float, *, error: str = "", cancelled: bool = False) -> RequestRow:
        """The finished request, and one more in the counts."""
        error = printable(error)  # it may be the server's own words
        self._finish(error, cancelled)
        decode_s = None
        if self.first_token is not None and self.last_token is not None:
            decode_s = self.last_token - self.first_token
        details = self.usage.get("prompt_tokens_details") or {}
        return RequestRow(
            index=self.index,
            start=self.start,
            ok=not error and not cancelled,
            ttft_ms=_ms(self.first_text, self.start),
            ttfc_ms=_ms(self.first_content, self.start),
            total_ms=_ms(t, self.start),
            prompt_tokens=self.usage.get("prompt_tokens"),
            completion_tokens=self.tokens if self.usage else None,
            decode_tokens=self.tokens - self.first_tokens if self.usage else None,
            decode_s=decode_s,
            chunks=self.chunks,
            cached_tokens=details.get("cached_tokens"),
            finish_reason=self.finish_reason,
            cancelled=cancelled,
            error=error,
        )

    def _finish(self, error: str, cancelled: bool) -> None:
        self.counts.done += 1
        if cancelled:
            self.counts.cancelled += 1
        elif error:
            self.counts.errors += 1
            self.counts.last_error = error
        else:
            self.counts.ok += 1


def error_text(body: Any) -> str:
    """What a server's error body says: vLLM sends an object, its 401 a bare string, FastAPI ``detail``."""
    error = body.get("error") or body.get("detail") or body if isinstance(body, dict) else body
    if isinstance(error, dict):
        error = error.get("message") or error
    return str(error)[:500]


def _ms(t: float | None, start: float) -> float | None:
    return None if t is None else (t - start) * 1000

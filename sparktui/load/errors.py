"""What went wrong with a request, in words that a person can use, and how long to wait after it."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

TEXT_LIMIT = 500
BUSY = (429, 503)  # refusals that end by themselves: the server is full, or not there yet
RETRY_AFTER_MOST_S = 10.0  # a load that sleeps for minutes looks broken
PAUSE_SPREAD = 1.5  # streams that failed together must not come back in one instant
LONGEST_PAUSE_S = RETRY_AFTER_MOST_S * PAUSE_SPREAD


class StreamError(Exception):
    """A refusal, an error within the stream, or something that is no event of a completion.

    ``status``: the HTTP status of a refusal. ``retry_s``: the server asks for so many seconds of peace.
    """

    def __init__(self, text: str, status: int | None = None, retry_s: float = 0.0) -> None:
        super().__init__(text)
        self.status = status
        self.retry_s = retry_s


def error_text(body: Any) -> str:
    """What a server's error body says: vLLM sends an object, its 401 a bare string, FastAPI ``detail``."""
    error = body.get("error") or body.get("detail") or body if isinstance(body, dict) else body
    if isinstance(error, dict):
        error = error.get("message") or error
    return str(error)[:TEXT_LIMIT]


def refusal(status: int, body: bytes, retry_after: str | None) -> StreamError:
    """An answer other than 200. ``body``: its first bytes."""
    try:
        said = error_text(orjson.loads(body))
    except orjson.JSONDecodeError:
        said = body[:200].decode("utf-8", "replace").strip()
    text = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    return StreamError(text, status, retry_after_s(retry_after, datetime.now(UTC)))


def retry_after_s(value: str | None, now: datetime) -> float:
    """Seconds of a Retry-After header (RFC 9110, 10.2.3: seconds or a date); 0 when it says nothing."""
    value = (value or "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())

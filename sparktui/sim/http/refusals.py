"""Answers other than 200, worded as vLLM words them: 0.32.0 as recorded, 0.27.1 as its handler prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparktui.sim.http.payloads import error_body
from sparktui.sim.release import Release

_LONGEST_INPUT = 200  # characters of a refused value that 0.32's message repeats
_SUMMARISED_SINCE = "0.32.0"  # before, the message repeats pydantic's error as it is


class Refused(Exception):
    """An answer other than 200: ``status``, the JSON ``body`` and more ``headers``."""

    def __init__(self, status: int, message: str, kind: str = "BadRequestError", param: str | None = None):
        super().__init__(message)
        self.status = status
        self.headers: dict[str, str] = {}
        self.body = error_body(message, kind, status, param)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One complaint of pydantic's about a body. ``loc``: without the leading ``body``."""

    kind: str
    loc: tuple[str | int, ...]
    message: str
    given: Any
    cause: str | None = None  # its "ctx"

    def text(self, release: Release) -> str:
        """The complaint as the release prints it."""
        loc: tuple[str | int, ...] = ("body", *self.loc)
        short = release.since(_SUMMARISED_SINCE)
        error: dict[str, Any] = {
            "type": self.kind,
            "loc": ".".join(map(str, loc)) if short else loc,
            "msg": self.message,
        }
        error["input"] = _summary(self.given) if short else self.given
        if self.cause is not None:
            error["ctx"] = {"error": self.cause}
        return str(error)


def invalid(errors: Sequence[FieldError], release: Release) -> Refused:
    """The 400 for a body that has the wrong shape."""
    label = "error" if len(errors) == 1 else "errors"
    lines = "".join(f"\n  {error.text(release)}" for error in errors)
    param = ".".join(["body", *map(str, errors[0].loc)])
    return Refused(400, f"{len(errors)} validation {label}:{lines}", "Bad Request", param)


def not_json() -> Refused:
    """The 400 for a body of another media type."""
    text = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
    return Refused(400, text, "Bad Request")


def refused_value(message: str, param: str, value: object) -> Refused:
    """The 400 for a value out of range."""
    return Refused(400, f"{message} (parameter={param}, value={value})", param=param)


def _summary(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"<{type(value).__name__} of {len(value)} items>"
    text = str(value)
    return text if len(text) <= _LONGEST_INPUT else f"{text[:_LONGEST_INPUT]}...[truncated]"

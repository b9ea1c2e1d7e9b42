"""Prompts that a user brings, one JSON value a line: what ``file:PATH`` names as a workload.

A line is an object with ``messages`` (as /v1/chat/completions takes them, in any roles), perhaps with
``max_tokens`` and ``tools``, or a bare list of messages. Other keys of the object are passed over, since data
sets carry numbers and sources along. Empty lines are, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from sparktui.schema.codec import SchemaError
from sparktui.schema.text import printable

MAX_BYTES = 64 * 1024 * 1024
_SHAPE = 'expected {"messages": [...]} or a list of messages'


class PromptFileError(SchemaError):
    """A prompt file is wrong; its text begins with ``file:line:`` (``file:`` for the file as a whole)."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        self.path, self.line, self.message = path, line, message
        place = f"{path}:{line}" if line else f"{path}"
        super().__init__(printable(f"{place}: {message}"))


@dataclass(frozen=True, slots=True)
class FilePrompt:
    """One request's part that its line decides. ``max_tokens`` is None where the line says nothing."""

    messages: list[dict[str, Any]]
    max_tokens: int | None = None
    tools: list[Any] | None = None


def read(path: Path) -> tuple[FilePrompt, ...]:
    """All prompts of a file, at least one. Raises PromptFileError, at the first line that is wrong."""
    prompts = tuple(_prompts(path, _data(path)))
    if not prompts:
        raise PromptFileError(path, 0, "holds no prompts")
    return prompts


def _data(path: Path) -> bytes:
    try:
        if not path.is_file():  # a pipe would never end
            raise PromptFileError(path, 0, "is not a file" if path.exists() else "there is no such file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as exc:
        if isinstance(exc, PromptFileError):
            raise
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise PromptFileError(path, 0, f"can't be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise PromptFileError(path, 0, f"is larger than {MAX_BYTES // 1024**2} MiB")
    return data.removeprefix(b"\xef\xbb\xbf")


def _prompts(path: Path, data: bytes) -> Iterator[FilePrompt]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                yield _prompt(line)
            except ValueError as exc:
                raise PromptFileError(path, number, str(exc)) from None


def _prompt(line: bytes) -> FilePrompt:
    """Raises ValueError with what is wrong."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise ValueError(f"not JSON: {exc}") from None
    if isinstance(value, list):
        return FilePrompt(_messages(value, "the list"))
    if not isinstance(value, dict):
        raise ValueError(f"{_SHAPE}, got {_kind(value)}")
    if "messages" not in value:
        raise ValueError(f"{_SHAPE}, got an object with {', '.join(map(repr, list(value)[:5])) or 'no keys'}")
    return FilePrompt(_messages(value["messages"], "messages"), _max_tokens(value), _tools(value))


def _messages(value: Any, label: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        found = "an empty list" if value == [] else _kind(value)
        raise ValueError(f"{label}: expected messages, got {found}")
    for index, message in enumerate(value):
        where = f"{label}[{index}]"
        if not isinstance(message, dict):
            raise ValueError(f"{where}: expected an object with role and content, got {_kind(message)}")
        role = message.get("role")
        if not isinstance(role, str) or not role:
            raise ValueError(f"{where}: role is missing" if role is None else f"{where}: role is not a name")
        if not isinstance(message.get("content"), str | list | None):
            raise ValueError(f"{where}: content is {_kind(message['content'])}, not text or a list of parts")
    return value


def _max_tokens(value: dict[str, Any]) -> int | None:
    given = value.get("max_tokens")
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
        raise ValueError(f"max_tokens: expected an integer of at least 1, got {given!r:.60}")
    return given


def _tools(value: dict[str, Any]) -> list[Any] | None:
    given = value.get("tools")
    if given is not None and not isinstance(given, list):
        raise ValueError(f"tools: expected a list, got {_kind(given)}")
    return given


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")

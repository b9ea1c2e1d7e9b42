"""What a server's logger puts before a message: process, level, time and source.

vLLM 0.10 to 0.33: ``(<process> pid=<n>) LEVEL MM-DD HH:MM:SS [file.py:line] message``; prefixes may nest and
repeat. VLLM_LOGGING_PREFIX stands before the process since 0.32 and behind it before. Up to 0.9 there is no
process, up to 0.7 no opening bracket. uvicorn writes ``INFO:     message``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LOGGING_PREFIX_LIMIT = 100  # characters of VLLM_LOGGING_PREFIX
_LONGEST = 200  # characters of a head that is looked up
_MOST_KNOWN = 1024
_LEVELS = ("INFO ", "WARNING ", "ERROR ", "DEBUG ", "CRITICAL ")

_PROCESS = re.compile(  # Ray adds ip=, and names no process until it knows one; 0.8 states the rank
    r"\((?:([A-Za-z][\w:.-]*)(?: rank=\d+)? )?pid=(\d{1,9})(?:, ip=[^()]*)?\) ?"
    r"|\(([A-Za-z][\w-]*) rank=\d+\) ?"
)
_VLLM = (  # reports quote lines without their time
    r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:(\d\d-\d\d \d\d:\d\d:\d\d) \[?|\[(?=[\w./-]{1,200}:\d{1,6}\]))"
    r"([\w./-]{1,200}(?::\d+\]|\])) ?"
)
_UVICORN = r"(TRACE|DEBUG|INFO|WARNING|ERROR): {2,8}|(CRITICAL): {1,8}"
_COMMON = re.compile(rf"(?:\(([A-Za-z][\w-]{{0,99}}) pid=(\d{{1,9}})\) )?(?:{_VLLM}|{_UVICORN})")
_LATER = re.compile(_VLLM)


class Head(NamedTuple):
    """What stands before a message; ``end`` is where the message begins."""

    process: str | None  # the innermost prefix
    pid: int | None
    level: str | None
    time: str | None  # MM-DD HH:MM:SS
    source: str | None
    end: int


_known: dict[str, Head] = {}  # heads repeat, on every line of a record and of an access log


def common_head(text: str) -> Head | None:
    """The head of a line that begins with one as vLLM or uvicorn writes it, with one process or none."""
    known = _known.get(text[: text.find("] ", 0, _LONGEST) + 2])
    if known is not None:
        return known
    found = _COMMON.match(text)
    return None if found is None else _remembered(found)


def _remembered(found: re.Match[str]) -> Head:
    shown = found[0]
    if (known := _known.get(shown)) is not None:
        return known
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    process, pid, level, time, source, uvicorn, critical = found.groups()
    source = source[:-1] if source else None
    head = Head(process, int(pid) if pid else None, level or uvicorn or critical, time, source, len(shown))
    _known[shown] = head
    return head


def read_head(text: str) -> Head:
    """The head of any line: whatever of it there is, in every form that is known."""
    process, pid, end = _processes(text, 0)
    found = _COMMON.match(text, end)
    if found is not None:
        return _remembered(found)._replace(process=process, pid=pid, end=found.end())
    if not any(level in text for level in _LEVELS):
        return Head(process, pid, None, None, None, end)
    found = _LATER.search(text, end, end + 2 * _LOGGING_PREFIX_LIMIT)
    if found is None or found.start() > end + _LOGGING_PREFIX_LIMIT:
        return Head(process, pid, None, None, None, end)
    for inner in _PROCESS.finditer(text, end, found.start()):
        process, pid = _named(inner)
    level, time, source = found.groups()
    return Head(process, pid, level, time, source[:-1], found.end())


def _processes(text: str, start: int) -> tuple[str | None, int | None, int]:
    """Process and pid of the innermost prefix of those that stand at ``start``, and where the rest begins."""
    process: str | None = None
    pid: int | None = None
    if text[start : start + 1] == "(":
        while (found := _PROCESS.match(text, start)) is not None:
            process, pid = _named(found)
            start = found.end()
    return process, pid, start


def _named(found: re.Match[str]) -> tuple[str | None, int | None]:
    name, pid, ranked = found.groups()
    return name or ranked, int(pid) if pid else None

"""Bytes of a server log to clean, parsed lines.

Grammar of a vLLM line (0.10 to 0.33): ``(<process> pid=<n>) LEVEL MM-DD HH:MM:SS [file.py:line] message``.
Up to 0.30 every line of a process carries the prefix, from 0.32 on only those of vLLM's logger; prefixes may
nest. uvicorn writes ``INFO:     message``. Progress bars rewrite one line with carriage returns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LINE_LIMIT = 64 * 1024  # bytes kept of one line; the rest is counted and dropped

_ESCAPES = re.compile(
    r"(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, PM, APC, SOS
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[ -/]*[0-~]"
)
# C0 except tab, DEL, C1, line and paragraph separators, and the marks that reorder text on screen.
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_HALF_STRIPPED = re.compile(r"^\[\d+;\d+m|(?<=\))\[0?(?:;0)?m|(?<=\) )\[\d+(?:;\d+)*m")

_PREFIX = re.compile(
    r"\((?P<process>[A-Za-z][\w-]*)(?:(?: rank=\d+)? pid=(?P<pid>\d+)(?:, ip=[\d.]+)?| rank=\d+)\) ?"
)
_HEAD = re.compile(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>\d\d-\d\d \d\d:\d\d:\d\d) "
    r"\[?(?P<source>[\w./-]+:\d+)\] ?(?P<message>.*)"
)
_UVICORN = re.compile(r"(?P<level>TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL): {2,}(?P<message>.*)")


@dataclass(frozen=True, slots=True)
class Line:
    """One log line. ``text`` is the whole line, without escape codes or other control characters."""

    number: int  # from 1, counting newlines
    text: str
    process: str | None = None  # EngineCore, APIServer, Worker_TP0, …: the innermost prefix
    pid: int | None = None
    level: str | None = None
    time: str | None = None  # MM-DD HH:MM:SS, the process's local time; the log has no year
    source: str | None = None  # file.py:123
    message: str = ""


def clean(text: str) -> str:
    """Text without terminal escapes, half-stripped colour codes and control characters; tabs stay."""
    if not text.isprintable():
        text = _CONTROLS.sub("", _ESCAPES.sub("", text))
    if "[" in text:
        text = _HALF_STRIPPED.sub("", text)
    return text


def _prefix(text: str) -> tuple[str | None, int | None, int]:
    """Process and pid of the innermost leading prefix, and where the rest begins."""
    process: str | None = None
    pid: int | None = None
    end = 0
    while (found := _PREFIX.match(text, end)) is not None:
        process, end = found["process"], found.end()
        pid = int(found["pid"]) if found["pid"] else None
    return process, pid, end


def parse_line(number: int, text: str, head: str = "") -> Line:
    """A clean text as a Line. ``head``: what the line showed first, before carriage returns overwrote it."""
    process, pid, end = _prefix(text)
    if process is None and head:
        process, pid, _ = _prefix(head)
    rest = text[end:]
    found = _HEAD.match(rest) or _UVICORN.match(rest)
    if found is None:
        return Line(number, text, process, pid, message=rest)
    group = found.groupdict()
    return Line(
        number, text, process, pid, group["level"], group.get("time"), group.get("source"), group["message"]
    )


class LineSplitter:
    """Splits a byte stream into lines; how the bytes are cut into chunks changes nothing.

    Of a line that carriage returns rewrote, only the last non-blank state is kept. Memory is bounded: each
    state keeps ``LINE_LIMIT`` bytes and says how many it dropped.
    """

    def __init__(self) -> None:
        self._number = 0
        self._kept = bytearray()
        self._dropped = 0
        self._head = ""
        self._last = ""
        self._rewritten = False

    @property
    def partial(self) -> str:
        """The progress bar that is being rewritten now, clean; empty before the first carriage return."""
        if not self._rewritten:
            return ""
        current = self._segment()
        return current if current.strip() else self._last

    @property
    def partial_line(self) -> Line | None:
        """``partial`` as the line that it may become, or None."""
        text = self.partial
        return parse_line(self._number + 1, text, self._head) if text else None

    def feed(self, data: bytes) -> list[Line]:
        """The lines that ``data`` completes."""
        lines: list[Line] = []
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._take(piece)
            lines.append(self._end_line())
        self._take(rest)
        return lines

    def flush(self) -> list[Line]:
        """The unfinished last line, if there is one."""
        pending = self._kept or self._dropped or self._rewritten
        return [self._end_line()] if pending else []

    def _take(self, piece: bytes) -> None:
        first, *rest = piece.split(b"\r")
        self._append(first)
        for segment in rest:
            self._end_segment()
            self._rewritten = True
            self._append(segment)

    def _append(self, data: bytes) -> None:
        room = LINE_LIMIT - len(self._kept)
        self._kept += data[:room]
        self._dropped += max(0, len(data) - room)

    def _segment(self) -> str:
        text = clean(self._kept.decode("utf-8", "replace"))
        return f"{text} … [{self._dropped} bytes dropped]" if self._dropped else text

    def _end_segment(self) -> None:
        text = self._segment()
        if text.strip():
            self._head = self._head or text
            self._last = text
        self._kept.clear()
        self._dropped = 0

    def _end_line(self) -> Line:
        rest = self._segment()
        self._end_segment()
        text = self._last or rest
        self._number += 1
        line = parse_line(self._number, text, self._head)
        self._head, self._last, self._rewritten = "", "", False
        return line

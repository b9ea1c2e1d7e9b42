"""Which lines make one record.

vLLM's logger repeats the head on each line of a record and joins them with ``\\r\\n``, so all but the last
line end in ``\\r`` (on a terminal, which adds one, in ``\\r\\r``). Logs that were copied have lost that. What
is no record of a logger has no head: Python's tracebacks, warnings with a line of code, what libraries print.
"""

from __future__ import annotations

import re
from typing import Literal

from sparktui.bootlog.head import Head

RECORD_LIMIT = 500  # lines of a record; another begins then
_STREAMS = 256  # processes followed

_TRACEBACK = re.compile(r"(?:  \+ )?(?:Exception Group )?Traceback \(most recent call last\):")
CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_PROCESS = re.compile(r"Process [A-Za-z][\w-]*:$")
_RANK = re.compile(r"\[rank\d+\]: ?(?!\[)")  # torch's, before each line of a traceback
_BAR = re.compile(r"(?<!\d)\d{1,3}%(?:\|| Completed \|)|(?:it/s|s/it)\]")
_LOGO = re.compile(r"[ ▀▄█]*[▀▄█]")
_OWN = re.compile(  # lines that begin something, wherever they stand
    r"\[?[IWEF]\d{4} \d\d:\d\d:|\[rank\d+\]:\[|\S+:\d+: \w*Warning:|\d{4}-\d\d-\d\d[ T]\d|\++ \S"
    r"|usage: |vllm[\w -]*: error: |Script (?:started|done) on "
)

_INNER = " \t|-*"  # how lines within a record begin: code, the logo, tables

_Mode = Literal["plain", "awaiting", "frames", "ended", "chained"]


class _Stream:
    """The record of a process, or of the bare lines, that was last added to."""

    __slots__ = ("bar", "carried", "head", "lines", "mode", "record", "seen")

    def __init__(self) -> None:
        self.record = 0
        self.head: Head | None = None
        self.carried = False  # the last line said that the record goes on
        self.lines = 0
        self.mode: _Mode = "plain"
        self.seen = 0  # when the last line came
        self.bar = False


class Records:
    """Gives each line of a log its record; feed it the lines in order."""

    def __init__(self) -> None:
        self._streams: dict[int | str | None, _Stream] = {}
        self._seen = 0
        self._terminal: bool | None = None  # whether a terminal added a ``\r`` to each line; None: not known

    def record_of(self, number: int, head: Head, message: str, returns: int = 0) -> int:
        """Number of the first line of the record. ``returns``: how many ``\\r`` the line ended in."""
        self._seen += 1
        process, pid, level, _, _, _ = head
        key = process if pid is None else pid
        stream = self._streams.get(key)
        if stream is None:
            stream = self._new_stream(key)
        if level is None:
            return self._bare(stream, number, message, key is not None or stream.seen == self._seen - 1)
        return self._headed(stream, number, head, message, returns)

    def begin(self, number: int, head: Head) -> int:
        """A line that begins a record and says so itself."""
        return self.record_of(number, head._replace(time=None), "")

    def _new_stream(self, key: int | str | None) -> _Stream:
        if len(self._streams) >= _STREAMS:
            del self._streams[next(iter(self._streams))]
        stream = self._streams[key] = _Stream()
        return stream

    def _headed(self, stream: _Stream, number: int, head: Head, message: str, returns: int) -> int:
        mode: _Mode = "plain"
        if head[3] is not None:  # only vLLM's own formatter says that a record goes on
            carried = stream.carried
            stream.carried = self._goes_on(returns) if returns or self._terminal is not False else False
            if head == stream.head:
                if carried or self._repeats(stream, message):
                    return self._add(stream, number, message)
            elif carried and self._terminal is None:
                self._terminal, stream.carried = True, returns > 1  # it didn't go on
            if message.startswith("Traceback ("):
                mode = "frames"
        elif head[2] in ("ERROR", "CRITICAL"):
            mode = "awaiting"
        stream.head, stream.record, stream.lines, stream.seen = head, number, 1, self._seen
        stream.bar, stream.mode = False, mode
        return number

    def _goes_on(self, returns: int) -> bool:
        if returns > 1:
            self._terminal = True
        elif returns == 0:
            self._terminal = False
        return returns > 1 or (returns == 1 and not self._terminal)

    @staticmethod
    def _repeats(stream: _Stream, message: str) -> bool:
        """Whether a line with the head of the one above goes on with it, in a log without ``\\r``."""
        if stream.mode in ("frames", "chained") or message in CHAINED:
            return True
        return not message or message[0] in _INNER or message.startswith("Traceback (")

    def _bare(self, stream: _Stream, number: int, message: str, follows: bool) -> int:
        """``follows``: the line above it is of the same stream."""
        if found := _RANK.match(message):
            message = message[found.end() :]
        if self._continues(stream, message, follows):
            return self._add(stream, number, message)
        if (stream.carried or stream.mode in ("frames", "chained")) and _own(message):
            return number  # it stands in the middle of something that goes on
        stream.head, stream.carried = None, False
        return self._begin(stream, number, message)

    def _continues(self, stream: _Stream, message: str, follows: bool) -> bool:
        """Whether a line without a head goes on with the record of its stream."""
        mode = stream.mode
        if not message.strip():
            return mode in ("frames", "chained") or (mode == "ended" and follows)
        if _TRACEBACK.match(message):
            return mode == "chained" or (mode == "awaiting" and follows)
        if mode == "frames":
            return message[0].isspace() or not _own(message)
        if message in CHAINED:
            return mode == "ended"
        if message[0].isspace():
            return follows and stream.record > 0 and not stream.bar and not _own(message)
        return mode == "ended" and follows and not _own(message)

    def _begin(self, stream: _Stream, number: int, message: str) -> int:
        stream.record, stream.lines, stream.mode = number, 0, "plain"
        stream.bar = _BAR.search(message) is not None
        return self._add(stream, number, message)

    def _add(self, stream: _Stream, number: int, message: str) -> int:
        if stream.lines >= RECORD_LIMIT:
            stream.record, stream.lines = number, 0
        stream.lines += 1
        stream.seen = self._seen
        if stream.mode == "plain" or stream.mode == "awaiting":
            if message.startswith(("Traceback", "Exception Group", "  + Exc")) and _TRACEBACK.match(message):
                stream.mode = "frames"
            elif stream.head is None and message.startswith("Process ") and _PROCESS.match(message):
                stream.mode = "awaiting"
            elif message in CHAINED:
                stream.mode = "chained"
        else:
            stream.mode = _next_mode(stream.mode, message)
        return stream.record


def _next_mode(mode: _Mode, message: str) -> _Mode:
    """How a traceback stands after ``message``."""
    if message in CHAINED:
        return "chained"
    if _TRACEBACK.match(message):
        return "frames"
    if mode == "frames" and message and not message[0].isspace():
        return "ended"
    return mode


def _own(message: str) -> bool:
    """Whether a line without a head belongs to nothing that stands above it."""
    return (
        _OWN.match(message) is not None
        or _BAR.search(message) is not None
        or _LOGO.match(message) is not None
        or _PROCESS.match(message) is not None
    )

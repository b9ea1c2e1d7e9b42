"""Where a boot begins in a log that holds several: a container's restarts, the arms of an A/B.

vLLM prints, in this order: argparse's usage (only when it refuses the arguments), a banner (from 0.17), its
version, the arguments that aren't defaults. One that comes again, or after a later one, is another boot's.
Process ids don't tell: the first process of a container is number 1 each time.
"""

from __future__ import annotations

import re

from sparktui.bootlog.lines import LineSplitter

_USAGE, _BANNER, _VERSION, _ARGUMENTS, _REFUSED = range(5)
_BANNER_TOP = "█     █     █▄   ▄█"
_STAGES = (
    (_USAGE, re.compile(r"^usage: vllm\b")),
    (_BANNER, re.compile(rf"^ *{_BANNER_TOP} *$")),
    (_VERSION, re.compile(r"^(?:vLLM (?:API )?server |[ ▀▄█]*█ +)version +\d")),
    (_ARGUMENTS, re.compile(r"^non-default args: ")),
    (_REFUSED, re.compile(r"^vllm[\w -]*: error: ")),
)
_SIGNS = tuple(
    text.encode() for text in ("usage: vllm", "█▄   ▄█", "version ", "non-default args: ", ": error: ")
)
_HELD = 64 * 1024  # bytes of an unfinished line that wait for its end


class BootSplitter:
    """Cuts a log's bytes where a boot begins; how they are cut into chunks changes nothing.

    Memory is bounded: of a line, 64 KiB are looked at. What stands before the first boot belongs to it.
    """

    def __init__(self) -> None:
        self._stage: int | None = None
        self._held = b""
        self._inside = False  # the next bytes continue a line that was passed on

    @property
    def started(self) -> bool:
        """Whether any line was vLLM's start."""
        return self._stage is not None

    def feed(self, data: bytes) -> list[tuple[bool, bytes]]:
        """Pieces of the log in order, and whether a new boot begins with each."""
        data = self._held + data
        end = data.rfind(b"\n") + 1
        if len(data) - end > _HELD:
            end = len(data)
        self._held = data[end:]
        return self._cut(data[:end])

    def flush(self) -> list[tuple[bool, bytes]]:
        """The unfinished last line, if there is one."""
        data, self._held = self._held, b""
        return self._cut(data)

    def _cut(self, data: bytes) -> list[tuple[bool, bytes]]:
        pieces: list[tuple[bool, bytes]] = []
        begins, start = False, 0
        for at in _candidates(data):
            if (at == 0 and self._inside) or not self._begins(data[at : at + _HELD]):
                continue
            pieces.append((begins, data[start:at]))
            begins, start = True, at
        pieces.append((begins, data[start:]))
        if data:
            self._inside = not data.endswith(b"\n")
        return [piece for piece in pieces if piece[1]]

    def _begins(self, data: bytes) -> bool:
        stage = _stage(data.partition(b"\n")[0])
        if stage is None:
            return False
        again = self._stage is not None and stage <= self._stage and stage != _REFUSED
        self._stage = stage if again else max(stage, self._stage or 0)
        return again


def _candidates(data: bytes) -> list[int]:
    """Where the lines start that hold a sign of a beginning."""
    starts = set()
    for sign in _SIGNS:
        at = data.find(sign)
        while at >= 0:
            starts.add(data.rfind(b"\n", 0, at) + 1)
            end = data.find(b"\n", at)
            at = data.find(sign, end) if end >= 0 else -1
    return sorted(starts)


def _stage(line: bytes) -> int | None:
    """How far a boot is that prints this line."""
    splitter = LineSplitter()
    parsed = [*splitter.feed(line + b"\n"), *splitter.flush()]
    message = parsed[0].message if parsed else ""
    return next((stage for stage, pattern in _STAGES if pattern.search(message)), None)

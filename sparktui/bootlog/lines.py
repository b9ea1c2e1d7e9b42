"""Bytes of a server log to clean, parsed lines.

The log of any vLLM from 0.5 to 0.33: see ``head`` for what stands before a message, ``records`` for what
belongs together, ``jsonline`` for the JSON formatter and ``envelope`` for what docker and others add.
Progress bars rewrite one line with carriage returns.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparktui.bootlog.envelope import CUT, Envelopes, Unwrapped
from sparktui.bootlog.head import Head, common_head, read_head
from sparktui.bootlog.jsonline import JsonRecord, read_record
from sparktui.bootlog.records import Records
from sparktui.bootlog.secrecy import masked
from sparktui.bootlog.text import clean, strip_colours
from sparktui.bootlog.uncut import LINE_LIMIT, Pieces, Rewritten, collapsed, with_dropped

__all__ = ["LINE_LIMIT", "Line", "LineSplitter", "clean", "parse_line"]

_STREAMS = 64  # of which pieces of a line are kept


@dataclass(frozen=True, slots=True)
class Line:
    """One log line. ``text`` is the whole line, without escape codes or other control characters.

    A JSON record is shown as vLLM's text formatter would have written it, line by line. A line that docker
    cut has the number of its last piece.
    """

    number: int  # from 1, counting newlines and what lines JSON records have more
    text: str
    process: str | None = None  # EngineCore, APIServer, Worker_TP0, …: the innermost prefix
    pid: int | None = None
    level: str | None = None
    time: str | None = None  # MM-DD HH:MM:SS, the process's local time; the log has no year
    source: str | None = None  # file.py:123; the logger's name in JSON records
    message: str = ""
    record: int = 0  # number of the first line of its record, its own when it begins one

    def __post_init__(self) -> None:
        if not self.record:
            object.__setattr__(self, "record", self.number)


class _Draft:
    """A line while it is made: a frozen dataclass takes six times as long to fill."""

    __slots__ = Line.__slots__

    def __init__(self, number: int, text: str, message: str, head: Head, record: int) -> None:
        self.number = number
        self.text = text
        self.process, self.pid, self.level, self.time, self.source, _ = head
        self.message = message
        self.record = record


def _made(number: int, text: str, message: str, head: Head, record: int) -> Line:
    line = _Draft(number, text, message, head, record)
    line.__class__ = Line  # type: ignore[assignment]
    return line  # type: ignore[return-value]


def parse_line(number: int, text: str, head: str = "") -> Line:
    """A clean text as a Line. ``head``: what the line showed first, before carriage returns overwrote it."""
    found = _head(text, head)
    return _made(number, text, text[found.end :], found, number)


def _head(text: str, first: str) -> Head:
    head = common_head(text) or read_head(text)
    if head.process is None and first and first is not text:
        shown = read_head(first)
        head = head._replace(process=shown.process, pid=shown.pid)
    return head


class LineSplitter:
    """Splits a byte stream into lines; how the bytes are cut into chunks changes nothing.

    Of a line that carriage returns rewrote, only the last non-blank state is kept. Memory is bounded: each
    state keeps ``LINE_LIMIT`` bytes and says how many it dropped.
    """

    def __init__(self) -> None:
        self._number = 0
        self._given = 0  # the last number given to a line
        self._current = Rewritten()
        self._envelopes = Envelopes()
        self._records = Records()
        self._pieces: dict[str, Pieces] = {}  # of lines that a carrier cut, and said so
        self._held: Pieces | None = None  # a line that docker may have cut
        self._held_number = 0

    @property
    def partial(self) -> str:
        """The progress bar that is being rewritten now, clean; empty before the first carriage return."""
        return masked(strip_colours(self._current.state)) if self._current.returned else ""

    @property
    def partial_line(self) -> Line | None:
        """``partial`` as the line that it may become, or None."""
        text = self.partial
        return parse_line(self._number + 1, text, strip_colours(self._current.first)) if text else None

    def feed(self, data: bytes) -> list[Line]:
        """The lines that ``data`` completes."""
        lines: list[Line] = []
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._number += 1
            if self._current.length or self._held is not None or len(piece) >= CUT:
                self._current.add(piece)
                lines += self._end_line()
            else:
                self._common(piece, lines)
        self._current.add(rest)
        return lines

    def flush(self) -> list[Line]:
        """The unfinished last line, if there is one, and lines that were cut and not gone on with."""
        lines: list[Line] = []
        if self._current.length:
            self._number += 1
            lines += self._end_line()
        lines += self._release()
        for pieces in self._pieces.values():
            lines += self._take(*collapsed(pieces.text), pieces.dropped)
        self._pieces.clear()
        return lines

    def _common(self, piece: bytes, lines: list[Line]) -> None:
        """A line that came in one chunk, quickly when there is nothing to clean."""
        text = piece.decode("utf-8", "replace")
        returns = 0
        if text.endswith("\r"):
            bare = text.rstrip("\r")
            returns, text = len(text) - len(bare), bare
        if not text.isprintable() or (returns and not text.strip()):
            self._current.add(piece)
            lines += self._end_line()
        elif "0m" not in text and "[m" not in text and (head := common_head(text)) is not None:
            lines.append(self._line(masked(text), head, returns))
        else:
            lines += self._unwrap(text, text, returns, 0)

    def _end_line(self) -> list[Line]:
        ended, self._current = self._current, Rewritten()
        first, text, dropped = ended.end()
        lines: list[Line] = []
        if self._held is not None and self._begins(text):
            lines = self._release()
        if ended.length == CUT and not ended.returned and self._envelopes.take_off(text) is None:
            self._hold(text)
            return lines
        if self._held is not None:
            self._held.add(text, dropped)
            first, text, dropped = self._held.text, self._held.text, self._held.dropped
            self._held = None
        return lines + self._unwrap(first, text, ended.returns, dropped)

    def _begins(self, text: str) -> bool:
        """Whether a line is one of its own, and not the rest of the one above it."""
        head = read_head(text)
        named = head.level is not None or head.pid is not None or head.process is not None
        return (
            named or not text.strip() or text.startswith('{"') or self._envelopes.take_off(text) is not None
        )

    def _hold(self, text: str) -> None:
        if self._held is None:
            self._held = Pieces()
        self._held.add(text)
        self._held_number = self._number

    def _release(self) -> list[Line]:
        """The line that was held, because it was whole."""
        if self._held is None:
            return []
        held, self._held = self._held, None
        later = self._number - self._held_number
        self._number -= later
        lines = self._take(held.text, held.text, 0, held.dropped)
        self._number += later
        return lines

    def _unwrap(self, first: str, text: str, returns: int, dropped: int) -> list[Line]:
        """The line within an envelope, when it is complete. ``first``: what it showed first."""
        taken = self._envelopes.take_off(first)
        if taken is None:
            return self._take(first, text, returns, dropped)
        if first is not text:
            return self._take(taken.text, text, returns, dropped)
        whole = self._whole(taken, dropped)
        if whole is None:
            return []
        if taken.escaped:
            return self._take(*collapsed(whole.text), whole.dropped)
        return self._take(whole.text, whole.text, returns, whole.dropped)

    def _whole(self, taken: Unwrapped, dropped: int) -> Pieces | None:
        """A line with the pieces of it that came before; None while it goes on."""
        pieces = self._pieces.get(taken.stream) or Pieces()
        pieces.add(taken.text, dropped)
        if taken.cut and len(self._pieces) < _STREAMS:
            self._pieces[taken.stream] = pieces
            return None
        self._pieces.pop(taken.stream, None)
        return pieces

    def _take(self, first: str, text: str, returns: int, dropped: int) -> list[Line]:
        """A line that nothing is around any more."""
        record = read_record(text) if text.startswith("{") else None
        if record is not None:
            return self._json(record, dropped)
        same = first is text
        text = masked(with_dropped(strip_colours(text), dropped))
        return [self._line(text, _head(text, text if same else strip_colours(first)), returns)]

    def _line(self, text: str, head: Head, returns: int) -> Line:
        number = self._next_number()
        message = text[head[-1] :]
        line = _Draft(number, text, message, head, self._records.record_of(number, head, message, returns))
        line.__class__ = Line  # type: ignore[assignment]
        return line  # type: ignore[return-value]

    def _json(self, record: JsonRecord, dropped: int) -> list[Line]:
        *before, last = record.lines
        lines: list[Line] = []
        for message in (*before, with_dropped(last, dropped)):
            number = self._next_number()
            begun = lines[0].number if lines else self._records.begin(number, record.head)
            shown = masked(record.shown + message)
            lines.append(_made(number, shown, shown[len(record.shown) :], record.head, begun))
        return lines

    def _next_number(self) -> int:
        if self._number <= self._given:
            self._number = self._given + 1
        self._given = self._number
        return self._number

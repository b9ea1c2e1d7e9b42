"""The last lines of server.log as a screen needs them: numbered, levelled, filtered, searched."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import get_args

from rich.cells import cell_len

from sparktui.schema.live import Finding, Severity
from sparktui.ui.widgets.log_text import LOUD, LogLine, continues, parse

CAPACITY = 10_000  # lines kept, as many as the host keeps
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # the gravest first
_FARTHEST = 500  # lines that a record is followed for in either direction
_QUIET: frozenset[Severity] = frozenset({"note", "harmless"})

_number = attrgetter("number")


def _held(finding: Finding) -> int:
    """Lines of its record, as many as can be kept."""
    return max(1, min(finding.lines, CAPACITY))


class LogStore:
    """A bounded ring of lines and the rows of it that the filters let through."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget lines, findings and filters: another run's log follows."""
        self.last = 0  # number of the newest line
        self.width = 0  # cells of the widest line so far
        self._lines: list[LogLine] = []
        self._rows: list[LogLine] = []
        self._findings: dict[int, Finding] = {}  # by the line that says it
        self._records: dict[int, Finding] = {}  # by every line of the record
        self._marked: tuple[Finding, ...] = ()
        self._warnings_only = False
        self._show_access = False
        self._whole = False
        self._query = ""
        self._found: list[int] | None = None  # line numbers; None: to be searched again

    @property
    def rows(self) -> Sequence[LogLine]:
        """The lines to show, in order."""
        return self._rows

    @property
    def held(self) -> int:
        """How many lines are kept, hidden ones too."""
        return len(self._lines)

    @property
    def warnings_only(self) -> bool:
        """Show only lines with a finding above note, and of level WARNING and above if not harmless."""
        return self._warnings_only

    @warnings_only.setter
    def warnings_only(self, value: bool) -> None:
        self._warnings_only = value
        self._filter()

    @property
    def show_access(self) -> bool:
        """Show the access lines of requests that went well, too."""
        return self._show_access

    @show_access.setter
    def show_access(self, value: bool) -> None:
        self._show_access = value
        self._filter()

    @property
    def whole(self) -> bool:
        """Show lines as the server wrote them, with process, date and source."""
        return self._whole

    @whole.setter
    def whole(self, value: bool) -> None:
        self._whole = value
        self._filter()

    def shown(self, line: LogLine) -> str:
        """What of a line is on screen."""
        return line.text if self._whole else line.brief

    def extend(self, first: int, lines: Sequence[str]) -> int:
        """Add lines numbered from ``first`` on; returns how many rows fell off the top.

        Lines that are known already are skipped; numbers that never come leave a gap.
        """
        skip = max(0, self.last + 1 - first, len(lines) - CAPACITY)
        level = self._lines[-1].level if self._lines else ""
        fresh = []
        for number, raw in enumerate(lines[skip:], first + skip):
            line = parse(number, raw, level)
            level = line.level
            fresh.append(line)
        if not fresh:
            return 0
        self.last = fresh[-1].number
        rows = [line for line in fresh if self._shows(line)]
        self._lines += fresh
        self._rows += rows
        self._widen(rows)
        self._search(rows)
        return self._drop()

    def mark(self, findings: Sequence[Finding]) -> bool:
        """These are the findings, all of them; False when they were so before."""
        marked = tuple(sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), f.line)))
        if marked == self._marked:
            return False
        self._marked = marked
        self._findings = {f.line: f for f in reversed(marked) if f.line}
        self._records = {
            number: f for f in reversed(marked) if f.line for number in range(f.line, f.line + _held(f))
        }
        self._filter()
        return True

    def finding(self, number: int | None) -> Finding | None:
        """The gravest finding that begins on this line; it may be a harmless one."""
        return None if number is None else self._findings.get(number)

    def finding_around(self, number: int | None) -> Finding | None:
        """The gravest finding whose record this line belongs to."""
        return None if number is None else self._records.get(number)

    def harmless(self, number: int) -> bool:
        """Whether a rule explains this line, and says that it does no harm."""
        found = self._records.get(number)
        return found is not None and found.severity == "harmless"

    @property
    def left_out(self) -> int:
        """How many warnings ``warnings_only`` leaves out because they are harmless."""
        held = (self._at(number) for number in self._records if self.harmless(number))
        return sum(line is not None and line.level in LOUD for line in held)

    def texts(self, first: int, count: int) -> list[str]:
        """Lines ``first`` and on as the server wrote them, those that are kept."""
        start = bisect_left(self._lines, first, key=_number)
        end = bisect_left(self._lines, first + count, key=_number)
        return [line.text for line in self._lines[start:end]]

    def record(self, number: int) -> tuple[int, list[str]]:
        """The record that this line belongs to, as the text tells: the first line's number, and the lines."""
        index = bisect_left(self._lines, number, key=_number)
        if index == len(self._lines) or self._lines[index].number != number:
            return number, []
        start = end = index
        while start > max(0, index - _FARTHEST) and continues(self._lines[start - 1], self._lines[start]):
            start -= 1
        last = min(len(self._lines), index + _FARTHEST) - 1
        while end < last and continues(self._lines[end], self._lines[end + 1]):
            end += 1
        lines = self._lines[start : end + 1]
        return lines[0].number, [line.text for line in lines]

    def line(self, number: int) -> LogLine | None:
        """The line of this number, if it is among the rows."""
        row = self.row_of(number)
        found = self._rows[row] if row < len(self._rows) else None
        return found if found is not None and found.number == number else None

    def row_of(self, number: int) -> int:
        """Index into ``rows`` of this line, or of the next one shown."""
        return bisect_left(self._rows, number, key=_number)

    def matches(self, text: str) -> Sequence[int]:
        """Numbers of the shown lines that hold ``text``, upper or lower case alike."""
        if text != self._query:
            self._query, self._found = text, None
        if self._found is None:
            self._found = []
            self._search(self._rows)
        return self._found

    def step_match(self, text: str, after: int, step: int) -> int | None:
        """The next (``step`` 1) or previous (-1) matching line seen from line ``after``, round the ends."""
        return _step(self.matches(text), after, step)

    def step_finding(self, after: int, step: int) -> Finding | None:
        """The next or previous finding above harmless whose line is shown, round the ends."""
        told = (n for n, f in self._findings.items() if f.severity != "harmless")
        number = _step(sorted(n for n in told if self.line(n) is not None), after, step)
        return self.finding(number)

    def _at(self, number: int) -> LogLine | None:
        index = bisect_left(self._lines, number, key=_number)
        found = self._lines[index] if index < len(self._lines) else None
        return found if found is not None and found.number == number else None

    def _shows(self, line: LogLine) -> bool:
        finding = self._findings.get(line.number)
        if finding is not None and finding.severity not in _QUIET:
            return True
        if self._warnings_only:
            return line.level in LOUD and not self.harmless(line.number)
        return self._show_access or not line.access

    def _filter(self) -> None:
        self._rows = [line for line in self._lines if self._shows(line)]
        self._found = None
        self.width = 0
        self._widen(self._rows)

    def _widen(self, rows: Sequence[LogLine]) -> None:
        texts = [self.shown(row) for row in rows]
        wide = (len(text) if text.isascii() else cell_len(text) for text in texts)
        self.width = max(self.width, max(wide, default=0))

    def _search(self, rows: Sequence[LogLine]) -> None:
        if self._query and self._found is not None:
            wanted = self._query.lower()
            self._found += [row.number for row in rows if wanted in row.text.lower()]

    def _drop(self) -> int:
        over = len(self._lines) - CAPACITY
        if over <= 0:
            return 0
        del self._lines[:over]
        oldest = self._lines[0].number
        dropped = self.row_of(oldest)
        del self._rows[:dropped]
        if self._found:
            del self._found[: bisect_left(self._found, oldest)]
        return dropped


def _step(numbers: Sequence[int], after: int, step: int) -> int | None:
    if not numbers:
        return None
    index = bisect_right(numbers, after) if step > 0 else bisect_left(numbers, after) - 1
    return numbers[index % len(numbers)]

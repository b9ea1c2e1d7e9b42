"""The last lines of server.log as a screen needs them: numbered, levelled, filtered, searched."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple, get_args

from rich.cells import cell_len

from sparktui.schema.live import Finding, Severity

CAPACITY = 10_000  # lines kept, as many as the host keeps
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # the gravest first
LOUD = frozenset({"WARNING", "ERROR", "CRITICAL"})
_QUIET: frozenset[Severity] = frozenset({"note", "harmless"})
_SHORT = {"WARNING": "WARN", "CRITICAL": "CRIT"}
_GLOG = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}

# vLLM's logger ``(Proc pid=1) WARNING 11-30 …``, uvicorn's ``INFO:     …``, glog's ``[W1130 17:58:18…``, and
# Python's own tracebacks and warnings, which bear no level. An indented line goes with the one above it.
_HEAD = re.compile(
    r"(?:\([A-Za-z][^()]{0,60}\) ?)*"
    r"(?:(?P<level>TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL)"
    r"(?: \d\d-\d\d (?P<time>\d\d:\d\d:\d\d) \[?[\w./-]+:\d+\]? ?|: {2,}|:? |$)"
    r"|\[?(?P<glog>[IWEF])\d{4} \d\d:\d\d:"
    r"|(?P<error>Traceback \(most recent|[\w.]+(?:Error|Exception):)"
    r"|(?P<warning>\S+:\d+: \w*Warning:)"
    r"|(?P<indent>[ \t]))"
)
_ACCESS = re.compile(r'"[A-Z]+ \S+ HTTP/[\d.]+" [23]\d\d\b')
# C0, DEL, C1, line and paragraph separators, marks that reorder text, halves of surrogate pairs.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class LogLine(NamedTuple):
    """One line of server.log."""

    number: int  # from 1
    text: str
    brief: str  # time, level and message: what fits 80 columns
    level: str  # empty where the line states none
    access: bool  # uvicorn served a request, and well


_number = attrgetter("number")


def plain(text: str) -> str:
    """Text that a terminal shows as it is: tabs as spaces, control characters as U+FFFD."""
    return text if text.isprintable() else _CONTROLS.sub("�", text.expandtabs())


def parse(number: int, raw: str, above: str = "") -> LogLine:
    """A line; an indented one without a level of its own has the level of the line ``above``."""
    text = plain(raw)
    found = _HEAD.match(text)
    level, brief, access = "", text, False
    if found is None:
        pass
    elif found["level"]:
        level = found["level"]
        brief = f"{found['time'] or '':8} {_SHORT.get(level, level):5} {text[found.end() :]}"
        access = level == "INFO" and _ACCESS.search(text) is not None
    elif found["glog"]:
        level = _GLOG[found["glog"]]
    else:
        level = above if found["indent"] else "ERROR" if found["error"] else "WARNING"
    return LogLine(number, text, brief, level, access)


def spans(text: str, query: str) -> list[tuple[int, int]]:
    """Where ``query`` stands in ``text``, upper or lower case, as character ranges."""
    if not query:
        return []
    return [found.span() for found in re.finditer(re.escape(query), text, re.IGNORECASE)]


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
        self._findings: dict[int, Finding] = {}
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
        """Show only lines of level WARNING and above, or with a finding above note."""
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
        self._findings = {f.line: f for f in reversed(marked) if f.severity != "harmless"}
        self._filter()
        return True

    def finding(self, number: int | None) -> Finding | None:
        """The gravest finding of this line, unless it has none or a harmless one."""
        return None if number is None else self._findings.get(number)

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
        """The next or previous finding whose line is shown, round the ends."""
        number = _step(sorted(n for n in self._findings if self.line(n) is not None), after, step)
        return self.finding(number)

    def _shows(self, line: LogLine) -> bool:
        finding = self._findings.get(line.number)
        if finding is not None and finding.severity not in _QUIET:
            return True
        if self._warnings_only:
            return line.level in LOUD
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

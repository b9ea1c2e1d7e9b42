"""One line of server.log as a screen needs it: clean, levelled, brief; and which lines make one record."""

from __future__ import annotations

import re
from typing import NamedTuple

LOUD = frozenset({"WARNING", "ERROR", "CRITICAL"})
_SHORT = {"WARNING": "WARN", "CRITICAL": "CRIT"}
_GLOG = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}

# vLLM's logger ``(Proc pid=1) WARNING 11-30 …``, uvicorn's ``INFO:     …``, glog's ``[W1130 17:58:18…``, and
# Python's own tracebacks and warnings, which bear no level. An indented line goes with the one above it.
_HEAD = re.compile(
    r"(?:\([A-Za-z][^()]{0,60}\) ?)*"
    r"(?:(?P<level>TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL)"
    r"(?: \d\d-\d\d (?P<time>\d\d:\d\d:\d\d) \[?[\w./-]+(?::\d+)?\]? ?|: {2,}|:? |$)"
    r"|\[?(?P<glog>[IWEF])\d{4} \d\d:\d\d:"
    r"|(?P<error>Traceback \(most recent|[\w.]+(?:Error|Exception):)"
    r"|(?P<warning>\S+:\d+: \w*Warning:)"
    r"|(?P<indent>[ \t]))"
)
_ACCESS = re.compile(r'"[A-Z]+ \S+ HTTP/[\d.]+" [23]\d\d\b')
_TRACEBACK = "Traceback (most recent"
_ENDS = re.compile(r"Traceback \(most recent|[\w.]+(?:Error|Exception|Interrupt|Exit)\b")
# C0, DEL, C1, line and paragraph separators, marks that reorder text, halves of surrogate pairs.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class LogLine(NamedTuple):
    """One line of server.log."""

    number: int  # from 1
    text: str
    brief: str  # time, level and message: what fits 80 columns
    level: str  # empty where the line states none
    access: bool  # uvicorn served a request, and well


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


def continues(above: LogLine, line: LogLine) -> bool:
    """Whether ``line`` belongs to the record of the line ``above``.

    It does when it is indented, or begins or ends a traceback. vLLM repeats the head on each line of a
    record.
    """
    if line.number != above.number + 1:
        return False
    head_above, said_above = _parts(above.text)
    head, said = _parts(line.text)
    if head and head != head_above:
        return False
    inside = said_above[:1].isspace() or said_above.startswith(_TRACEBACK)
    begins = head != "" and said.startswith(_TRACEBACK)
    return begins or said[:1].isspace() or (inside and _ENDS.match(said) is not None)


def _parts(text: str) -> tuple[str, str]:
    """What a logger put before a line, level and all, and the message; without a level only the message."""
    found = _HEAD.match(text)
    if found is None:
        return "", text
    if found["level"]:
        return text[: found.end()].rstrip(), text[found.end() :]
    start = max(found.start(name) for name in ("glog", "error", "warning", "indent"))
    return ("", text[start:]) if start >= 0 else ("", text)


def spans(text: str, query: str) -> list[tuple[int, int]]:
    """Where ``query`` stands in ``text``, upper or lower case, as character ranges."""
    if not query:
        return []
    return [found.span() for found in re.finditer(re.escape(query), text, re.IGNORECASE)]

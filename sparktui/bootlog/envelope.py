"""What carried a log adds to each of its lines, taken off again.

Known carriers: docker's json-file, ``docker logs -t`` and ``kubectl logs --timestamps``, docker compose,
journald (short, short-precise, short-iso, short-full), Kubernetes' CRI files, ``kubectl logs --prefix``. None
of their forms begins as a line of vLLM does. Carriers cut lines of more than 16 KiB; two of them say so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sparktui.bootlog.head import common_head
from sparktui.bootlog.jsonline import load_object

CUT = 16 * 1024  # bytes: docker's and containerd's longest piece of a line

_NAMES = 64  # services remembered
_DEEPEST = 3
_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_UNIT = r"[\w.:-]+ [\w.@\\:/-]+\[\d+\]: ?"
_CRI = re.compile(rf"{_STAMP}(?:\.\d+)?{_ZONE} (stdout|stderr) ([FP])(?::[\w:]*)?(?: |$)")
_JOURNAL = re.compile(
    rf"(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
    rf"|{_STAMP}(?:[.,]\d+)?{_ZONE}"
    rf"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [A-Z]\w+) {_UNIT}"
)
_STAMPED = re.compile(rf"{_STAMP}\.\d+{_ZONE}(?: |$)")
_POD = re.compile(r"\[pod/[\w./-]+\] ?")
_COMPOSE = re.compile(r"([A-Za-z0-9][\w.-]*) +\| ?")
_REPLICA = re.compile(r"[A-Za-z0-9][\w.-]*[-_]\d+  +\| ?")


class Unwrapped(NamedTuple):
    """A line without what carried it. ``stream`` says whose line it is; ``cut``: the next of it goes on;
    ``escaped``: it may hold what JSON escaped, line ends and control characters.
    """

    text: str
    stream: str = ""
    cut: bool = False
    escaped: bool = False


class Envelopes:
    """Takes envelopes off the lines of one log. It remembers what services docker compose names."""

    def __init__(self) -> None:
        self._services: set[str] = set()

    def take_off(self, text: str) -> Unwrapped | None:
        """The line within, or None when nothing is around it. ``text`` has no control characters."""
        found: Unwrapped | None = None
        for _ in range(_DEEPEST):
            inner = self._one(found.text if found else text)
            if inner is None:
                return found
            stream = f"{found.stream} {inner.stream}" if found else inner.stream
            found = inner._replace(stream=stream)
            if found.escaped:
                return found
        return found

    def _one(self, text: str) -> Unwrapped | None:
        first = text[:1]
        if first == "{":
            return _docker_json(text)
        if first.isdigit() and (found := _CRI.match(text)) is not None:
            return Unwrapped(text[found.end() :], found[1], found[2] == "P")
        if first.isdigit() or first.isupper():
            if (found := _JOURNAL.match(text)) is not None:
                return Unwrapped(text[found.end() :])
            if (found := _STAMPED.match(text)) is not None:
                return Unwrapped(_rejoined(text[found.end() :]))
        if first == "[":
            found = _POD.match(text)
            return Unwrapped(text[found.end() :], found[0]) if found else None
        return self._compose(text) if first.isalnum() else None

    def _compose(self, text: str) -> Unwrapped | None:
        found = _COMPOSE.match(text)
        if found is None:
            return None
        name, rest = found[1], text[found.end() :]
        if name not in self._services:
            if not (_REPLICA.match(text) or _STAMPED.match(rest) or common_head(rest)):
                return None
            if len(self._services) < _NAMES:
                self._services.add(name)
        return Unwrapped(rest, name)


def _docker_json(text: str) -> Unwrapped | None:
    """``{"log":"…\\n","stream":"stderr","time":"…"}``: a piece of a line, when its text has no line end."""
    if not text.startswith('{"log":'):
        return None
    fields = load_object(text)
    log = fields.get("log") if fields else None
    if fields is None or not isinstance(log, str):
        return None
    whole = log.endswith("\n") or "stream" not in fields  # one that was cut says no stream
    return Unwrapped(log.removesuffix("\n"), str(fields.get("stream", "")), not whole, True)


def _rejoined(text: str) -> str:
    """``docker logs -t`` puts a time before each piece of a long line, and no line end between them."""
    start = CUT
    while len(text) > start and (found := _STAMPED.match(text, start)) is not None:
        text = text[:start] + text[found.end() :]
        start += CUT
    return text

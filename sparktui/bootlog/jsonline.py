"""Log records written as JSON, one a line: vLLM's own since 0.32, and cut ones.

``--logging-config.formatter json`` writes (vllm/logging_utils/formatter.py, python-json-logger 4)
``{"asctime": "2026-11-30 18:17:11,123", "levelname": "ERROR", "name": "vllm.v1.engine.core", "processName":
"EngineCore", "process": 717, "message": "…", "exc_info": "Traceback …"}``; uvicorn's loggers do too. The
process is multiprocessing's name: MainProcess for the API server. A logging config of the user's own may
rename what it likes; the commonest other names are read as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sparktui.bootlog.head import Head
from sparktui.bootlog.text import clean

RECORD_LINES = 500  # of one record; the rest is dropped

_LEVEL = ("levelname", "level", "severity")
_TIME = ("asctime", "timestamp", "time", "@timestamp")
_MESSAGE = ("message", "msg", "event")
_TRACES = ("exc_info", "stack_info")
_ASCTIME = re.compile(r"\d{4}-(\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")
_LEVELS = frozenset({"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"})
_HALF_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$")


class JsonRecord(NamedTuple):
    """A record: its head, how vLLM's text formatter would have written that, and its lines."""

    head: Head
    shown: str
    lines: tuple[str, ...]


def load_object(text: str) -> Mapping[str, Any] | None:
    """The JSON object of a line, or None. What is left of one whose last text was cut counts as whole."""
    if not text.startswith("{") or '"' not in text[:4]:
        return None
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        try:
            loaded = json.loads(_HALF_ESCAPE.sub(r"\1", text) + '"}')
        except (ValueError, RecursionError):
            return None
    return loaded if isinstance(loaded, dict) else None


def read_record(text: str) -> JsonRecord | None:
    """A line as a record, or None when it isn't one."""
    fields = load_object(text)
    if fields is None:
        return None
    level, message = _first(fields, _LEVEL), _first(fields, _MESSAGE)
    if level is None or message is None or level.upper() not in _LEVELS:
        return None
    pid = fields.get("process")
    head = Head(
        process=_label(fields, "processName"),
        pid=pid if isinstance(pid, int) else None,
        level=level.upper(),
        time=_time(fields),
        source=_label(fields, "name"),
        end=0,
    )
    lines = [clean(line) for part in (message, *_traces(fields)) for line in part.split("\n")]
    if len(lines) > RECORD_LINES:
        lines[RECORD_LINES - 1 :] = [f"… [{len(lines) - RECORD_LINES + 1} lines dropped]"]
    return JsonRecord(head, _shown(head), tuple(lines))


def _shown(head: Head) -> str:
    """The head as vLLM's text formatter writes it, or uvicorn's."""
    prefix = f"({head.process} pid={head.pid}) " if head.process and head.pid is not None else ""
    if (head.source or "").startswith("uvicorn"):
        return f"{prefix}{head.level + ':' if head.level else '':9} "
    time = f" {head.time}" if head.time else ""
    source = f" [{head.source}]" if head.source else ""
    return f"{prefix}{head.level}{time}{source} "


def _time(fields: Mapping[str, Any]) -> str | None:
    found = _ASCTIME.match(_first(fields, _TIME) or "")
    return f"{found[1]} {found[2]}" if found else None


def _traces(fields: Mapping[str, Any]) -> Iterator[str]:
    for key in _TRACES:
        trace = fields.get(key)
        if isinstance(trace, str) and trace:
            yield trace
        elif isinstance(trace, list):
            yield from (line for line in trace if isinstance(line, str))


def _label(fields: Mapping[str, Any], key: str) -> str | None:
    value = fields.get(key)
    return clean(value) if isinstance(value, str) else None


def _first(fields: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := fields.get(key), str)), None)

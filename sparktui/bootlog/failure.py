"""The first real error of a boot that failed.

One failure is told several times: by the worker, by the engine core and by the API server, which only says
that the engine failed. The deepest process knows the cause. Tracebacks are Python's; argparse takes one line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sparktui.bootlog.lines import Line

_ARGPARSE = re.compile(r"^vllm[\w -]*: (error: .*)")
_PROCESS = re.compile(r"^Process ([A-Za-z][\w-]*):$")
_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?:: (.*))?$")
_STOP = {"KeyboardInterrupt", "CancelledError", "SystemExit", "GeneratorExit"}
_SECONDARY = re.compile(
    r"Engine core initialization failed|^EngineDeadError|WorkerProc initialization failed"
    r"|Worker failed with error|Engine core proc(?:ess)? .* died|^(?:BrokenPipe|EOF)Error"
)
_DIED = re.compile(r"^(?:Worker|Engine core) proc(?:ess)? \S+ died unexpectedly")
_INCOMPLETE = re.compile(r"validation errors? for \w+$")  # the next line says which
_INTERESTING = 500  # characters of a cause

_Key = tuple[str | None, str | None, str | None]  # process, level, source


@dataclass(slots=True)
class _Failure:
    """The last exception of a chain of tracebacks from one process."""

    depth: int
    name: str
    text: str


def root_cause(lines: Sequence[Line]) -> str | None:
    """Cause of a failed boot in one line, without module paths; None when the log shows no error.

    A stop (KeyboardInterrupt) is no error, and tracebacks logged as warnings were survived.
    """
    for line in lines:
        if (found := _ARGPARSE.match(line.message)) is not None:
            return found[1][:_INTERESTING]
    failures = [f for f in _tracebacks(lines) if f.name not in _STOP]
    primary = [f for f in failures if _SECONDARY.search(f.text) is None]
    if primary:
        return max(primary, key=lambda f: f.depth).text[:_INTERESTING]
    return _died(lines) or (failures[0].text[:_INTERESTING] if failures else _first_error(lines))


def _depth(process: str | None) -> int:
    """How far from the API server a process is."""
    name = (process or "").lower()
    return 2 if "worker" in name else 1 if "engine" in name else 0


def _died(lines: Sequence[Line]) -> str | None:
    """The message that a process of the engine was killed."""
    return next((x.message[:_INTERESTING] for x in lines if _DIED.match(x.message)), None)


def _first_error(lines: Sequence[Line]) -> str | None:
    """The first line logged as an error, for errors without a traceback."""
    errors = (x.message for x in lines if x.level in ("ERROR", "CRITICAL"))
    return next((message[:_INTERESTING] for message in errors if message.strip()), None)


def _tracebacks(lines: Sequence[Line]) -> list[_Failure]:
    """The tracebacks of a log, in order of their ends; those of several processes may be interleaved."""
    failures: list[_Failure] = []
    readers: dict[_Key, _Reader] = {}
    for line in lines:
        if line.level not in (None, "ERROR", "CRITICAL"):
            continue
        key = (line.process, line.level, line.source)
        reader = readers.setdefault(key, _Reader(line.process))
        failure = reader.take(line.message)
        if failure is not None:
            failures.append(failure)
    return failures


class _Reader:
    """Reads the tracebacks of one stream, which is one process's or the bare lines of all."""

    def __init__(self, process: str | None) -> None:
        self._process = process
        self._named = process
        self._inside = False
        self._chained = False
        self._last: _Failure | None = None

    def take(self, message: str) -> _Failure | None:
        """A new failure when ``message`` ends a traceback, else None."""
        if message.startswith(_TRACEBACK):
            self._inside = True
            return None
        if self._inside:
            return self._inner(message)
        if (found := _PROCESS.match(message)) is not None:
            self._named = found[1]
        elif message in _CHAINED:
            self._chained = True
        elif self._last is not None and message.startswith("  ") and _INCOMPLETE.search(self._last.text):
            self._last.text = f"{self._last.text}: {message.strip()}"
            self._last = None
        return None

    def _inner(self, message: str) -> _Failure | None:
        if not message or message[0].isspace():
            return None
        self._inside = False
        found = _EXCEPTION.match(message)
        if found is None:
            return None
        text = f"{found[1]}: {found[2]}" if found[2] else found[1]
        if self._chained and self._last is not None:
            self._last.name, self._last.text = found[1], text
            self._chained = False
            return None
        self._last = _Failure(_depth(self._named), found[1], text)
        self._named = self._process
        return self._last

"""vLLM's log grammar: ``(APIServer pid=N) INFO 11-30 18:15:57 [file.py:123] message``.

What differs by release (recorded from 0.24.0, 0.27.1 and 0.32.0): up to 0.30 a wrapper around stdout prefixes
every line of a process; from 0.32 the logger writes the prefix, and tracebacks, bars and uvicorn's lines are
bare. A record of several lines repeats its head on each and joins them with a carriage return and a newline.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TextIO

from sparktui.sim.release import DEFAULT, Release

_LEVELS = {"DEBUG": "37", "INFO": "32", "WARNING": "33", "ERROR": "31", "CRITICAL": "35"}
_UVICORN = re.compile(r"^(INFO|WARNING|ERROR)(: )")
_OLD_PREFIX = "\x1b[1;36m"  # up to 0.13, on pipes too
_SOURCES = Path(__file__).with_name("sources.txt")
_COLUMNS = ("0.24.0", DEFAULT, "0.32.0")


@cache
def _sources() -> Mapping[str, tuple[str, str, str]]:
    lines = _SOURCES.read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return {row[0]: (row[1], row[0], row[2]) for row in rows}


def source_of(file: str, release: Release) -> str:
    """``file:line`` of 0.27.1 as the nearest release says it; as it is when nobody knows."""
    row = _sources().get(file)
    found = "-" if row is None else row[_COLUMNS.index(release.nearest(_COLUMNS))]
    return file if found == "-" else found


def engine_names(release: Release, engines: int = 1) -> tuple[str, ...]:
    """``EngineCore_DPk`` with data parallelism, and up to 0.17 without it."""
    if engines > 1 or not release.since("0.19.0"):
        return tuple(f"EngineCore_DP{rank}" for rank in range(engines))
    return ("EngineCore",)


@dataclass(frozen=True, slots=True)
class Colours:
    """Which parts of a line are coloured."""

    prefix: bool = False
    record: bool = False


def colours(release: Release, environ: Mapping[str, str], *, is_terminal: bool) -> Colours:
    """As vLLM decides: NO_COLOR and VLLM_LOGGING_COLOR first, then whether stdout is a terminal."""
    wanted = environ.get("VLLM_LOGGING_COLOR", "auto")
    if environ.get("NO_COLOR") or wanted == "0":
        return Colours()
    forced = release.since("0.32.0") and bool(environ.get("FORCE_COLOR"))
    shown = is_terminal or wanted == "1" or forced
    return Colours(prefix=shown or not release.since("0.17.0"), record=shown)


class Log:
    """Writes all processes' lines, flushed one by one. A reader that went away is ignored.

    ``file`` arguments are in 0.27.1's words and are written in the release's. Lines of "the engine" come from
    every engine, or from the one with ``index``.
    """

    def __init__(
        self,
        stream: TextIO,
        api_pid: int,
        engine_pid: int = 0,
        release: Release | None = None,
        engines: int = 1,
    ) -> None:
        self._stream = stream
        self.api_pid = api_pid
        self.release = release or Release()
        self.names = engine_names(self.release, engines)
        self.engine_pids: list[int] = [engine_pid] * len(self.names)
        terminal = hasattr(stream, "isatty") and stream.isatty()
        self.colours = colours(self.release, os.environ, is_terminal=terminal)
        self._wraps = not self.release.since("0.32.0")

    def api(self, file: str, message: str, level: str = "INFO") -> None:
        """One record of the API server, its head repeated on each of its lines."""
        self._record(self._api_prefix, file, message, level)

    def engine(self, file: str, message: str, level: str = "INFO", index: int | None = None) -> None:
        """One record of the engine core. ``{rank}`` in the message is the engine's number."""
        for rank in self._ranks(index):
            text = message.replace("{rank}", str(rank))
            self._record(self.prefix_of(rank), file, text, level)

    def api_raw(self, text: str) -> None:
        """Output of the API server that is no log record: tracebacks, uvicorn."""
        if self.colours.record:
            text = _UVICORN.sub(lambda m: f"\x1b[{_LEVELS[m[1]]}m{m[1]}\x1b[0m{m[2]}", text)
        self._raw(self._api_prefix, text)

    def engine_raw(self, text: str, index: int | None = None) -> None:
        """Output of the engine core that is no log record: progress bars, tracebacks."""
        for rank in self._ranks(index):
            self._raw(self.prefix_of(rank), text)

    def engine_part(self, text: str) -> None:
        """A piece of a line that is still being written: a progress bar's next state."""
        self._write(text)

    @property
    def bar_prefix(self) -> str:
        """What a progress bar's line begins with."""
        return self.prefix_of(0) if self._wraps else ""

    @property
    def engine_pid(self) -> int:
        """The first engine's."""
        return self.engine_pids[0]

    def prefix_of(self, rank: int) -> str:
        return self._prefix(self.names[rank], self.engine_pids[rank])

    def _ranks(self, index: int | None) -> Sequence[int]:
        return range(len(self.names)) if index is None else (index,)

    @property
    def _api_prefix(self) -> str:
        return self._prefix("APIServer", self.api_pid)

    def _prefix(self, name: str, pid: int) -> str:
        text = f"({name} pid={pid})"
        if self.colours.prefix:
            start = "\x1b[0;36m" if self.release.since("0.17.0") else _OLD_PREFIX
            text = f"{start}{text}\x1b[0;0m"
        return f"{text} "

    def _record(self, prefix: str, file: str, message: str, level: str) -> None:
        moment, source = time.strftime("%m-%d %H:%M:%S"), f"[{source_of(file, self.release)}]"
        if self.colours.record:
            level = f"\x1b[{_LEVELS.get(level, '0')}m{level}\x1b[0m"
            moment, source = f"\x1b[90m{moment}\x1b[0m", f"\x1b[90m{source}\x1b[0m"
        head = f"{prefix}{level} {moment} {source} "
        self._write("\r\n".join(f"{head}{line}" for line in message.split("\n")) + "\n")

    def _raw(self, prefix: str, text: str) -> None:
        lead = prefix if self._wraps else ""
        self._write("".join(f"{lead}{line}\n" for line in text.split("\n")))

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()

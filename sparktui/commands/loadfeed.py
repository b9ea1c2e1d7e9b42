"""What a load tells while it runs: a line of JSON for each request, and one line on a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import BinaryIO

from sparktui.commands.endpoint import STDOUT, unwritable
from sparktui.commands.loadtable import progress_line
from sparktui.host.loadrun import Progress
from sparktui.schema.codec import dumps
from sparktui.schema.records import RequestRow
from sparktui.schema.text import printable

_STATUS_S = 1.0
_WIDTH = 80  # of a terminal that doesn't tell


class Rows:
    """Writes each row as it comes. A file that takes no more doesn't end the load; a reader that has gone
    does."""

    def __init__(self, target: str | None, stop: asyncio.Event) -> None:
        self._target = target
        self._stop = stop
        self._file: BinaryIO | None = None
        self._problem: OSError | None = None

    def __enter__(self) -> Rows:
        """Raises Usage."""
        try:
            if self._target == STDOUT:
                self._file = sys.stdout.buffer
            elif self._target is not None:
                self._file = Path(self._target).open("wb")
        except OSError as exc:
            raise unwritable(str(self._target), exc) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None and self._target != STDOUT:
            with contextlib.suppress(OSError):  # what could not be written has been noticed
                self._file.close()

    def write(self, row: RequestRow) -> None:
        """One line."""
        if self._file is None or self._problem is not None:
            return
        try:
            self._file.write(dumps(row) + b"\n")
            self._file.flush()
        except BrokenPipeError as exc:
            self._problem = exc
            self._stop.set()
        except OSError as exc:
            self._problem = exc

    def check(self) -> None:
        """Whether all rows were written. Raises Usage, BrokenPipeError."""
        if isinstance(self._problem, BrokenPipeError):
            raise self._problem
        if self._problem is not None:
            raise unwritable(str(self._target), self._problem)


class Status:
    """One line on stderr, rewritten once a second; none where that is no terminal, or one that can't."""

    def __init__(self, seconds: float, *, shown: bool) -> None:
        self._seconds = seconds
        self._shown = shown and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._at = 0.0

    def __enter__(self) -> Status:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown and self._at:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def show(self, progress: Progress) -> None:
        """Called 5 times a second."""
        if not self._shown or monotonic() - self._at < _STATUS_S:
            return
        self._at = monotonic()
        text, room = printable(progress_line(progress, self._seconds)), self._room()
        text = text if len(text) <= room else text[: room - 1] + "…"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def _room(self) -> int:
        """Characters of a line that doesn't wrap: a wrapped one could not be wiped."""
        try:
            return (os.get_terminal_size(sys.stderr.fileno()).columns or _WIDTH) - 1
        except OSError:
            return _WIDTH - 1

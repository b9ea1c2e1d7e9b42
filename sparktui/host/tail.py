"""server.log as it grows: bytes to the boot reader, lines to a ring for screens."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from sparktui.bootlog.lines import Line
from sparktui.bootlog.reader import BootReader
from sparktui.schema.live import Expectation, Finding, Silence

RING = 10_000
_CHUNK = 1 << 20
_WORDS = 300  # characters


class LogRing:
    """The last lines, numbered from 1 over the whole of server.log."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=RING)
        self.count = 0

    def add(self, text: str) -> None:
        self._lines.append(text)
        self.count += 1

    def after(self, cursor: int, most: int = 1000) -> tuple[int, tuple[str, ...]]:
        """Number of the first line and the lines that follow the first ``cursor`` lines, as far as kept."""
        first = max(cursor, self.count - len(self._lines))
        skip = first - (self.count - len(self._lines))
        return first + 1, tuple(list(self._lines)[skip : skip + most])


class Tail:
    """One boot's part of the log, from ``offset`` bytes on; its first line is number ``lines_before`` + 1."""

    def __init__(self, path: Path, ring: LogRing, offset: int, lines_before: int, reader: BootReader) -> None:
        self._path = path
        self._ring = ring
        self._offset = offset
        self._before = lines_before
        self._last_words = ""
        self.reader = reader

    def poll(self) -> None:
        """Read what is new. A log that can't be read now is read later."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                while data := file.read(_CHUNK):
                    self._offset += len(data)
                    self._take(self.reader.feed(data, monotonic()))
        except OSError:
            return

    def finish(self) -> None:
        """The server has ended: its unfinished last line too."""
        self.poll()
        self._take(self.reader.flush(monotonic()))

    def _take(self, lines: list[Line]) -> None:
        for line in lines:
            self._ring.add(line.text)
            if words := line.message.strip():
                self._last_words = words[:_WORDS]

    def new_findings(self) -> tuple[Finding, ...]:
        """Those not returned before, with line numbers of server.log."""
        return tuple(self._numbered(finding) for finding in self.reader.new_findings())

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._numbered(finding) for finding in self.reader.findings)

    @property
    def expected(self) -> tuple[Expectation, ...]:
        """With line numbers of server.log."""
        return tuple(
            dataclasses.replace(e, line=e.line + self._before if e.line else 0) for e in self.reader.expected
        )

    def silence(self, quiet_s: Mapping[str, float]) -> Silence | None:
        """That nothing has been printed for a while, in a boot that isn't over."""
        return self.reader.silence(monotonic(), quiet_s)

    def root_cause(self) -> str | None:
        """The first real error of a failed boot."""
        return self.reader.root_cause

    def last_words(self) -> str:
        """The last line that says something, for a server that ended without an error in the log."""
        return self._last_words

    def _numbered(self, finding: Finding) -> Finding:
        """A finding that no single line states has line 0, in any log."""
        return dataclasses.replace(finding, line=finding.line + self._before if finding.line else 0)

"""What happened, numbered and kept: events.jsonl, and a pulse for those who follow."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from pathlib import Path
from typing import Any, Literal

from sparktui.rundir import read_events
from sparktui.schema.codec import dumps
from sparktui.schema.live import Event, Finding
from sparktui.schema.text import printable

Kind = Literal["server", "phase", "finding", "load", "experiment", "verdict", "note", "host"]
Level = Literal["info", "warning", "error"]


class Pulse:
    """Wakes everyone who waits."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def beat(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self, timeout_s: float) -> None:
        """Until the next beat, or so long at most."""
        try:
            await asyncio.wait_for(self._event.wait(), timeout_s)
        except TimeoutError:
            return


class Journal:
    """Append-only. A new host goes on counting where the last one stopped."""

    def __init__(self, path: Path) -> None:
        self.pulse = Pulse()
        self.events = read_events(path)
        cut_short = path.exists() and not path.read_bytes().endswith(b"\n")
        self._file = path.open("ab")
        if cut_short:
            self._file.write(b"\n")

    def add(self, kind: Kind, text: str, level: Level = "info", data: dict[str, Any] | None = None) -> Event:
        """One more event, on disk before anyone sees it."""
        safe = printable(text, keep="\n")
        event = Event(len(self.events) + 1, time.time(), kind, level, safe, data or {})
        self._file.write(dumps(event) + b"\n")
        self._file.flush()
        self.events.append(event)
        self.pulse.beat()
        return event

    def add_finding(self, finding: Finding) -> Event:
        """What a log line or a reading means; a warning when it is above a note."""
        quiet = finding.severity in ("note", "harmless")
        level: Level = "error" if finding.severity == "boot fails" else "info" if quiet else "warning"
        where = f"log line {finding.line}: " if finding.line else ""
        return self.add("finding", where + finding.text, level, dataclasses.asdict(finding))

    def close(self) -> None:
        self._file.close()

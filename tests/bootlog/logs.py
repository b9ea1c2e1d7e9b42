"""Recorded logs for the tests of this room."""

from __future__ import annotations

from pathlib import Path

from sparktui.bootlog.lines import Line, LineSplitter
from sparktui.bootlog.reader import BootReader

LOGS = Path(__file__).parent.parent / "fixtures" / "logs"


def log_bytes(name: str) -> bytes:
    return (LOGS / name).read_bytes()


def log_lines(name: str) -> list[Line]:
    splitter = LineSplitter()
    return splitter.feed(log_bytes(name)) + splitter.flush()


def read_log(name: str, chunk: int = 997) -> BootReader:
    """A reader that saw the whole log in chunks, a tenth of a second apart."""
    data, reader, t = log_bytes(name), BootReader(100.0), 100.0
    for start in range(0, len(data), chunk):
        reader.feed(data[start : start + chunk], t)
        t += 0.1
    reader.flush(t)
    return reader


def line(message: str, number: int = 1) -> Line:
    return Line(number, message, message=message)

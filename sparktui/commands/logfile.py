"""A log file or standard input as chunks of bytes, in bounded memory; gzip is unpacked."""

from __future__ import annotations

import contextlib
import gzip
import signal
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from sparktui.commands.launch import Usage

STDIN = "-"
_CHUNK = 256 * 1024  # bytes
_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def title(name: str) -> str:
    """What messages call it."""
    return "standard input" if name == STDIN else name


def chunks(name: str) -> Iterator[bytes]:
    """The bytes of a file, or of standard input for ``-``: to its end or to Ctrl-C.

    Raises Usage, which names the file, for one that can't be read, is empty or isn't text.
    """
    try:
        if name == STDIN:
            with _ctrl_c() as interrupt:
                yield from _checked(name, _until(interrupt, _read(sys.stdin.buffer)))
        else:
            with Path(name).open("rb") as file:
                yield from _checked(name, _read(file))
    except (OSError, EOFError, zlib.error) as exc:
        why = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise Usage(f"{title(name)}: {why}") from None


def _read(file: BinaryIO) -> Iterator[bytes]:
    """What is there, without waiting for more. A pipe can't be rewound, so its first bytes are peeked at."""
    peek, read = getattr(file, "peek", None), getattr(file, "read1", file.read)
    if peek is not None and peek(2)[:2] == _GZIP:
        read = gzip.GzipFile(fileobj=file, mode="rb").read1
    while data := read(_CHUNK):
        yield data


class _Interrupt:
    """Ctrl-C ends the waiting for bytes; at another moment it is remembered. The second one is meant."""

    def __init__(self) -> None:
        self.asked = False
        self.waiting = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        if self.waiting or again:
            raise KeyboardInterrupt


@contextlib.contextmanager
def _ctrl_c() -> Iterator[_Interrupt]:
    interrupt, before = _Interrupt(), signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, or somebody else's
        yield interrupt
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)


def _until(interrupt: _Interrupt, data: Iterator[bytes]) -> Iterator[bytes]:
    while not interrupt.asked:
        interrupt.waiting = True
        try:
            chunk = next(data, b"")
        except KeyboardInterrupt:
            return
        finally:
            interrupt.waiting = False
        if not chunk:
            return
        yield chunk


def _checked(name: str, data: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks; raises Usage when there are none, or when the first looks like no text."""
    first = next(data, b"")
    if not first:
        raise Usage(f"{title(name)}: empty")
    if first.startswith(_UTF16):
        raise Usage(f"{title(name)}: UTF-16 text; convert it to UTF-8: iconv -f UTF-16 -t UTF-8")
    if _is_binary(first):
        raise Usage(f"{title(name)}: not a text file")
    yield first
    yield from data


def _is_binary(data: bytes) -> bool:
    """Many characters that no text has. A few are normal in a log: escapes, characters cut apart.

    A log that was emptied while its writer went on begins with zeros, so these alone don't tell.
    """
    text = data.lstrip(b"\0").decode("utf-8", "replace")
    strange = sum(char == "\ufffd" or (char < " " and char not in "\t\n\r\x1b\b\f") for char in text)
    return strange > 0.1 * len(text)

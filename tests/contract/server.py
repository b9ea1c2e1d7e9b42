"""One vLLM server process, real or not: its output as it comes, its processes, its end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from sparktui.bootlog.lines import Line, LineSplitter
from tests.support import until

READY = "Application startup complete."


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: generous ones where a real engine boots on a busy machine."""

    boot: float
    stop: float
    answer: float


@dataclass(eq=False)
class Server:
    """A started server. Both outputs go to one pipe, a thread keeps what comes."""

    process: subprocess.Popen[bytes]
    port: int
    limits: Limits
    key: str | None = None
    _raw: bytearray = field(default_factory=bytearray)
    _reader: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def raw(self) -> bytes:
        """All that it wrote so far."""
        return bytes(self._raw)

    @property
    def lines(self) -> list[Line]:
        splitter = LineSplitter()
        return splitter.feed(self.raw) + splitter.flush()

    def line(self, text: str, seconds: float | None = None) -> Line:
        """The first line with ``text``, waiting for it."""
        found = until(lambda: self._find(text), seconds or self.limits.answer, f"a line with {text!r}")
        assert found is not None
        return found

    def wait_until_ready(self) -> None:
        until(self._is_ready, self.limits.boot, "ready")

    def members(self) -> list[psutil.Process]:
        """What runs of it: everything in its process group, also when the parent is gone."""
        return [process for process in psutil.process_iter() if alive(process) and self._owns(process.pid)]

    def child(self, name: str) -> psutil.Process:
        """The process of it whose title begins with ``name``, such as "VLLM::EngineCore"."""
        (found,) = [process for process in self.members() if title(process).startswith(name)]
        return found

    def exit_code(self, seconds: float | None = None) -> int:
        """Waits for the end: minus the signal's number when one killed it."""
        return self.process.wait(self.limits.stop if seconds is None else seconds)

    def output(self) -> str:
        """Everything it wrote, once every holder of the pipe is gone."""
        assert self._reader is not None
        self._reader.join(self.limits.stop)
        assert not self._reader.is_alive(), "somebody still holds its output"
        return self.raw.decode()

    def end(self) -> None:
        """Kill what is left of it, by pid, and wait until all of it is gone."""
        for process in self.members():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.wait(self.limits.stop)
        until(lambda: not self.members(), self.limits.stop, "everything gone")

    def _owns(self, pid: int) -> bool:
        with contextlib.suppress(ProcessLookupError):
            return os.getpgid(pid) == self.process.pid
        return False

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, f"it ended: {self.raw[-4000:].decode()}"
        if READY.encode() not in self._raw:
            return False
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(self.url + "/health", timeout=self.limits.answer).status_code == 200
        return False

    def _find(self, text: str) -> Line | None:
        return next((line for line in self.lines if text in line.text), None)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as pipe:
            while data := os.read(pipe.fileno(), 65536):
                self._raw += data


def start(
    argv: list[str], port: int, limits: Limits, *, env: Mapping[str, str], key: str | None, cwd: Path
) -> Server:
    """In a session of its own, with default signals, as sparktui starts servers."""
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, **env}, cwd=cwd, start_new_session=True,
    )  # fmt: skip
    return Server(process, port, limits, key)


def alive(process: psutil.Process) -> bool:
    """Whether it runs: a zombie does not."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def title(process: psutil.Process) -> str:
    """What the process calls itself; empty when it is gone."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def timed(action: Callable[[], object]) -> float:
    """Seconds that ``action`` took."""
    begin = time.monotonic()
    action()
    return time.monotonic() - begin

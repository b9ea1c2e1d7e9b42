"""Real processes for the tests of this room, each killed at the end of its test."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from sparktui.schema.records import ProcessRef
from sparktui.server.process import alive, reference, session_members

T = TypeVar("T")
PATIENCE_S = 15.0

# A leader says "up" when its signals are set. INT and TERM are handlers, set even where they came ignored.
POLITE = "signal.signal(signal.SIGINT, lambda *_: sys.exit(0))"
IGNORES_INT = "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_DFL)"
IGNORES_BOTH = "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)"
_BEGIN = "import os, signal, subprocess, sys, time\n"
_WAIT = "\nprint('up', flush=True)\nwhile True: time.sleep(60)\n"


def until(condition: Callable[[], T], what: str) -> T:
    """The first true value of ``condition``; an AssertionError when patience ends."""
    give_up = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < give_up, f"waited in vain: {what}"
        time.sleep(0.01)
    return value


def child_of(code: str, *, own_session: bool = False) -> str:
    """Code for a leader: starts a child that runs ``code``, and says its pid once it is up."""
    program = repr(_BEGIN + code + _WAIT)
    return (
        f"child = subprocess.Popen([sys.executable, '-I', '-S', '-c', {program}],"
        f" stdout=subprocess.PIPE, start_new_session={own_session})\n"
        "child.stdout.readline()\nprint(child.pid, flush=True)\n"
    )


class Leader:
    """A server's process: leader of its own session."""

    def __init__(self, code: str) -> None:
        argv = [sys.executable, "-I", "-S", "-c", _BEGIN + code + _WAIT]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
        found = reference(self.process.pid)
        assert found is not None
        self.ref = found
        self.told = self._lines()

    def _lines(self) -> list[str]:
        """What it said before "up"."""
        assert self.process.stdout is not None
        lines: list[str] = []
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
            assert ready, "it said nothing"
            line = os.read(self.process.stdout.fileno(), 4096).decode()
            assert line, "it ended"
            lines += line.split()
            if lines[-1] == "up":
                return lines[:-1]

    def reap(self) -> None:
        self.process.poll()

    def kill(self) -> None:
        """SIGKILL, and its status collected."""
        self.process.kill()
        self.process.wait(PATIENCE_S)


class Nursery:
    """Starts leaders; ``close`` kills them, their sessions and every child they told of."""

    def __init__(self) -> None:
        self._leaders: list[Leader] = []
        self._others: list[ProcessRef] = []

    def lead(self, code: str) -> Leader:
        leader = Leader(code)
        self._leaders.append(leader)
        return leader

    def child(self, leader: Leader) -> ProcessRef:
        """The child that this leader told of."""
        found = reference(int(leader.told[-1]))
        assert found is not None
        return self.adopt(found)

    def adopt(self, process: ProcessRef) -> ProcessRef:
        self._others.append(process)
        return process

    def close(self) -> None:
        for leader in self._leaders:
            self._others += session_members(leader.ref)
        for process in self._others:
            if alive(process):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
        for leader in self._leaders:
            leader.process.kill()
            leader.process.wait(PATIENCE_S)
            assert leader.process.stdout is not None
            leader.process.stdout.close()

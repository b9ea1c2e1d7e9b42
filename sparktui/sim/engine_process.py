"""The engine's process: does nothing, but lives and dies as vLLM's ``VLLM::EngineCore`` does.

It stays in the server's process group and survives the server's SIGKILL, so that whoever stops servers has
orphans to find. It ends itself after ten minutes as an orphan: real ones stay for good.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import NoReturn

_PR_SET_NAME = 15
_NAME = b"VLLM::EngineCore"  # the kernel keeps 15 bytes
_ORPHAN_LIFE_S = 600.0
_ORPHAN_POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class EngineProcess:
    """``death_fd`` reads end-of-file when the process ends, however it ends."""

    pid: int
    death_fd: int

    def exited(self) -> bool:
        """Whether it has ended. Does not reap it."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def kill(self) -> None:
        """Kill and reap; no error when it is gone."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if not self.exited():
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def spawn(close_fds: tuple[int, ...] = ()) -> EngineProcess:
    """Fork it. Call before any thread or event loop exists. ``close_fds``: what it must not keep open."""
    read_end, write_end = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(write_end)
        return EngineProcess(pid, read_end)
    try:
        for fd in (read_end, *close_fds):
            os.close(fd)
        _run(parent)
    finally:
        os._exit(1)


def _run(parent: int) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:  # inherited, as by vLLM under nohup-like shells
            signal.signal(number, signal.SIG_DFL)
    _set_name()
    orphaned_at: float | None = None
    while True:
        time.sleep(_ORPHAN_POLL_S)
        if os.getppid() == parent:
            continue
        orphaned_at = orphaned_at or time.monotonic()
        if time.monotonic() - orphaned_at > _ORPHAN_LIFE_S:
            os._exit(0)


def _set_name() -> None:
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_NAME, ctypes.c_char_p(_NAME), 0, 0, 0)

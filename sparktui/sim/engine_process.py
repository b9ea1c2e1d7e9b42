"""The engines' processes: they do nothing, but live and die as vLLM's ``VLLM::EngineCore`` does.

They stay in the server's process group and survive the server's SIGKILL, so that whoever stops servers has
orphans to find. Each ends itself after ten minutes as an orphan: real ones stay for good.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_PR_SET_NAME = 15
_ORPHAN_LIFE_S = 600.0
_ORPHAN_POLL_S = 2.0
_SECONDS = struct.Struct("d")


@dataclass(slots=True)
class EngineProcess:
    """``death_fd`` reads end-of-file when the engine stops, however it does. ``lingers``: see ``linger``."""

    pid: int
    death_fd: int
    control_fd: int
    lingers: bool = False
    _reaped: bool = False  # its number may be somebody else's by now

    def linger(self, seconds: float) -> None:
        """Outlive the next signal by this long: memory that comes back late. 0: not at all."""
        self.lingers = seconds > 0
        with contextlib.suppress(OSError):
            os.write(self.control_fd, _SECONDS.pack(max(seconds, 0.0)))

    def exited(self) -> bool:
        """Whether it has ended. Does not reap it."""
        if self._reaped:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def kill(self) -> None:
        """Kill it, as a crash does; nothing when it was reaped."""
        if not self._reaped:
            os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill and reap, or tell it to go when it lingers; nothing when it was reaped."""
        if self._reaped:
            return
        if self.exited() or not self.lingers:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._reaped = True
        else:
            os.kill(self.pid, signal.SIGTERM)


def spawn(names: Sequence[str], close_fds: tuple[int, ...] = ()) -> list[EngineProcess]:
    """Fork one for each name. Call before any thread or event loop exists. ``close_fds``: not theirs."""
    engines: list[EngineProcess] = []
    for name in names:
        others = [fd for engine in engines for fd in (engine.death_fd, engine.control_fd)]
        engines.append(_fork(f"VLLM::{name}", (*close_fds, *others)))
    return engines


def _fork(title: str, close_fds: tuple[int, ...]) -> EngineProcess:
    death, dying = os.pipe()
    control, told = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(dying)
        os.close(control)
        return EngineProcess(pid, death, told)
    try:
        for fd in (death, told, *close_fds):
            os.close(fd)
        _run(title, parent, dying, control)
    finally:
        os._exit(1)


def _run(title: str, parent: int, dying: int, control: int) -> NoReturn:
    os.set_blocking(control, False)

    def leave(*_: object) -> NoReturn:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # it is going: only SIGKILL is faster
        os.close(dying)
        time.sleep(_told_s(control))
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:  # inherited, as by vLLM under nohup-like shells
            signal.signal(number, leave)
    _set_name(title.encode())
    orphaned_at: float | None = None
    while True:
        time.sleep(_ORPHAN_POLL_S)
        if os.getppid() == parent:
            continue
        orphaned_at = orphaned_at or time.monotonic()
        if time.monotonic() - orphaned_at > _ORPHAN_LIFE_S:
            os._exit(0)


def _told_s(control: int) -> float:
    """The last number of seconds that the server wrote; 0 when none."""
    try:
        data = os.read(control, 4096)
    except BlockingIOError:
        return 0.0
    whole = len(data) // _SECONDS.size * _SECONDS.size
    return float(_SECONDS.unpack(data[whole - _SECONDS.size : whole])[0]) if whole else 0.0


def _set_name(title: bytes) -> None:
    """As setproctitle does it: the kernel keeps 15 bytes of the name, and the whole as command line."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_NAME, ctypes.c_char_p(title), 0, 0, 0)
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start, arg_end
        if 0 < len(title) < end - start:
            ctypes.memmove(start, title.ljust(end - start, b"\0"), end - start)

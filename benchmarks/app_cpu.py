"""CPU of the app drawing a loaded run at 2 Hz: python benchmarks/app_cpu.py [SECONDS, default 20].

The app runs on a pseudo-terminal of each size against the stand-in with one stream; its CPU time is read from
the kernel, beside a calibration loop of 1e6 additions (about 25 ms on an idle core of 2020).
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import psutil

SIZES = ((80, 24), (160, 50))
WARM_UP_S = 12.0


def drain(fd: int, seconds: float) -> int:
    """Read what the terminal is sent, so long; how many bytes."""
    until, count = time.monotonic() + seconds, 0
    while (left := until - time.monotonic()) > 0:
        if select.select([fd], [], [], min(left, 0.2))[0]:
            count += len(os.read(fd, 1 << 16))
    return count


def measure(size: tuple[int, int], seconds: float, state: str) -> tuple[float, float]:
    """Percent of a core, and kilobytes a second to the terminal."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ |= {"XDG_STATE_HOME": state, "TERM": "xterm-256color"}
        os.execv(sys.executable, [sys.executable, "-m", "sparktui", "demo"])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    drain(fd, WARM_UP_S)
    process = psutil.Process(pid)
    before = sum(process.cpu_times()[:2])
    sent = drain(fd, seconds)
    used = sum(process.cpu_times()[:2]) - before
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(fd)
    return used / seconds * 100, sent / seconds / 1000


def calibration() -> float:
    """Milliseconds of CPU for a million additions."""
    begun, total = time.process_time(), 0
    for i in range(1_000_000):
        total += i
    return (time.process_time() - begun) * 1000


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    print(f"calibration {calibration():.0f} ms, load average {os.getloadavg()[0]:.1f}")
    for size in SIZES:
        with tempfile.TemporaryDirectory() as state:
            cpu, sent = measure(size, seconds, state)
            subprocess.run(
                [sys.executable, "-m", "sparktui", "stop", "--all"],
                env={**os.environ, "XDG_STATE_HOME": state}, check=True, capture_output=True,
            )  # fmt: skip
        print(f"{size[0]}x{size[1]}: {cpu:.1f} % of a core, {sent:.1f} kB/s to the terminal")


if __name__ == "__main__":
    main()

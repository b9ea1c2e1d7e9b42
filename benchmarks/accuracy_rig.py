"""The processes of load_accuracy.py: stand-in, client and app, each on its core."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from sim_pacing import realtime, start

from sparktui.schema.launch import LoadSpec
from sparktui.schema.messages import LoadConfig, LoadTarget, LoadTotals, from_line, to_line

HERE = Path(__file__).parent
MODEL = "pacing"
SERVER_PRIORITY, CLIENT_PRIORITY = 60, 50
NOISE = ("--sim-noise", "0.01", "--sim-restart-noise", "0.02")  # steps of engines drift apart


@dataclass(frozen=True, slots=True)
class Cores:
    """``app``: None without one. ``realtime``: server and client before everything else on their cores."""

    server: int
    client: int
    app: int | None
    realtime: bool


@dataclass(slots=True)
class StandIn:
    """A server with its clock in ``clock``."""

    url: str
    clock: Path

    def generated(self) -> tuple[float, float]:
        """generation_tokens_total over all engines, and the middle of the scrape."""
        begun = time.monotonic()
        with urllib.request.urlopen(self.url + "/metrics", timeout=30) as response:
            page = response.read().decode()
        middle = (begun + time.monotonic()) / 2
        name = "vllm:generation_tokens_total{"
        return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(name)), middle


@contextmanager
def stand_in(cores: Cores, engines: int) -> Iterator[StandIn]:
    """Steps of 20 ms at any load, ``engines`` of them taking turns."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Path(folder) / "clock.jsonl"
        flags = (*NOISE, "--sim-clock", str(clock), "--data-parallel-size", str(engines))
        server, port = start(cores.server, Path(folder), *flags)
        try:
            if cores.realtime:
                realtime(server.pid, SERVER_PRIORITY)
            yield StandIn(f"http://127.0.0.1:{port}", clock)
        finally:
            os.killpg(server.pid, signal.SIGKILL)  # its engines too
            server.wait()


@dataclass(slots=True)
class Client:
    """A client's process. ``totals``: what sparktui's told on the way."""

    name: str
    process: subprocess.Popen[bytes]
    records: Path
    totals: list[LoadTotals] = field(default_factory=list)
    _said: threading.Event = field(default_factory=threading.Event)
    _reader: threading.Thread | None = None

    def tell(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def listen(self) -> None:
        """Read what it says in a thread: a full pipe would stop it."""
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if self.name == "sparktui" and isinstance(message := from_line(line), LoadTotals):
                self.totals.append(message)
            self._said.set()
        self._said.set()

    def ready(self) -> None:
        """Wait for its first word. Raises RuntimeError when it ended instead."""
        self._said.wait(180)
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}")

    def begin(self, streams: int) -> None:
        self.tell(to_line(LoadTarget(streams)) if self.name == "sparktui" else b"go\n")

    def drain(self) -> None:
        """Let it end what it has begun, and wait for its records."""
        if self.name == "sparktui":
            self.tell(to_line(LoadTarget(0)))
            until = time.monotonic() + 60
            while self.totals[-1].in_flight and time.monotonic() < until:
                time.sleep(0.05)
        else:
            self.tell(b"drain\n")
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(120)

    def cpu_s(self) -> float:
        """CPU seconds, all threads."""
        return float(sum(psutil.Process(self.process.pid).cpu_times()[:2]))


@contextmanager
def client(
    name: str, python: str, server: StandIn, cores: Cores, streams: int, tokens: int
) -> Iterator[Client]:
    """A client that is ready to begin."""
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records.json"
        argv = ["taskset", "-c", str(cores.client), python, str(HERE / "accuracy_clients.py"), name]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([*argv, str(records)], **pipes)  # type: ignore[call-overload]
        made = Client(name, process, records)
        try:
            made.listen()
            made.tell(_job(name, server.url, streams, tokens))
            made.ready()
            if cores.realtime:
                realtime(process.pid, CLIENT_PRIORITY)
            yield made
        finally:
            process.kill()
            process.wait()


def _job(name: str, url: str, streams: int, tokens: int) -> bytes:
    if name != "sparktui":
        job = {"url": url, "model": MODEL, "streams": streams, "tokens": tokens}
        return json.dumps(job).encode() + b"\n"
    spec = LoadSpec(input_tokens=200, output_tokens=tokens)
    return to_line(LoadConfig(url, MODEL, spec, nonce=os.urandom(4).hex()))


@contextmanager
def app(core: int | None) -> Iterator[None]:
    """``sparktui demo`` drawing on a terminal of 160x50, with whatever it starts, on that core."""
    if core is None:
        yield
        return
    with tempfile.TemporaryDirectory() as state:
        pid, fd = pty.fork()
        if pid == 0:
            os.sched_setaffinity(0, {core})
            os.environ |= {"XDG_STATE_HOME": state, "TERM": "xterm-256color"}
            os.execv(sys.executable, [sys.executable, "-m", "sparktui", "demo"])
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        stop = threading.Event()
        reader = threading.Thread(target=_swallow, args=(fd, stop), daemon=True)
        reader.start()
        try:
            yield
        finally:
            stop.set()
            reader.join()
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(fd)
            _stop_runs(state)


def _stop_runs(state: str) -> None:
    argv: Sequence[str] = (sys.executable, "-m", "sparktui", "stop", "--all")
    environment = {**os.environ, "XDG_STATE_HOME": state}
    subprocess.run(argv, env=environment, check=False, capture_output=True, timeout=60)


def _swallow(fd: int, stop: threading.Event) -> None:
    while not stop.is_set():
        if select.select([fd], [], [], 0.2)[0]:
            try:
                os.read(fd, 1 << 16)
            except OSError:  # it ended
                return

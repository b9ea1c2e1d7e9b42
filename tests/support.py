"""Running sparktui as its users do: subprocesses, a state directory of their own, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil

from sparktui.host.experiment import Experiment
from sparktui.rundir import RunDir
from sparktui.schema.codec import SchemaError, loads
from sparktui.schema.live import Event
from sparktui.schema.records import RunRecord

T = TypeVar("T")

FAST = """\
name: fast
runner: sim
model: test/stand-in
port: {port}
args: {{max-num-seqs: 8, sim-boot-seconds: {boot}{args}}}
speculative: {{model: test/draft, num_speculative_tokens: 3}}
variants: {{k2: {{speculative: {{num_speculative_tokens: 2}}}}}}
load: {{input_tokens: 64, output_tokens: 32}}
measure: {{settle_s: 0.6, batch_s: 0.4, min_window_s: {window}, max_window_s: {window}, stall_s: 3}}
ready_timeout_s: {ready}
"""


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], T], seconds: float = 60.0, what: str = "") -> T:
    """The first true value of ``condition``; fails with ``what`` when the time is up."""
    give_up = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {seconds:g} s: {what or condition}")
        time.sleep(0.03)
    return value


@dataclass
class Home:
    """A user's surroundings: state, config, working folder, all of the test's own."""

    path: Path
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in ("VLLM_API_KEY", "HF_TOKEN")}
        folders = {f"XDG_{kind}_HOME": str(self.path / kind.lower()) for kind in ("STATE", "CONFIG")}
        return {**kept, **folders, "SPARKTUI_TEST_HOME": str(self.path), **self.extra}

    def profile(
        self, *, boot: float = 1.0, window: float = 1.6, args: str = "", ready: float = 60.0, text: str = FAST
    ) -> Path:
        """A profile of the stand-in that measures in seconds, on a free port."""
        path = self.path / "fast.yaml"
        extra = f", {args}" if args else ""
        path.write_text(text.format(port=free_port(), boot=boot, window=window, args=extra, ready=ready))
        return path

    def start(self, *args: object) -> subprocess.Popen[str]:
        """``sparktui ARGS``, both outputs in one pipe."""
        return subprocess.Popen(
            [sys.executable, "-m", "sparktui", *map(str, args)],
            cwd=self.path, env=self.env, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, *args: object, timeout: float = 120.0) -> tuple[int, str]:
        """Exit code and output of ``sparktui ARGS``."""
        process = self.start(*args)
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            raise AssertionError(f"sparktui {args} did not end within {timeout:g} s:\n{output}") from None
        return process.returncode, output

    def runs(self) -> list[RunDir]:
        folder = self.path / "state" / "sparktui" / "runs"
        return [RunDir(path) for path in sorted(folder.glob("[!.]*"))]

    def only_run(self) -> RunDir:
        (run,) = self.runs()
        return run

    def processes(self) -> list[psutil.Process]:
        """Every living process that was started from here, however far removed."""
        marker = f"SPARKTUI_TEST_HOME={self.path}".encode()
        return [p for p in psutil.process_iter() if _environment_has(p, marker)]

    def servers(self) -> list[psutil.Process]:
        """Server processes, the stand-in's engine among them."""
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                line = process.cmdline()
                if "serve" in line or (line[:1] and line[0].startswith("VLLM::")):
                    found.append(process)
        return found

    def end_everything(self) -> list[str]:
        """Kill what is left; the command lines of that."""
        left = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                left.append(" ".join(process.cmdline()))
                process.kill()
        return left


def _environment_has(process: psutil.Process, marker: bytes) -> bool:
    try:
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return marker in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    except (OSError, psutil.Error):
        return False


def record(run: RunDir) -> RunRecord:
    return run.record()


def events(run: RunDir) -> list[Event]:
    """events.jsonl so far."""
    if not run.events.exists():
        return []
    return [loads(Event, line) for line in run.events.read_bytes().splitlines()]


def experiment(run: RunDir) -> Experiment | None:
    """experiment.json, if it has been written."""
    try:
        return loads(Experiment, run.experiment.read_bytes())
    except (OSError, SchemaError):
        return None


def at_stage(run: RunDir, stage: str, start: int = 0) -> bool:
    """Whether the experiment has reached this stage of this start."""
    state = experiment(run)
    return state is not None and state.stage == stage and state.start == start


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@contextlib.contextmanager
def home_in(path: Path) -> Iterator[Home]:
    """A Home that leaves no process behind, and fails the test that left one."""
    home = Home(path)
    try:
        yield home
    finally:
        home.end_everything()

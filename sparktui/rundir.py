"""The folder of a run: what lies where, atomic writes, the socket's address. Used by host and clients."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

import platformdirs

from sparktui.schema.codec import SCHEMA_VERSION, SchemaError, dumps, loads
from sparktui.schema.launch import Plan
from sparktui.schema.live import Event
from sparktui.schema.records import Report, RunRecord

_SOCKET = "host.sock"
T = TypeVar("T")


class RunError(Exception):
    """A run that isn't there, is ambiguous, or can't be read."""


def runs_dir() -> Path:
    """Where runs live: ``sparktui/runs`` in the user's state directory (XDG_STATE_HOME)."""
    return platformdirs.user_state_path("sparktui") / "runs"


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` so that a reader sees the old bytes or the new, whatever is killed when."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


class RunDir:
    """One run's folder. Every file in it is readable by its owner only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "server.log"
        self.host_log = path / "host.log"
        self.events = path / "events.jsonl"
        self.samples = path / "samples.jsonl"
        self.rows = path / "rows.jsonl"
        self.experiment = path / "experiment.json"

    @property
    def id(self) -> str:
        return self.path.name

    @classmethod
    def create(cls, kind: Literal["run", "ab"], plan: Plan) -> RunDir:
        """A new folder with run.json and plan.json. Raises RunError when the disk says no."""
        stamp = time.strftime("%m%d-%H%M%S")
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", plan.profile)[:40].strip(".-") or "run"
        path = runs_dir() / f"{name}-{stamp}-{secrets.token_hex(4)}"
        new = cls(path.with_name(f".{path.name}"))  # complete before anyone can see it
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            new.path.mkdir(mode=0o700)
            new.write_plan(plan)
            new.write(RunRecord(SCHEMA_VERSION, path.name, kind, plan.profile, time.time()))
            new.path.rename(path)
        except OSError as exc:
            raise RunError(f"cannot create the run folder: {exc}") from None
        return cls(path)

    def record(self) -> RunRecord:
        """run.json. Raises RunError."""
        return self._read("run.json", RunRecord)

    def write(self, record: RunRecord) -> None:
        write_atomically(self.path / "run.json", dumps(record, indent=True))

    def plan(self) -> Plan:
        """plan.json. Raises RunError."""
        return self._read("plan.json", Plan)

    def write_plan(self, plan: Plan) -> None:
        write_atomically(self.path / "plan.json", dumps(plan, indent=True))

    def report(self) -> Report | None:
        """report.json, when the run has one. Raises RunError on a broken one."""
        return self._read("report.json", Report) if (self.path / "report.json").exists() else None

    def write_report(self, report: Report) -> None:
        write_atomically(self.path / "report.json", dumps(report, indent=True))

    def _read(self, name: str, cls: type[T]) -> T:
        path = self.path / name
        try:
            return loads(cls, path.read_bytes())
        except (OSError, SchemaError) as exc:
            raise RunError(f"{path}: {exc}") from None

    @contextlib.contextmanager
    def socket_address(self) -> Iterator[str]:
        """A path to bind or connect to. An AF_UNIX path holds 107 bytes: on Linux the folder is named
        through a descriptor, so that deep state directories work too."""
        if not sys.platform.startswith("linux"):
            yield str(self.path / _SOCKET)
            return
        fd = os.open(self.path, os.O_PATH | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{fd}/{_SOCKET}"
        finally:
            os.close(fd)

    def remove_socket(self) -> None:
        (self.path / _SOCKET).unlink(missing_ok=True)

    def lock_host(self) -> int | None:
        """Become this run's only host: a descriptor to keep open, or None when another host lives."""
        fd = os.open(self.path / "host.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            os.close(fd)
            if exc.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            return None
        return fd

    def has_host(self) -> bool:
        """Whether a host lives (it holds the lock as long as it does)."""
        fd = self.lock_host()
        if fd is not None:
            os.close(fd)
        return fd is None


def read_events(path: Path) -> list[Event]:
    """events.jsonl, as far as it is whole: a kill may cut the last line short."""
    found: list[Event] = []
    if path.exists():
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(SchemaError):
                found.append(loads(Event, line))
    return found


def all_runs() -> list[RunDir]:
    """Every run folder, the last touched first."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for path in runs_dir().iterdir():
            if path.name.startswith("."):
                continue
            with contextlib.suppress(FileNotFoundError):  # it vanished meanwhile
                found.append((path.stat().st_mtime, path))
    return [RunDir(path) for _, path in sorted(found, reverse=True)]


def find_run(name: str) -> RunDir:
    """A run by its id or the beginning of it; ``last`` is the newest. Raises RunError."""
    runs = all_runs()
    if name == "last" and runs:
        return max(runs, key=lambda run: run.record().created)
    found = [run for run in runs if run.id == name] or [run for run in runs if run.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise RunError(f"{name!r} could be {', '.join(run.id for run in found)}")
    raise RunError(f"no run {name!r}; `sparktui ps --all` lists them")

"""What serves an LLM on this machine beside our own runs: vLLM processes, containers, scripts in a folder.

Nothing here starts, stops or changes anything. Each function ends within about three seconds.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import orjson
import psutil

from sparktui.client.vllm_argv import DEFAULT_PORT, Asked, after_program, asked, safe, serve_arguments
from sparktui.rundir import RunError, all_runs

_SCAN_S = 3.0
_SAME_START_S = 1.5  # the kernel counts from boot, and the boot time is rounded
_MOST_CONTAINERS = 500
_MOST_ENTRIES = 20_000
_MOST_SCRIPTS = 200
_SCRIPT_BYTES = 256 << 10
_AFTER_MARK = 4000  # characters of a script in which its arguments are looked for

_CGROUP_CONTAINER = re.compile(r"(?:^|[/-])([0-9a-f]{64})(?:\.scope)?$", re.M)
_PUBLISHED = re.compile(r"(?:(.+):)?(\d+)(?:-\d+)?->(\d+)(?:-(\d+))?/tcp")
_NO_ENGINE = re.compile(r"cannot connect to the docker daemon|failed to connect to the docker API", re.I)
_COMMENT = re.compile(r"^\s*#.*$", re.M)
_JOINED_SHELL = re.compile(r"\\\r?\n|[\"']")  # continued lines, quotes
_JOINED_YAML = re.compile(r"\\\r?\n|\n\s*-\s+|[\"'\[\],]")  # and lists
_MARKS = (
    re.compile(r"\bvllm[ \t]+serve\b"),
    re.compile(r"\bvllm\.entrypoints[\w.]*"),
    re.compile(r"\bvllm/vllm-openai\S*"),
)


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A vLLM API server that runs. Texts are printable and short; an empty one is not known."""

    kind: Literal["process", "container"]
    title: str
    model: str
    host: str  # address that it is bound to
    port: int | None  # on this machine; None: not published
    user: str = ""
    pid: int | None = None
    start_time: float | None = None  # unix seconds
    ours: str | None = None  # id of the run that owns it
    container: str = ""  # id (64 hex digits) of the container that it is, or runs in
    name: str = ""
    image: str = ""
    ports: str = ""  # as ``docker ps`` tells them

    @property
    def url(self) -> str:
        """Base URL for clients on this machine; empty when there is no way in."""
        if self.port is None:
            return ""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Containers:
    """``problem`` says why docker could not be asked; empty when it could."""

    servers: tuple[FoundServer, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class FoundScript:
    """A file that starts vLLM. ``title`` is one printable line without secrets."""

    path: Path
    title: str


def vllm_processes() -> tuple[FoundServer, ...]:
    """API servers of vLLM and of our stand-in, by pid. Engines and workers are no servers of their own, nor
    is a node with ``--headless``. Processes that this user may not read are left out."""
    until = monotonic() + _SCAN_S
    found: dict[int, tuple[psutil.Process, list[str]]] = {}
    for process in psutil.process_iter():
        if monotonic() > until:
            break
        with contextlib.suppress(psutil.Error, OSError):
            args = serve_arguments(process.cmdline())
            if args is not None and "--headless" not in args and not process.name().startswith("VLLM::"):
                found[process.pid] = (process, args)
    owners = _our_servers() if found else {}
    servers = []
    for process, args in found.values():
        with contextlib.suppress(psutil.Error, OSError):
            # a forked worker has its parent's command line until it gives itself a title
            if not any(parent.pid in found for parent in process.parents()):
                servers.append(_described(process, args, owners))
    return tuple(sorted(servers, key=lambda server: server.pid or 0))


def _described(
    process: psutil.Process, args: Sequence[str], owners: dict[int, list[tuple[float, str]]]
) -> FoundServer:
    wanted = asked(args)
    host, port = wanted.host, wanted.port
    if port is None:
        bound, port = _listens(process)
        host = host or bound
    started = process.create_time()
    ours = (run for start, run in owners.get(process.pid, ()) if abs(start - started) < _SAME_START_S)
    return FoundServer(
        kind="process",
        title=f"{wanted.model or 'vLLM'} on port {port} (pid {process.pid})",
        model=wanted.model,
        host=host or "0.0.0.0",
        port=port,
        user=safe(process.username()),
        pid=process.pid,
        start_time=started,
        ours=next(ours, None),
        container=_container_of(process.pid),
    )


def _listens(process: psutil.Process) -> tuple[str, int]:
    """Where it listens: vLLM's own port if that is one of several, else the lowest."""
    listening: list[tuple[str, int]] = []
    with contextlib.suppress(psutil.Error, OSError):
        for connection in process.net_connections("tcp"):
            local: tuple[Any, ...] = tuple(connection.laddr)
            if connection.status == psutil.CONN_LISTEN and len(local) >= 2:
                listening.append((str(local[0]), int(local[1])))
    return min(listening, key=lambda at: (at[1] != DEFAULT_PORT, at[1]), default=("", DEFAULT_PORT))


def _our_servers() -> dict[int, list[tuple[float, str]]]:
    """Start time and run id of every process that a run has on record, by pid."""
    owners: dict[int, list[tuple[float, str]]] = {}
    with contextlib.suppress(OSError):
        for run in all_runs():
            with contextlib.suppress(RunError):
                server = run.record().server
                for process in (server.process, *server.tree) if server else ():
                    owners.setdefault(process.pid, []).append((process.start_time, run.id))
    return owners


def _container_of(pid: int) -> str:
    """Id of the container that a process runs in, from its control group (cgroups(7))."""
    try:
        found = _CGROUP_CONTAINER.search(Path(f"/proc/{pid}/cgroup").read_text("ascii", "replace"))
    except OSError:
        return ""
    return found[1] if found else ""


def containers(run: Callable[..., subprocess.CompletedProcess[bytes]] = subprocess.run) -> Containers:
    """Running containers whose image or command looks like vLLM, as ``docker ps`` tells within 3 s."""
    try:
        done = run(
            ["docker", "ps", "--no-trunc", "--format", "{{json .}}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SCAN_S,
            start_new_session=True,  # no terminal: an engine reached by ssh must not ask for a password
        )
    except FileNotFoundError:
        return Containers(problem="docker is not installed")
    except subprocess.TimeoutExpired:
        return Containers(problem=f"docker did not answer within {_SCAN_S:g} s")
    except OSError as exc:
        return Containers(problem=f"docker does not start: {safe(exc.strerror or str(exc))}")
    if done.returncode != 0:
        return Containers(problem=_refusal(done.stderr.decode("utf-8", "replace")))
    lines = islice(done.stdout.splitlines(), _MOST_CONTAINERS)
    return Containers(tuple(server for line in lines if (server := _container(line))))


def _refusal(said: str) -> str:
    if "permission denied" in said.lower():
        return "no permission to ask docker (usually: the user is not in the group docker)"
    if _NO_ENGINE.search(said):
        return "docker is installed, its engine does not run"
    first = next((line for line in said.splitlines() if line.strip()), "it failed without a word")
    return f"docker: {safe(first)}"


def _container(line: bytes) -> FoundServer | None:
    """A server from one line of ``docker ps --format '{{json .}}'``; None for anything else."""
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(entry, dict):
        return None
    told = {key: value for key, value in entry.items() if isinstance(value, str)}
    words = [word for word in re.split(r"[\s\"'\\]+", told.get("Command", "")) if word]
    args = next((after for at in range(len(words)) if (after := after_program(words[at:])) is not None), None)
    image = safe(told.get("Image", ""))
    if args is None and "vllm" not in image.lower():
        return None
    wanted = asked(words[1:], positional=False) if args is None else asked(args)
    ports = safe(told.get("Ports", ""))
    host, port = _published(ports, wanted, host_network=told.get("Networks") == "host")
    name = safe(told.get("Names", ""))
    where = f" on port {port}" if port else ""
    return FoundServer(
        kind="container",
        title=f"{wanted.model or image or 'vLLM'}{where} (container {name})",
        model=wanted.model,
        host=host,
        port=port,
        container=safe(told.get("ID", "")),
        name=name,
        image=image,
        ports=ports,
    )


def _published(ports: str, wanted: Asked, *, host_network: bool) -> tuple[str, int | None]:
    """Where the host reaches the container's server, from ``0.0.0.0:8001->8000/tcp, …``."""
    inside = wanted.port or DEFAULT_PORT
    if host_network:
        return wanted.host or "0.0.0.0", inside
    mappings = [found for part in ports.split(", ") if (found := _PUBLISHED.fullmatch(part))]
    for found in mappings:
        first, last = int(found[3]), int(found[4] or found[3])
        if first <= inside <= last:
            return (found[1] or "").strip("[]"), int(found[2]) + inside - first
    if wanted.port is None and len({found[2] for found in mappings}) == 1:  # the image has another default
        return (mappings[0][1] or "").strip("[]"), int(mappings[0][2])
    return "", None


def merged(processes: Iterable[FoundServer], found: Iterable[FoundServer]) -> tuple[FoundServer, ...]:
    """Processes and containers, without the processes that run in one of those containers."""
    boxes = tuple(found)
    ids = {box.container for box in boxes} - {""}
    return (*(server for server in processes if server.container not in ids), *boxes)


def scripts(folder: Path) -> tuple[FoundScript, ...]:
    """Shell scripts and compose files in ``folder`` that start vLLM, by name: of the first 200, the first
    256 KiB each. Empty when the folder can't be read."""
    until = monotonic() + _SCAN_S
    found = []
    for path in _script_files(folder):
        if monotonic() > until:
            break
        with contextlib.suppress(OSError), path.open("rb") as file:
            text = file.read(_SCRIPT_BYTES).decode("utf-8", "replace")
            if title := _script_title(text, shell=path.suffix == ".sh"):
                found.append(FoundScript(path, title))
    return tuple(found)


def _script_files(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(_regular(islice(entries, _MOST_ENTRIES)))
    except OSError:
        return []
    return [folder / name for name in names[:_MOST_SCRIPTS]]


def _regular(entries: Iterator[os.DirEntry[str]]) -> Iterator[str]:
    """Names of plain files: opening a pipe would wait for its writer."""
    for entry in entries:
        with contextlib.suppress(OSError):
            if entry.name.endswith((".sh", ".yml", ".yaml")) and entry.is_file():
                yield entry.name


def _script_title(text: str, *, shell: bool) -> str:
    """``vllm serve MODEL on port N``, as far as it says; empty for a file that doesn't start vLLM."""
    flat = (_JOINED_SHELL if shell else _JOINED_YAML).sub(" ", _COMMENT.sub("", text))
    for number, mark in enumerate(_MARKS):
        if found := mark.search(flat):
            after = flat[found.end() : found.end() + _AFTER_MARK]
            words = (after.partition("\n")[0] if shell else after).split()
            if number == 1 and words[:1] == ["serve"]:
                words = words[1:]
            wanted = asked(words, positional=shell or number == 0)
            what = f"vllm serve {wanted.model}" if wanted.model else " ".join(found[0].split())
            return safe(what + (f" on port {wanted.port}" if wanted.port else ""))
    return ""

"""Harmless processes with the command lines of vLLM's API server, and a stand-in for docker."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

KEY = "sk-SECRET"
_SCRIPT = """\
#!{python} -IS
import ctypes, os, signal, socket, sys
signal.alarm(120)
def title(name):
    ctypes.CDLL(None).prctl(15, ctypes.c_char_p(name), 0, 0, 0)
if "--test-listens" in sys.argv:
    sock = socket.create_server(("127.0.0.1", 0))
    print(sock.getsockname()[1], flush=True)
if "--test-forks" in sys.argv:
    child = os.fork()
    if not child:
        if "engine" in sys.argv:
            title(b"VLLM::EngineCore")
        signal.pause()
    print(child, flush=True)
print("up", flush=True)
signal.pause()
"""


class Nursery:
    """Starts them; ``close`` kills them and what they forked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[str]] = []
        self._forked: list[int] = []

    def program(self, name: str = "vllm") -> Path:
        """A script of this name that accepts any arguments, and pauses."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_SCRIPT.format(python=sys.executable), "utf-8")
        path.chmod(0o755)
        return path

    def start(self, *argv: object) -> tuple[int, list[int]]:
        """Its pid, and the numbers that it told before it was up."""
        process = subprocess.Popen(
            [str(word) for word in argv],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": ""},
        )
        self._started.append(process)
        assert process.stdout is not None
        told = []
        while (line := process.stdout.readline().strip()) != "up":
            assert line, "it ended"
            told.append(int(line))
        if "--test-forks" in argv:
            self._forked.append(told[-1])
        return process.pid, told

    def kill(self, pid: int) -> None:
        """SIGKILL to the process of this pid alone, and wait for its end."""
        process = next(started for started in self._started if started.pid == pid)
        process.kill()
        process.wait()

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        for pid in self._forked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def fake_docker(folder: Path, code: str) -> Path:
    """A program named docker that writes its argv, one word a line, beside itself and then runs Python
    ``code``. The file with the words."""
    folder.mkdir()
    told = folder / "argv"
    path = folder / "docker"
    path.write_text(
        f"#!{sys.executable} -IS\nimport signal, sys\n"
        f"open({str(told)!r}, 'w').write('\\n'.join(sys.argv[1:]))\n{code}\n",
        "utf-8",
    )
    path.chmod(0o755)
    return told

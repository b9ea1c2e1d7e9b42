"""Starting a server as a process of this machine: its own session, no terminal, output to a file."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from sparktui.schema.launch import LaunchSpec

# plain text in the log, and every line at once
_ALWAYS = {"NO_COLOR": "1", "VLLM_LOGGING_COLOR": "0", "PYTHONUNBUFFERED": "1"}


class LaunchError(Exception):
    """The server could not be started; the text says why and what to do."""


def environment(spec: LaunchSpec, inherited: Mapping[str, str]) -> dict[str, str]:
    """What the server gets: ours, the inherited, the profile's, then the secrets of env_file.

    Raises LaunchError when env_file can't be read.
    """
    secrets = _env_file(Path(spec.env_file)) if spec.env_file else {}
    return {**inherited, **_ALWAYS, **spec.env, **secrets}


def start(spec: LaunchSpec, log: Path, inherited: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Spawn ``spec.argv`` as it is, appending both outputs to ``log``. Raises LaunchError.

    The caller must not have signals ignored or blocked: children inherit that, and a server that ignores
    SIGINT can't be stopped gently.
    """
    try:
        with log.open("ab") as output:
            return subprocess.Popen(
                spec.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(spec, inherited),
                start_new_session=True,
                close_fds=True,
            )
    except FileNotFoundError:
        raise LaunchError(f"{spec.argv[0]}: no such program") from None
    except OSError as exc:
        raise LaunchError(f"{spec.argv[0]}: {exc.strerror or exc}") from None


def _env_file(path: Path) -> dict[str, str]:
    """KEY=VALUE lines; blank lines, ``#`` comments, an ``export`` before and quotes around are fine."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise LaunchError(f"env_file {path}: {exc}") from None
    values = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip().removeprefix("export ").strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip().replace("_", "a").isalnum():
            raise LaunchError(f"env_file {path}:{number}: expected NAME=value")
        values[name.strip()] = _unquoted(value.strip())
    return values


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"" else value


def reset_signals() -> None:
    """Undo dispositions and a mask inherited from a shell's background job or nohup."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def become_subreaper() -> bool:
    """Make orphans of our descendants ours (Linux's PR_SET_CHILD_SUBREAPER, prctl(2))."""
    if not sys.platform.startswith("linux"):
        return False
    pr_set_child_subreaper = 36
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(pr_set_child_subreaper, 1, 0, 0, 0) == 0)

"""``python -m sparktui.host RUN_FOLDER``: the host process, started by a client in a session of its own."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from sparktui.host.host import Host
from sparktui.rundir import RunDir, RunError
from sparktui.server.local import become_subreaper, reset_signals


def main(argv: list[str]) -> int:
    """Exit code 0 when the run ended or another host has it, 2 when the folder is no run."""
    run = RunDir(Path(argv[0]))
    lock = run.lock_host()
    if lock is None:
        return 0
    reset_signals()
    # a handler and not SIG_IGN: what is ignored here would be ignored in the server
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    become_subreaper()
    try:
        asyncio.run(Host(run).run())
    except RunError as exc:
        print(f"sparktui host: {exc}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

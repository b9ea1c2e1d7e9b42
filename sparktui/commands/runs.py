"""``ps``, ``jobs``, ``logs``, ``stop``, ``load``, ``once``: runs that go on without a terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from typing import TYPE_CHECKING

from sparktui.client.link import ENDED, HostGone, attach, follow
from sparktui.client.runs import RunInfo, adopt_unhosted, listed
from sparktui.commands.launch import Usage
from sparktui.commands.output import complain, progress_line, say, status_line
from sparktui.rundir import RunDir, RunError, find_run
from sparktui.schema.codec import dumps
from sparktui.schema.live import Snapshot
from sparktui.schema.messages import Finished, LogLines, SnapshotMessage, StopRun, Subscribe

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_NO_LOG = Subscribe(log_from=None)


def add_arguments(subparsers: Subparsers) -> None:
    """Register the commands of this module."""
    ps = subparsers.add_parser("ps", help="what runs")
    ps.add_argument("--all", action="store_true", help="ended runs too")
    ps.add_argument("--json", action="store_true")
    ps.set_defaults(run=list_runs)
    jobs = subparsers.add_parser("jobs", help="what is being measured, and how far it is")
    jobs.add_argument("--json", action="store_true")
    jobs.set_defaults(run=list_jobs)
    logs = subparsers.add_parser("logs", help="a run's server log")
    logs.add_argument("name", metavar="RUN", help="id, the beginning of it, or last")
    logs.add_argument("-f", "--follow", action="store_true", help="go on as it grows")
    logs.set_defaults(run=show_log)
    stop = subparsers.add_parser("stop", help="stop a run: load, server and all, verified")
    stop.add_argument("name", metavar="RUN", nargs="?", help="id, the beginning of it, or last")
    stop.add_argument("--all", action="store_true", help="every run that lives")
    stop.set_defaults(run=stop_runs)
    once = subparsers.add_parser("once", help="one snapshot of a run, for scripts and status lines")
    once.add_argument("name", metavar="RUN", nargs="?", default=None, help="default: the newest that lives")
    form = once.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--short", action="store_true")
    once.set_defaults(run=show_once)


def list_runs(args: argparse.Namespace) -> int:
    """0 always: an empty list is an answer."""
    adopt_unhosted()
    _print_runs([info for info in listed() if args.all or info.live], args.json)
    return 0


def list_jobs(args: argparse.Namespace) -> int:
    """Living A/Bs with their progress, in a run of their own or in one that an app watches."""
    adopt_unhosted()
    told = [(info, asyncio.run(_snapshot(info.run))) for info in listed() if info.live]
    jobs = [(info, snap) for info, snap in told if info.record.kind == "ab" or (snap and snap.experiment)]
    if args.json:
        _print_runs([info for info, _ in jobs], True)
        return 0
    if not jobs:
        say("nothing is being measured")
    for info, snapshot in jobs:
        say(f"{info.run.id}  {progress_line(snapshot) if snapshot else info.state}")
    return 0


def _print_runs(infos: list[RunInfo], as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(dumps([info.record for info in infos], indent=True) + b"\n")
        sys.stdout.buffer.flush()
        return
    if not infos:
        say("nothing runs")
    for info in infos:
        record = info.record
        server = record.server
        pid = f"pid {server.process.pid}" if server and server.ended is None else "no server"
        port = f":{server.port}" if server else ""
        since = time.strftime("%m-%d %H:%M", time.localtime(record.created))
        tail = f"  {record.reason}" if record.reason else ""
        say(f"{info.run.id}  {record.kind}  {info.state}  {port} {pid}  since {since}{tail}")


def show_log(args: argparse.Namespace) -> int:
    """Print server.log, cleaned; with --follow until the run ends. Raises RunError."""
    run = find_run(args.name)
    if args.follow and run.record().state not in ENDED:
        try:
            asyncio.run(_follow_log(run))
        except KeyboardInterrupt:
            return 130
        return 0
    try:
        with run.log.open("rb") as file:
            for line in file:
                say(line.decode("utf-8", "replace").rstrip("\r\n").rpartition("\r")[2])
    except FileNotFoundError:
        raise RunError(f"{run.id} has no log yet") from None
    return 0


async def _follow_log(run: RunDir) -> None:
    async for _, message in follow(run, Subscribe(log_from=0, snapshots=False)):
        if isinstance(message, LogLines):
            for line in message.lines:
                say(line)


def stop_runs(args: argparse.Namespace) -> int:
    """0: what was asked for is gone; 1: something is left. Raises RunError."""
    if args.all == bool(args.name):
        raise Usage("stop takes a RUN or --all")
    runs = [info.run for info in listed() if info.live] if args.all else [find_run(args.name)]
    results = [asyncio.run(_stop(run)) for run in runs]
    if not runs:
        say("nothing runs")
    return 0 if all(results) else 1


async def _stop(run: RunDir) -> bool:
    """Whether the run is over with nothing left."""
    if run.record().state in ENDED:
        say(f"{run.id}: ended before ({run.record().state})")
        return True
    asked = False
    left = ""
    async for link, message in follow(run, Subscribe(snapshots=False)):
        if link is not None and not asked:
            asked = True
            await link.send(StopRun())
        event = getattr(message, "event", None)
        if event is not None and event.text.startswith("still alive"):
            left = event.text
        if isinstance(message, Finished):
            say(f"{run.id}: {left or message.state}")
    return not left


def show_once(args: argparse.Namespace) -> int:
    """0: a snapshot; 1: nothing runs. Raises RunError."""
    adopt_unhosted()
    run = find_run(args.name) if args.name else next((i.run for i in listed() if i.live), None)
    if run is None or run.record().state in ENDED:
        complain("nothing runs" if run is None else f"{run.id} has ended")
        return 1
    snapshot = asyncio.run(_snapshot(run))
    if snapshot is None:
        complain(f"{run.id} ends just now")
        return 1
    if args.json:
        sys.stdout.buffer.write(dumps(snapshot, indent=True) + b"\n")
        sys.stdout.buffer.flush()
    else:
        say(_short(snapshot) if args.short else status_line(snapshot))
    return 0


def _short(snapshot: Snapshot) -> str:
    rate = snapshot.figures.output_tok_s
    shown = "—" if rate is None else f"{rate:.0f}"
    return f"{snapshot.server.state} {shown} tok/s c={snapshot.load.in_flight}"


async def _snapshot(run: RunDir) -> Snapshot | None:
    try:
        link = await attach(run, _NO_LOG)
    except HostGone:
        return None
    try:
        while True:
            message = await link.receive()
            if isinstance(message, SnapshotMessage):
                return message.snapshot
            if isinstance(message, Finished):
                return None
    except HostGone:
        return None
    finally:
        await link.close()

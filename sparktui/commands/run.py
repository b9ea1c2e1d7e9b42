"""``sparktui run``: launch a profile and watch it, one status line a second; events as they come."""

from __future__ import annotations

import argparse
import asyncio
import sys
from time import monotonic
from typing import TYPE_CHECKING

from sparktui.client.link import follow
from sparktui.commands.launch import EVERYTHING, concurrencies, created, detach, run_plan
from sparktui.commands.output import complain, event_lines, say, status_line
from sparktui.rundir import RunDir
from sparktui.schema.messages import EventMessage, Finished, Problem, SnapshotMessage

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_STATUS_S = 1.0


def add_arguments(subparsers: Subparsers) -> None:
    """Register ``run``."""
    parser = subparsers.add_parser("run", help="launch a profile and watch it")
    parser.add_argument("profile", metavar="PROFILE[:VARIANT]")
    parser.add_argument("-c", dest="loads", type=concurrencies, default=(), metavar="N",
                        help="load from the start: this many streams")  # fmt: skip
    parser.add_argument("--plain", action="store_true", help="plain lines (the only form so far)")
    parser.add_argument("--exact", action="store_true", help="without the flags that observe: adds")
    parser.add_argument("--detach", action="store_true", help="return at once; `sparktui ps` finds it")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0: it was stopped in order; 1: it failed. Raises ProfileError, Missing."""
    plan = run_plan(args.profile, args.loads[:1], exact=args.exact)
    folder = created("run", plan)
    arm = plan.arms[plan.first]
    say(f"{folder.id}: {arm.variant} on port {arm.port}")
    if args.detach:
        asyncio.run(detach(folder))
        return 0
    return watch(folder)


def watch(folder: RunDir) -> int:
    """Lines until the run ends. 0: stopped in order; 1: failed; 130: interrupted, and the run goes on."""
    try:
        finished = asyncio.run(_watch(folder))
    except KeyboardInterrupt:
        say()
        complain(f"the server goes on: sparktui ps · sparktui logs {folder.id} · sparktui stop {folder.id}")
        return 130
    if finished.state == "failed":
        complain(finished.reason)
        return 1
    return 0


async def _watch(folder: RunDir) -> Finished:
    shown = 0.0
    async for _, message in follow(folder, EVERYTHING):
        if isinstance(message, EventMessage):
            for line in event_lines(message.event):
                say(line)
        elif isinstance(message, SnapshotMessage) and monotonic() - shown >= _STATUS_S:
            shown = monotonic()
            say(status_line(message.snapshot))
        elif isinstance(message, Problem):
            complain(message.error)
        elif isinstance(message, Finished):
            return message
    sys.exit("unreachable: follow ends with Finished")

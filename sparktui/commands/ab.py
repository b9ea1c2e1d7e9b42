"""``sparktui ab`` and ``sparktui demo``: the A/B headless, as a client of its host."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from sparktui.client.link import follow
from sparktui.commands.launch import EVERYTHING, Usage, ab_plan, concurrencies, created, detach
from sparktui.commands.output import complain, event_lines, progress_line, say
from sparktui.compare import report as reporting
from sparktui.rundir import RunDir
from sparktui.schema.codec import dumps, from_plain
from sparktui.schema.live import Event, Snapshot
from sparktui.schema.messages import EventMessage, Finished, Problem, SnapshotMessage
from sparktui.schema.records import Report

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_PROGRESS_S = 5.0


def add_arguments(subparsers: Subparsers) -> None:
    """Register ``ab`` and ``demo``."""
    ab = subparsers.add_parser(
        "ab", help="does speculation pay? boots both arms, measures, says so with an interval"
    )
    ab.add_argument("profile", metavar="PROFILE[:A,B]", help="variants A,B; off,on unless named")
    ab.add_argument(
        "-c", dest="loads", type=concurrencies, metavar="1,8,32",
        help="concurrencies to measure in each boot (default: 1 and max_num_seqs)",
    )  # fmt: skip
    ab.add_argument("--rounds", type=_rounds, default=1, help="1: quick (A B); 2: A B B A; more: more pairs")
    ab.add_argument("--after", choices=("original", "winner", "last", "stop"), default="original",
                    help="what serves at the end (original: what served before, here nothing)")  # fmt: skip
    ab.add_argument("--exact", action="store_true", help="without the flags that the profile's observe: adds")
    _add_output(ab)
    ab.set_defaults(run=run_ab)
    demo = subparsers.add_parser("demo", help="the A/B on the stand-in server: no GPU, no model, a minute")
    _add_output(demo)
    demo.add_argument("--plain", action="store_true", help="plain text on a terminal too: boot to verdict")
    demo.set_defaults(run=run_demo, profile="demo", loads=(1,), rounds=1, after="original", exact=False)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--detach", action="store_true", help="return at once; `sparktui jobs` finds it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    parser.add_argument("--md", type=Path, metavar="FILE", help="write the report as Markdown")


def _rounds(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 20:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 20")
    return int(text)


def run_demo(args: argparse.Namespace) -> int:
    """The app on a terminal, else the A/B in plain text."""
    if args.plain or args.detach or args.json or args.md or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return run_ab(args)
    from sparktui.commands.app import launch, show

    return show(launch("demo", (1,)))


def run_ab(args: argparse.Namespace) -> int:
    """0: a verdict; 1: none. Raises ProfileError, Usage, Missing."""
    for path in (args.json, args.md):
        if path is not None and not path.absolute().parent.is_dir():
            raise Usage(f"{path}: no such folder")
    plan = ab_plan(args.profile, args.loads, rounds=args.rounds, after=args.after, exact=args.exact)
    run = created("ab", plan)
    arms = " against ".join(spec.variant for spec in plan.arms)
    say(f"{run.id}: {plan.profile}, {arms}, c={','.join(map(str, plan.loads))}")
    if args.detach:
        asyncio.run(detach(run))
        say(f"running on its own: sparktui jobs, sparktui logs {run.id}, sparktui stop {run.id}")
        return 0
    try:
        finished = asyncio.run(_follow(run))
    except KeyboardInterrupt:
        say()
        complain(f"the A/B goes on: sparktui jobs · sparktui logs {run.id} · sparktui stop {run.id}")
        return 130
    return _conclude(finished, args)


async def _follow(run: RunDir) -> Finished:
    shown = monotonic()
    async for _, message in follow(run, EVERYTHING):
        if isinstance(message, EventMessage):
            _tell(message.event)
            shown = monotonic()
            if message.event.kind == "verdict":
                report = from_plain(Report, message.event.data["report"])
                if report.after.startswith("Serving"):  # the host stays with the server: --after
                    return Finished("done", report.outcome, report)
        elif isinstance(message, SnapshotMessage) and monotonic() - shown >= _PROGRESS_S:
            shown = monotonic()
            _progress(message.snapshot)
        elif isinstance(message, Problem):
            complain(message.error)
        elif isinstance(message, Finished):
            return message
    raise AssertionError("follow ends with Finished")


def _tell(event: Event) -> None:
    if event.kind == "verdict":
        return  # said at the end, with the figures
    for line in event_lines(event):
        say(line)


def _progress(snapshot: Snapshot) -> None:
    say(f"           {progress_line(snapshot)}")


def _conclude(finished: Finished, args: argparse.Namespace) -> int:
    report = finished.report
    if report is None:
        complain(f"no verdict: {finished.reason or finished.state}")
        return 1
    say()
    for line in reporting.lines(report):
        say(line)
    _write(report, args)
    return 0 if reporting.decided(report) and report.outcome == "done" else 1


def _write(report: Report, args: argparse.Namespace) -> None:
    if args.json is not None:
        args.json.write_bytes(dumps(report, indent=True) + b"\n")
    if args.md is not None:
        args.md.write_text(reporting.markdown(report), "utf-8")

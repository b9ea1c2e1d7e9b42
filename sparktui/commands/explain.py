"""``sparktui explain`` and ``sparktui diff``: what a boot log of vLLM says, and how two of them differ."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING

from sparktui.bootlog.difference import difference
from sparktui.bootlog.explain import Asked, LogBoot, NoBoot, find_boot
from sparktui.commands.explained import as_json, lines, plain
from sparktui.commands.launch import Usage, all_rules
from sparktui.commands.logfile import STDIN, chunks, title
from sparktui.commands.output import say
from sparktui.profile import decode, find
from sparktui.profile.argv import launch_spec
from sparktui.profile.variants import default_variant

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_arguments(subparsers: Subparsers) -> None:
    """Register ``explain`` and ``diff``."""
    explaining = subparsers.add_parser("explain", help="what a boot log of vLLM says")
    explaining.add_argument("log", metavar="LOG", help="a file (gzip too), or - for standard input")
    explaining.add_argument("--json", action="store_true", help="as JSON")
    explaining.add_argument(
        "--profile", metavar="PROFILE[:VARIANT]",
        help="hold the log against this command line and the lines that it expects",
    )  # fmt: skip
    explaining.add_argument(
        "--expect", action="append", default=[], metavar="TEXT", help="a text that the log should hold"
    )
    explaining.add_argument("--boot", type=_counted, metavar="N", help="of several boots (default: the last)")
    explaining.add_argument("--all", action="store_true", help="harmless findings too, notes in full")
    explaining.set_defaults(run=explain)
    differing = subparsers.add_parser("diff", help="what B's boot has that A's has not")
    for side in ("a", "b"):
        differing.add_argument(side, metavar=f"LOG_{side.upper()}", help="a file, or - for standard input")
    for side in ("a", "b"):
        differing.add_argument(
            f"--boot-{side}", type=_counted, metavar="N", help="of several boots (default: the last)"
        )
    differing.add_argument("--json", action="store_true", help="as JSON")
    differing.set_defaults(run=diff)


def _counted(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def explain(args: argparse.Namespace) -> int:
    """0: good; 1: the boot failed, something would have failed it, or an expected line is missing.
    Raises ProfileError, Usage."""
    boot = _found(args.log, _asked(args), args.boot)
    if args.json:
        say(json.dumps(as_json(boot), indent=2))
    else:
        for line in lines(boot, everything=args.all):
            say(line)
    report = boot.report
    fatal = not report.ready and any(f.severity == "boot fails" for f in report.findings)
    failed = report.root_cause is not None or fatal
    return 1 if failed or any(not expected.met for expected in report.expected) else 0


def diff(args: argparse.Namespace) -> int:
    """0, alike or not: it is a report. Raises Usage."""
    if args.a == STDIN and args.b == STDIN:
        raise Usage("only one of the two logs can be standard input")
    asked = Asked(rules=all_rules())
    boots = _found(args.a, asked, args.boot_a), _found(args.b, asked, args.boot_b)
    found = difference(boots[0].report, boots[1].report)
    if args.json:
        say(json.dumps(plain(found), indent=2))
        return 0
    for line in found.text:
        say(line)
    return 0


def _asked(args: argparse.Namespace) -> Asked:
    rules = all_rules()
    if not args.profile:
        return Asked(args.expect, rules=rules)
    name, variant = find.split_target(args.profile)
    profile = decode.load(find.find(name))
    spec = launch_spec(profile, variant or default_variant(profile), environ=os.environ)
    return Asked((*spec.expect, *args.expect), spec.argv, spec.speculating, rules)


def _found(log: str, asked: Asked, boot: int | None) -> LogBoot:
    try:
        return find_boot(chunks(log), asked, boot)
    except NoBoot as exc:
        raise Usage(f"{title(log)}: {exc}") from None

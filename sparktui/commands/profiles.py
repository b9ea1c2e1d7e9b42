"""``sparktui list`` and ``sparktui show``: which profiles there are, and the exact command of one."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any

from sparktui.profile import argv, decode, find, render
from sparktui.profile.decode import Entry
from sparktui.profile.variants import default_variant, variant_names
from sparktui.schema.text import printable

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_ABOUT_WIDTH = 60


def add_arguments(subparsers: Subparsers) -> None:
    """Register ``list`` and ``show``; each sets ``run`` to a function of the parsed arguments."""
    listing = subparsers.add_parser("list", help="the profiles that a name can find")
    listing.add_argument("--json", action="store_true", help="as JSON, errors included")
    listing.set_defaults(run=list_profiles)
    showing = subparsers.add_parser("show", help="the exact command of a profile")
    showing.add_argument("profile", metavar="PROFILE[:VARIANT]")
    showing.add_argument("--as", dest="form", choices=("argv", "shell"), default="shell")
    showing.add_argument("--exact", action="store_true", help="without the flags that sparktui adds")
    showing.set_defaults(run=show)


def list_profiles(args: argparse.Namespace) -> int:
    """Print every profile, and after them what is wrong with the broken ones. 0: a list was printed."""
    entries = find.all_profiles()
    if args.json:
        print(json.dumps([_as_json(entry) for entry in entries], indent=2))
        return 0
    rows = [_row(entry) for entry in entries if entry.profile is not None]
    for line in _table([("NAME", "RUNNER", "VARIANTS", "ABOUT"), *rows]) if rows else ["no profiles"]:
        print(line)
    errors = [entry.error for entry in entries if entry.error is not None]
    if errors:
        print("\nbroken:")
    for error in errors:
        print("\n".join(f"  ✖ {problem}" for problem in error.problems))
    return 0


def show(args: argparse.Namespace) -> int:
    """Print the command of one variant. Raises ProfileError for a wrong name or profile."""
    name, variant = find.split_target(args.profile)
    profile = decode.load(find.find(name))
    chosen = variant or default_variant(profile)
    spec = argv.launch_spec(profile, chosen, exact=args.exact, environ=os.environ)
    print(render.as_argv(spec) if args.form == "argv" else render.as_shell(spec))
    return 0


def _as_json(entry: Entry) -> dict[str, Any]:
    profile = entry.profile
    return {
        "name": entry.name,
        "path": str(entry.path),
        "about": profile.about if profile else None,
        "runner": profile.runner if profile else None,
        "model": profile.model if profile else None,
        "variants": list(variant_names(profile)) if profile else [],
        "error": str(entry.error) if entry.error else None,
    }


def _row(entry: Entry) -> tuple[str, ...]:
    profile = entry.profile
    assert profile is not None
    about = printable(" ".join(profile.about.split()))
    short = about if len(about) <= _ABOUT_WIDTH else about[: _ABOUT_WIDTH - 1] + "…"
    return (printable(entry.name), profile.runner, " ".join(variant_names(profile)), short)


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]

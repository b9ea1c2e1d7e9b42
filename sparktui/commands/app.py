"""``sparktui``, ``sparktui PROFILE``, ``sparktui attach URL``: the app, and what it asks of the rest."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sparktui.client import discover, history
from sparktui.client.link import start_host
from sparktui.client.runs import RunInfo, adopt_unhosted, listed
from sparktui.commands.launch import Missing, Usage, checked, created, run_plan, watch_plan
from sparktui.commands.past import past_text
from sparktui.host.relaunch import Relaunch
from sparktui.profile import decode, find, render
from sparktui.profile.argv import launch_spec
from sparktui.profile.decode import Entry
from sparktui.profile.model import Profile
from sparktui.profile.problems import ProfileError
from sparktui.profile.variants import default_variant, variant_names
from sparktui.rundir import RunDir, RunError
from sparktui.schema.codec import SCHEMA_VERSION
from sparktui.schema.launch import LaunchSpec, LoadSpec, MeasureSpec, Plan
from sparktui.schema.text import printable
from sparktui.ui.backend import CannotDo, Card, SheetFacts

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_DEMO_LOAD = (1,)  # a newcomer sees life at once


def add_arguments(subparsers: Subparsers) -> None:
    """Register ``open`` (what a bare profile name means) and ``attach``."""
    opening = subparsers.add_parser("open")
    opening.add_argument("profile", nargs="?", metavar="PROFILE[:VARIANT]")
    opening.set_defaults(run=open_app)
    attach = subparsers.add_parser("attach")
    attach.add_argument("url", metavar="URL", help="a server that runs already; it is never stopped")
    attach.set_defaults(run=attach_app)


def open_app(args: argparse.Namespace) -> int:
    """The picker, or a profile launched at once. Raises ProfileError, Missing, Usage."""
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        raise Usage("the app needs a terminal; `sparktui run PROFILE --plain` and `sparktui ab` do not")
    run = launch(args.profile) if args.profile else None
    return show(run)


def attach_app(args: argparse.Namespace) -> int:
    """The app on a server that runs already. Raises Missing when none answers."""
    run = attach_to(args.url)
    if sys.stdout.isatty() and sys.stdin.isatty():
        return show(run)
    from sparktui.commands.run import watch

    return watch(run)


def show(run: RunDir | None) -> int:
    """Run the app until the user leaves."""
    from sparktui.ui.app import SparkApp

    return SparkApp(AppBackend(), run).run() or 0


def launch(target: str, loads: tuple[int, ...] = ()) -> RunDir:
    """A run with a host that boots the target. Raises ProfileError, Usage, Missing."""
    return _hosted(run_plan(target, loads))


def _hosted(plan: Plan) -> RunDir:
    run = created("run", plan)
    start_host(run)
    return run


def attach_to(url: str) -> RunDir:
    """A run that watches a server which somebody else started. Raises Usage, Missing."""
    parts = urlsplit(url if "//" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/") or parts.username:
        raise Usage(f"{url!r} is not a base URL like http://127.0.0.1:8000")
    host, port = parts.hostname, parts.port or 80
    model = asyncio.run(_served_model(f"http://{host}:{port}"))
    spec = LaunchSpec("attached", "as it runs", "attach", (), host, port, model, speculating=False)
    plan = Plan(SCHEMA_VERSION, f"attached-{port}", "", (spec,), LoadSpec(), MeasureSpec())
    return _hosted(plan)


async def _served_model(url: str) -> str:
    from sparktui.server import ready

    async with ready.client() as http:
        try:
            models = await ready.served_models(http, url)
        except ready.NotReady as exc:
            raise Missing(f"{url}: {exc}") from None
    if not models:
        raise Missing(f"{url} serves no model")
    return models[0]


class AppBackend:
    """See sparktui.ui.backend.Backend. Called in threads: holds no state but the cards' meanings."""

    def cards(self) -> tuple[Card, ...]:
        adopt_unhosted()
        known = history.histories()
        runs = [_run_card(info) for info in listed() if info.live]
        found = discover.merged(discover.vllm_processes(), discover.containers().servers)
        servers = [_server_card(s) for s in found if s.kind == "process" and s.ours is None and s.url]
        containers = [_container_card(s) for s in found if s.kind == "container"]
        scripts = [_script_card(s) for s in discover.scripts(Path.cwd())]
        profiles = [_profile_card(entry, known) for entry in find.all_profiles()]
        return (*runs, *servers, *containers, *profiles, *scripts)

    def open(self, card: Card, variant: str | None) -> RunDir:
        try:
            if card.kind == "run":
                return next(info.run for info in listed() if info.run.id == card.key)
            if card.kind == "server":
                return attach_to(card.key)
            if card.kind == "profile":
                loads = _DEMO_LOAD if card.title == "demo" else ()
                return _hosted(watch_plan(decode.load(Path(card.key)), variant, loads))
        except StopIteration:
            raise CannotDo(f"{card.title} has ended") from None
        except (ProfileError, Missing, Usage, RunError) as exc:
            raise CannotDo(str(exc)) from None
        raise CannotDo(f"a {card.kind} can't be opened yet")

    def relaunch(self, run: RunDir) -> RunDir:
        try:
            plan = checked(run.plan())
            _may_relaunch(plan)
            return _hosted(plan)
        except (Missing, Usage, RunError) as exc:
            raise CannotDo(str(exc)) from None

    def past(self, run: RunDir) -> str:
        try:
            return past_text(history.history_of(run.plan().profile))
        except RunError as exc:
            raise CannotDo(str(exc)) from None

    def boot_phases(self, run: RunDir) -> dict[str, dict[str, float]]:
        try:
            return history.history_of(run.plan().profile).phase_s
        except RunError as exc:
            raise CannotDo(str(exc)) from None

    def sheet(self, run: RunDir, arms: tuple[int, int], loads: tuple[int, ...]) -> SheetFacts:
        try:
            plan = run.plan()
        except RunError as exc:
            raise CannotDo(str(exc)) from None
        names = [plan.arms[arm].variant for arm in arms]
        known = history.history_of(plan.profile)
        return SheetFacts(history.expected_minutes(known, names, loads, plan.measure, 1))


def _may_relaunch(plan: Plan) -> None:
    """Raises CannotDo for a command line that has failed twice in the same way."""
    spec = plan.arms[plan.first]
    failed = history.history_of(plan.profile).failed.get(spec.variant, ())
    same = (boot.cause for boot in failed if boot.argv == spec.argv)
    blocked = Relaunch({spec.variant: same}).blocked(spec.variant)
    if blocked is not None:
        raise CannotDo(
            f"{blocked} Edit the profile, or put right what it needs, and start it from the list (R)."
        )


def _run_card(info: RunInfo) -> Card:
    server = info.record.server
    port = f" :{server.port}" if server else ""
    return Card(
        "run", info.run.id, info.run.id, f"{info.state}{port}", f"{info.record.kind} of {info.record.profile}"
    )


def _server_card(server: discover.FoundServer) -> Card:
    return Card("server", server.url, server.title, f":{server.port} pid {server.pid}", f"user {server.user}")


def _container_card(server: discover.FoundServer) -> Card:
    return Card("container", server.container, server.title, server.ports, server.image)


def _script_card(script: discover.FoundScript) -> Card:
    return Card("script", str(script.path), script.path.name, "script", script.title)


def _profile_card(entry: Entry, known: dict[str, history.ProfileHistory]) -> Card:
    profile = entry.profile
    if profile is None or entry.error is not None:
        return Card("broken", str(entry.path), printable(entry.name), "broken", str(entry.error))
    past = known.get(profile.name)
    boots = past.boot_s if past else {}
    boot = ", ".join(f"{variant} {times[-1]:.0f} s" for variant, times in boots.items() if times)
    return Card(
        "profile",
        str(entry.path),
        printable(profile.name),
        profile.runner,
        printable(" ".join(profile.about.split())),
        tuple(variant_names(profile)),
        _command(profile),
        (past.last_verdict or "") if past else "",
        boot,
    )


def _command(profile: Profile) -> str:
    try:
        spec = launch_spec(profile, default_variant(profile), environ=os.environ)
    except ProfileError as exc:
        return str(exc)
    return render.as_shell(spec)

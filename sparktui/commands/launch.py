"""From a command line's PROFILE[:VARIANTS] to a run with a host: shared by run, ab and demo."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
from collections.abc import Sequence
from typing import Literal

from sparktui.bootlog.rules import Rule, RuleError, load_user_rules, own_rules, rules_folder
from sparktui.client.history import history_of
from sparktui.client.link import attach
from sparktui.profile.argv import launch_spec
from sparktui.profile.argv import plan as make_plan
from sparktui.profile.decode import load
from sparktui.profile.find import find, split_target
from sparktui.profile.model import Profile
from sparktui.profile.variants import default_variant, variant_names
from sparktui.rundir import RunDir
from sparktui.schema.launch import Plan
from sparktui.schema.messages import Subscribe

After = Literal["original", "winner", "last", "stop"]
MAX_STREAMS = 4096


class Missing(Exception):
    """A program that is needed is not there (exit code 3)."""


class Usage(ValueError):
    """The command line asks for what can't be (exit code 2)."""


def concurrencies(text: str) -> tuple[int, ...]:
    """argparse type: ``1,8,32``."""
    try:
        values = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers like 1,8,32") from None
    if not all(1 <= value <= MAX_STREAMS for value in values) or len(set(values)) != len(values):
        raise argparse.ArgumentTypeError(f"each of {text!r} must be 1 to {MAX_STREAMS}, once")
    return values


def run_plan(target: str, loads: Sequence[int] = (), *, exact: bool = False) -> Plan:
    """One variant to launch and watch. Raises ProfileError, Usage, Missing."""
    profile, named = _profile(target)
    if len(named) > 1:
        raise Usage(f"run takes one variant, not {len(named)}; `sparktui ab {target}` compares")
    return watch_plan(profile, named[0] if named else None, loads, exact=exact)


def watch_plan(
    profile: Profile, variant: str | None, loads: Sequence[int] = (), *, exact: bool = False
) -> Plan:
    """The plan of a watched run: it boots ``variant``, and can be switched to every other.
    Raises ProfileError, Missing."""
    chosen = variant or default_variant(profile)
    launch_spec(profile, chosen, exact=exact, environ=os.environ)  # a wrong name is said with a did-you-mean
    names = list(variant_names(profile))
    plan = make_plan(profile, names, loads, exact=exact, environ=os.environ)
    return checked(dataclasses.replace(plan, first=names.index(chosen)))


def ab_plan(target: str, loads: Sequence[int] | None, *, rounds: int, after: After, exact: bool) -> Plan:
    """Two variants to compare, off and on unless named; loads 1 and max_num_seqs unless given.
    Raises ProfileError, Usage, Missing."""
    profile, named = _profile(target)
    if not named and profile.speculative is None:
        raise Usage(f"{profile.name} has no speculative: key; name two variants: {profile.name}:A,B")
    variants = named or ("off", "on")
    if len(variants) != 2 or variants[0] == variants[1]:
        raise Usage(f"an A/B needs two variants, not {', '.join(variants)}")
    plan = make_plan(
        profile, variants, loads or (), rounds=rounds, after=after, exact=exact, environ=os.environ
    )
    if not loads:
        most = plan.arms[0].max_num_seqs
        loads = (1, most) if most and 1 < most <= MAX_STREAMS else (1,)
        plan = make_plan(
            profile, variants, loads, rounds=rounds, after=after, exact=exact, environ=os.environ
        )
    return checked(plan)


def _profile(target: str) -> tuple[Profile, tuple[str, ...]]:
    name, variants = split_target(target)
    named = tuple(part.strip() for part in variants.split(",")) if variants else ()
    return load(find(name)), named


def all_rules() -> tuple[Rule, ...]:
    """The shipped rules for boot logs with the user's own. Raises Usage when these can't be used."""
    try:
        return load_user_rules(rules_folder())
    except RuleError as exc:
        raise Usage(str(exc)) from None


def _check_own_rules() -> None:
    """Raises Usage. The shipped rules aren't read for it: that takes longer than all else before a launch."""
    try:
        own_rules(rules_folder())
    except RuleError as exc:
        raise Usage(str(exc)) from None


def checked(plan: Plan) -> Plan:
    """The plan, when each arm's program is there and the user's rules can be read, with what earlier boots
    have shown. Raises Missing, Usage."""
    _check_own_rules()
    for spec in plan.arms:
        program = spec.argv[0] if spec.argv else ""
        if program and shutil.which(program) is None:
            raise Missing(f"{program}: no such program (vllm_bin in {plan.profile_path})")
    quiet = history_of(plan.profile).quiet_s
    arms = (dataclasses.replace(spec, quiet_s=quiet.get(spec.variant, {})) for spec in plan.arms)
    return dataclasses.replace(plan, arms=tuple(arms))


EVERYTHING = Subscribe(events_from=0, log_from=None, snapshots=True)


def created(kind: Literal["run", "ab"], plan: Plan) -> RunDir:
    """A run folder for the plan; its host is started by attaching."""
    return RunDir.create(kind, plan)


async def detach(run: RunDir) -> None:
    """Wait until the run has a host, and leave it to it."""
    link = await attach(run, EVERYTHING)
    await link.close()

"""A profile's variant to the command line, environment and plan that a host can carry out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from sparktui.profile.model import Args, ArgValue, JsonObject, Profile
from sparktui.profile.problems import profile_error
from sparktui.profile.variants import ResolvedVariant, resolve
from sparktui.schema.codec import SCHEMA_VERSION
from sparktui.schema.launch import LaunchSpec, Plan

_HUMAN_INT = re.compile(r"([0-9]{1,18})([kmgtKMGT]?)|([0-9]{1,9}\.[0-9]{1,9})([kmgt])")


def launch_spec(
    profile: Profile, variant: str, *, exact: bool = False, environ: Mapping[str, str]
) -> LaunchSpec:
    """The server that a variant starts. ``exact`` leaves out what sparktui adds; ``environ`` gives HOME.

    Raises ProfileError for an unknown variant and for runners that nothing can start yet.
    """
    if profile.runner not in ("local", "sim"):
        line = profile.lines.get("runner", 0)
        raise profile_error(f"runner {profile.runner} is not supported yet", profile.path, line)
    arm = resolve(profile, variant)
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    model = _at_home(arm.model, home)
    argv = [*_head(profile, arm, home), model, *_own_tokens(profile, arm)]
    added = [] if exact else list(_observe_tokens(profile, arm))
    return LaunchSpec(
        profile=profile.name,
        variant=variant,
        runner=profile.runner,
        argv=(*argv, *added),
        host=profile.host,
        port=profile.port,
        model=_served_name(arm.args) or model,
        speculating=arm.speculating,
        env=arm.env,
        env_file=_beside(profile, profile.env_file, home) if profile.env_file else None,
        added=tuple(range(len(argv), len(argv) + len(added))),
        expected_version=arm.vllm,
        max_num_seqs=human_int(arm.args.get("max-num-seqs")),
        ready_timeout_s=profile.ready_timeout_s,
        expect=tuple(_expected(profile, arm)),
    )


def plan(
    profile: Profile,
    variants: Sequence[str],
    loads: Sequence[int] = (),
    *,
    rounds: int = 1,
    after: Literal["original", "winner", "last", "stop"] = "original",
    exact: bool = False,
    environ: Mapping[str, str],
) -> Plan:
    """Everything a host needs for these variants at these concurrencies. Raises ProfileError."""
    if not variants:
        raise profile_error("no variant to run", profile.path)
    if rounds < 1 or any(load < 1 for load in loads):
        raise profile_error("rounds and loads count from 1", profile.path)
    return Plan(
        schema=SCHEMA_VERSION,
        profile=profile.name,
        profile_path=profile.path,
        arms=tuple(launch_spec(profile, name, exact=exact, environ=environ) for name in variants),
        load=profile.load,
        measure=profile.measure,
        loads=tuple(loads),
        rounds=rounds,
        after=after,
        roof=profile.roof,
    )


def human_int(value: ArgValue) -> int | None:
    """vLLM's integers: 1k is 1000, 1K is 1024, 1.5k is 1500; None for anything else."""
    match = _HUMAN_INT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    digits, suffix = (match[1], match[2]) if match[1] else (match[3], match[4])
    power = "kmgt".find(suffix.lower()) + 1 if suffix else 0
    factor = int((1024 if suffix.isupper() else 1000) ** power)
    return int(digits) * factor if match[1] else round(float(digits) * factor)


def compact_json(value: JsonObject) -> str:
    """JSON in the order of the keys, without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def flag_tokens(args: Args) -> Iterator[str]:
    """The tokens of flags, in order."""
    for flag, value in args.items():
        if value is None:
            continue
        yield f"--no-{flag}" if value is False else f"--{flag}"
        if isinstance(value, dict):
            yield compact_json(value)
        elif isinstance(value, tuple):
            yield from value
        elif isinstance(value, str):
            yield value


def _expected(profile: Profile, arm: ResolvedVariant) -> Iterator[str]:
    """The texts that this arm's boot log should hold."""
    wanted = ("always", "spec" if arm.speculating else "off")
    return (expectation.line for expectation in profile.expect if expectation.when in wanted)


def _head(profile: Profile, arm: ResolvedVariant, home: Path) -> list[str]:
    if profile.runner == "sim":
        return [sys.executable, "-P", "-m", "sparktui", "sim", "serve"]
    binary = arm.vllm_bin or "vllm"
    return [_beside(profile, binary, home) if "/" in binary else binary, "serve"]


def _own_tokens(profile: Profile, arm: ResolvedVariant) -> Iterator[str]:
    yield from ("--host", profile.host, "--port", str(profile.port))
    yield from flag_tokens(arm.args)
    if arm.speculative is not None:
        yield from ("--speculative-config", compact_json(arm.speculative))


def _observe_tokens(profile: Profile, arm: ResolvedVariant) -> Iterator[str]:
    """The user's own setting of a flag wins: given twice, vLLM would take the last."""
    return flag_tokens({flag: value for flag, value in profile.observe.items() if flag not in arm.args})


def _served_name(args: Args) -> str | None:
    names = args.get("served-model-name")
    if isinstance(names, tuple):
        return names[0]
    return names if isinstance(names, str) else None


def _at_home(path: str, home: Path) -> str:
    return str(home / path[2:]) if path.startswith("~/") else path


def _beside(profile: Profile, path: str, home: Path) -> str:
    """An absolute path: ``~/`` is the home, anything relative starts at the profile's folder."""
    return str(Path(profile.path).parent / _at_home(path, home))

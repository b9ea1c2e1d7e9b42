"""Arguments of ``sparktui sim serve``: vLLM 0.27.1's flags, checked as its argparse does, and ``--sim-…``."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sparktui.sim.release import DEFAULT, RELEASES, Release

FAILURES = ("none", "engine-oom", "never-ready", "metrics-nonsense", "hang-requests")
_FLAGS = Path(__file__).with_name("flags_0.27.1.txt")
_USAGE = """usage: vllm [-h] [-v]
            {chat,complete,serve,launch,bench,collect-env,run-batch} ...
"""
_INTS = ("port", "max_num_seqs", "tensor_parallel_size", "seed")
_OBJECTS = ("speculative_config", "compilation_config")
_HUMAN_INTS = ("max_model_len", "max_num_batched_tokens")
_HUMAN = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class SimOptions:
    """The stand-in's own knobs. ``boot_seconds``: whole boot; noise: relative standard deviations."""

    boot_seconds: float = 2.5
    seed: int | None = None  # None: another one at every start
    noise: float = 0.01
    restart_noise: float = 0.005
    fail: str = "none"
    model: str | None = None  # a shipped machine-and-model file's name, or a path; None: the default one
    vllm: str = DEFAULT  # the release to speak like
    boot_speed: float | None = None  # real boot seconds that pass in one second; overrides boot_seconds


@dataclass(frozen=True, slots=True)
class ServeArguments:
    """``given``: what the command line set, in vLLM's spelling, as its "non-default args" line shows it."""

    model: str
    given: dict[str, Any]
    api_keys: tuple[str, ...]
    sim: SimOptions

    def get(self, name: str, default: Any) -> Any:
        value = self.given.get(name)
        return default if value is None else value

    @property
    def release(self) -> Release:
        return Release(self.sim.vllm)

    @property
    def served_names(self) -> tuple[str, ...]:
        names = self.given.get("served_model_name")
        return tuple(names) if names else (self.model,)

    @property
    def speculative(self) -> dict[str, Any] | None:
        """The speculative config with its ``num_speculative_tokens``; None when speculation is off."""
        config = dict(self.given.get("speculative_config") or {})
        for flag, key in (
            ("spec_method", "method"),
            ("spec_model", "model"),
            ("spec_tokens", "num_speculative_tokens"),
        ):
            if flag in self.given:
                config[key] = self.given[flag]
        return config or None

    @property
    def k(self) -> int:
        """num_speculative_tokens; 0 when speculation is off."""
        config = self.speculative
        return int(config.get("num_speculative_tokens", 3)) if config else 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Fail as vLLM's top-level parser does: its usage, the message, exit 2."""
        sys.stderr.write(f"{_USAGE}vllm: error: {message}\n")
        raise SystemExit(2)


def parse(argv: list[str]) -> ServeArguments:
    """Parse what follows ``serve``. Wrong usage prints as vLLM does and raises SystemExit(2)."""
    parser = _parser()
    plain, nested = _split_nested(argv)
    values = vars(parser.parse_args(plain))
    given = {name: value for name, value in values.items() if value is not None}
    for name, pairs in nested.items():
        given.setdefault(name, {}).update(pairs)
    sim = SimOptions(**{f.removeprefix("sim_"): given[f] for f in given if f.startswith("sim_")})
    model = str(given.pop("model_tag", None) or given.get("model") or "Qwen/Qwen3-0.6B")
    keys = tuple(given.get("api_key", ())) or (os.environ.get("VLLM_API_KEY", ""),)
    shown: dict[str, Any] = {"model_tag": model} | {k: v for k, v in given.items() if k != "model"}
    shown["model"] = model
    return ServeArguments(model, shown, tuple(key for key in keys if key), sim)


def _parser() -> _Parser:
    parser = _Parser(prog="vllm", allow_abbrev=False, argument_default=None)
    parser.add_argument("model_tag", nargs="?")
    for names, kind, choices in _flags():
        _add_flag(parser, names, kind, choices)
    parser.add_argument("--sim-boot-seconds", type=float)
    parser.add_argument("--sim-seed", type=int)
    parser.add_argument("--sim-noise", type=float)
    parser.add_argument("--sim-restart-noise", type=float)
    parser.add_argument("--sim-fail", choices=FAILURES)
    parser.add_argument("--sim-model")
    parser.add_argument("--sim-vllm", choices=RELEASES)
    parser.add_argument("--sim-boot-speed", "--boot-speed", dest="sim_boot_speed", type=float)
    return parser


def _flags() -> list[tuple[list[str], str, list[str]]]:
    """Names, kind and choices of every flag in the list."""
    lines = _FLAGS.read_text(encoding="utf-8").splitlines()
    rows = [line.split(" ") for line in lines if line and not line.startswith("#")]
    return [(row[0].split(","), row[1], row[2].split(",") if len(row) > 2 else []) for row in rows]


def _dest(names: list[str]) -> str:
    long = next(name for name in names if name.startswith("--"))
    return long.removeprefix("--").replace("-", "_")


def _add_flag(parser: argparse.ArgumentParser, flags: list[str], kind: str, choices: list[str]) -> None:
    dest = _dest(flags)
    if kind == "flag":
        parser.add_argument(*flags, dest=dest, action="store_const", const=True)
    elif kind == "bool":
        parser.add_argument(*flags, dest=dest, action=argparse.BooleanOptionalAction)
    elif kind == "list":
        parser.add_argument(*flags, dest=dest, nargs="+")
    elif kind == "choice" and not choices[0].isdigit():
        parser.add_argument(*flags, dest=dest, choices=choices)
    else:
        parser.add_argument(*flags, dest=dest, type=_converter(dest))


def _converter(dest: str) -> Callable[[str], Any]:
    if dest in _INTS:
        return int
    if dest in _OBJECTS:
        return _object
    return _human_int if dest in _HUMAN_INTS else _value


def _split_nested(argv: list[str]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Take out ``--flag.key value`` pairs; spell ``--max_num_seqs`` with dashes as vLLM's parser does."""
    plain: list[str] = []
    nested: dict[str, dict[str, Any]] = {}
    known = {flag: _dest(names) for names, _, _ in _flags() for flag in names}
    rest = iter(argv)
    for token in rest:
        match = re.fullmatch(r"(--?[\w-]+)\.([\w.-]+)(?:=(.*))?", token, re.DOTALL)
        if match and match[1] in known:
            flag, key, value = match.groups()
            pairs = nested.setdefault(known[flag], {})
            pairs[key] = _value(next(rest, "") if value is None else value)
        elif token.startswith("--"):
            name, sign, value = token.partition("=")
            plain.append(name.replace("_", "-") + sign + value)
        else:
            plain.append(token)
    return plain, nested


def _value(text: str) -> Any:
    """A flag's value with the type that vLLM would give it: int, float, JSON object, else text."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return _object(text) if text.startswith("{") else text


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to {json.loads}.")
    return value


def _human_int(text: str) -> int:
    """``8192``, ``8k`` (8,000) or ``8K`` (8,192), as vLLM reads max_model_len."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)([kmgKMG]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}")
    return int(float(match[1]) * _HUMAN.get(match[2], 1))

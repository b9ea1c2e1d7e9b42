"""The flags of one vLLM release and the parser that takes them, failing as vLLM's does.

Message shapes as recorded: an unknown flag fails in the top-level parser, a bad value in ``serve``'s own.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from sparktui.sim.release import Release

_LIST = Path(__file__).with_name("flags.txt")
_RELEASES = ("0.17.1", "0.19.1", "0.21.0", "0.24.0", "0.27.1", "0.30.0", "0.32.0")  # whose flags are known
_COMMANDS = "{chat,complete,serve,launch,bench,collect-env,run-batch} ..."
_COMMANDS_032 = """{chat,complete,serve,launch,bench,collect-env,download-kernels,preload,run-batch,snapshot}
            ..."""
_OBJECTS = ("speculative_config", "compilation_config")
_HUMAN = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
Converter = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Flag:
    """One row of the list."""

    names: tuple[str, ...]
    kind: str  # flag, bool, value, list or choice
    choices: tuple[str, ...] = ()

    @property
    def dest(self) -> str:
        long = next(name for name in self.names if name.startswith("--"))
        return long.removeprefix("--").replace("-", "_")


class Parser(argparse.ArgumentParser):
    """``vllm serve``'s parser."""

    def __init__(self, release: Release) -> None:
        usage = "vllm serve [model_tag] [options]"
        super().__init__(prog="vllm serve", usage=usage, allow_abbrev=False, argument_default=None)
        self._release = release
        self.add_argument("model_tag", nargs="?")
        for flag in flags_of(release):
            _add(self, flag)

    def error(self, message: str) -> NoReturn:
        """A bad value: ``serve``'s usage, the message, exit 2."""
        sys.stderr.write(f"usage: {self.usage}\n{self.prog}: error: {message}\n")
        raise SystemExit(2)

    def unrecognized(self, arguments: list[str]) -> NoReturn:
        """Unknown flags: the usage of the parser above, exit 2."""
        commands = _COMMANDS_032 if self._release.since("0.32.0") else _COMMANDS
        usage = f"usage: vllm [-h] [-v]\n            {commands}\n"
        sys.stderr.write(f"{usage}vllm: error: unrecognized arguments: {' '.join(arguments)}\n")
        raise SystemExit(2)


@cache
def flags_of(release: Release) -> tuple[Flag, ...]:
    """The flags of the nearest release that is known."""
    place = _RELEASES.index(release.nearest(_RELEASES))
    found = []
    for line in _LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        first, last, names, kind, *choices = line.split(" ")
        low = 0 if first == "-" else _RELEASES.index(first)
        high = len(_RELEASES) if last == "-" else _RELEASES.index(last)
        if low <= place <= high:
            values = tuple(choices[0].split(",")) if choices else ()
            found.append(Flag(tuple(names.split(",")), kind, values))
    return tuple(found)


def split_nested(argv: list[str], release: Release) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Take out ``--flag.key value`` pairs; spell ``--max_num_seqs`` and ``-O3`` as vLLM's parser does."""
    plain: list[str] = []
    nested: dict[str, dict[str, Any]] = {}
    known = {name: flag.dest for flag in flags_of(release) if _takes_object(flag) for name in flag.names}
    rest = iter(argv)
    for token in rest:
        match = re.fullmatch(r"(--?[\w-]+)\.([\w.-]+)(?:=(.*))?", token, re.DOTALL)
        if match and match[1] in known:
            flag, key, text = match.groups()
            pairs = nested.setdefault(known[flag], {})
            pairs[key] = value_of(next(rest, "") if text is None else text)
        elif re.fullmatch(r"-O=?\d", token):
            plain.append(f"--optimization-level={token[-1]}")
        elif token.startswith("--"):
            name, sign, text = token.partition("=")
            plain.append(name.replace("_", "-") + sign + text)
        else:
            plain.append(token)
    return plain, nested


def value_of(text: str) -> Any:
    """A flag's value with the type that vLLM would give it: int, float, JSON object, else text."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return _object(text) if text.startswith("{") else text


def _add(parser: argparse.ArgumentParser, flag: Flag) -> None:
    if flag.kind == "flag":
        parser.add_argument(*flag.names, dest=flag.dest, action="store_const", const=True)
    elif flag.kind == "bool":
        parser.add_argument(*flag.names, dest=flag.dest, action=argparse.BooleanOptionalAction)
    elif flag.kind == "list":
        parser.add_argument(*flag.names, dest=flag.dest, nargs="+")
    elif flag.kind == "choice" and not flag.choices[0].isdigit():
        parser.add_argument(*flag.names, dest=flag.dest, choices=flag.choices)
    else:
        parser.add_argument(*flag.names, dest=flag.dest, type=_converter(flag.dest))


def _takes_object(flag: Flag) -> bool:
    return flag.kind == "value" and flag.dest not in _NUMBERS


def _converter(dest: str) -> Converter:
    return _object if dest in _OBJECTS else _NUMBERS.get(dest, value_of)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to {json.loads}.")
    return value


def integer(low: int | None = None, high: int | None = None, read: Callable[[str], int] = int) -> Converter:
    """A converter for argparse: an integer within bounds, both included. ``read`` may raise ValueError."""
    least = "" if low is None else f" of at least {low}"
    bounds = least if high is None else f" from {low} to {high}"

    def convert(text: str) -> int:
        try:
            value = read(text)
        except (ValueError, OverflowError):
            name = read.__name__.removeprefix("_")
            raise argparse.ArgumentTypeError(f"invalid {name} value: {text!r}") from None
        if (low is not None and value < low) or (high is not None and value > high):
            raise argparse.ArgumentTypeError(f"expected an integer{bounds}, got {text!r}")
        return value

    return convert


def real(*, above: float | None = None, low: float | None = None, high: float | None = None) -> Converter:
    """A converter for argparse: a finite number above ``above``, from ``low``, up to ``high``."""
    limits = ((above, "above {:g}"), (low, "of at least {:g}"), (high, "of at most {:g}"))
    bounds = " and ".join(words.format(limit) for limit, words in limits if limit is not None)

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"invalid float value: {text!r}") from None
        inside = (above is None or value > above) and (low is None or value >= low)
        if not math.isfinite(value) or not inside or (high is not None and value > high):
            raise argparse.ArgumentTypeError(f"expected a number {bounds}, got {text!r}")
        return value

    return convert


def _human_readable_int(text: str) -> int:
    """``8192``, ``8k`` (8,000), ``2.5k`` or ``8K`` (8,192), as vLLM reads counts of tokens."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text.strip())
    if match is None:
        return int(text)
    number, suffix = match.groups()
    if suffix.isupper() and "." in number:
        hint = f"Did you mean to use {number}{suffix.lower()} instead?"
        raise argparse.ArgumentTypeError(
            f"Decimals are not allowed with binary suffixes like {suffix}. {hint}"
        )
    return int(float(number) * _HUMAN[suffix])


def _human_readable_int_or_auto(text: str) -> int:
    """The same; -1 for ``-1`` and ``auto``, which leave it to vLLM."""
    return -1 if text.strip().lower() in ("-1", "auto") else _at_least_one(text)


_at_least_one = integer(1, read=_human_readable_int)
# Bounds as in the fields of vLLM's configuration, which are checked after its argparse, with exit code 1.
_NUMBERS: dict[str, Converter] = {
    "port": integer(0, 65535),
    "seed": integer(),
    "max_num_seqs": integer(1),
    "max_num_batched_tokens": _at_least_one,
    "max_model_len": _human_readable_int_or_auto,
    "tensor_parallel_size": integer(1),
    "pipeline_parallel_size": integer(1),
    "data_parallel_size": integer(1),
    "optimization_level": integer(0, 3),
    "spec_tokens": integer(1),
    "gpu_memory_utilization": real(above=0, high=1),
}

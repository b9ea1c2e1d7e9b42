"""Reads a vLLM server's command line as vLLM's own parser does, as far as that shows what was asked for.

Names may have underscores for dashes and be abbreviated; ``--no-x`` is false; ``--x.key value`` sets one key
of a JSON flag; of a flag given twice the last counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import PurePath
from typing import Any

_FLAG = re.compile(r"(--?[A-Za-z][\w-]*)(?:\.([\w.-]+)(\+?))?(?:=(.*))?", re.DOTALL)
_LEVEL = re.compile(r"-O=?\d")
_API_SERVER = "vllm.entrypoints.openai.api_server"
_CONTAINERS = ("docker", "podman", "nerdctl")


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag that some release knows. ``defaults``: as the help prints them; empty when it doesn't."""

    name: str
    kind: str
    defaults: tuple[str, ...] = ()

    @property
    def argument(self) -> str:
        """Its key in the "non-default args" line."""
        return self.name.removeprefix("--").replace("-", "_")


@dataclass(slots=True)
class Asked:
    """What a command line says of one flag: a value, several, True or False; ``keys`` of a JSON flag."""

    flag: Flag
    value: Any = None
    keys: dict[str, Any] = field(default_factory=dict)

    @property
    def twice(self) -> bool:
        """As JSON and with dots: vLLM puts the dotted form last, and it replaces the JSON."""
        return self.value is not None and bool(self.keys)

    @property
    def wanted(self) -> Any:
        """The value; a dict for JSON and dotted keys together."""
        given = json_value(self.value) if isinstance(self.value, str) else self.value
        return _merged(given if isinstance(given, dict) else {}, self.keys) if self.keys else given


def read_argv(argv: Sequence[str], taken: Mapping[str, Any]) -> dict[str, Asked]:
    """What ``argv`` asks for, by argument; nothing when it is no vLLM command line.

    ``taken``: the arguments that vLLM logged. Behind ``docker run`` its own begin at the model's name.
    """
    words = list(_after_program(argv, str(taken.get("model", ""))))
    found: dict[str, Asked] = {}
    if words and not words[0].startswith("-"):
        found["model"] = Asked(Flag("--model", "value"), words.pop(0))
    while words:
        word = words.pop(0)
        match = _FLAG.fullmatch(word)
        if match is None or _LEVEL.fullmatch(word):
            continue
        name, key, appends, inline = match.groups()
        flag, negated = _known(name)
        asked = found.setdefault(flag.argument, Asked(flag))
        if key is not None:
            text = inline if inline is not None else words.pop(0) if words else ""
            _set_key(asked.keys, key, text, bool(appends))
        else:
            asked.value = False if negated else _value(flag, inline, words)
    return found


def json_value(text: str) -> Any:
    """A JSON object or list; the text when it is none."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _after_program(argv: Sequence[str], model: str) -> Sequence[str]:
    for at, word in enumerate(argv):
        if (word == "serve" and at) or word.endswith(_API_SERVER):
            return argv[at + 1 :]
    if argv and PurePath(argv[0]).name in _CONTAINERS and model in argv:
        return argv[argv.index(model) :]
    return ()


def _value(flag: Flag, inline: str | None, words: list[str]) -> Any:
    """The flag's value; takes its words off the front of ``words``."""
    if inline is not None:
        return [inline] if flag.kind == "list" else inline
    if flag.kind in ("bool", "flag"):
        return True
    values: list[str] = []
    while words and not _FLAG.fullmatch(words[0]) and (flag.kind == "list" or not values):
        values.append(words.pop(0))
    if flag.kind == "list":
        return values
    return values[0] if values else True


def _set_key(keys: dict[str, Any], path: str, text: str, appends: bool) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        inner = keys.setdefault(parent, {})
        if not isinstance(inner, dict):
            return
        keys = inner
    if appends:
        before = keys.get(last)
        keys[last] = [*(before if isinstance(before, list) else ()), *text.split(",")]
    else:
        keys[last] = json_value(text)


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for key, value in over.items():
        before = made.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            value = _merged(before, value)
        made[key] = value
    return made


def _known(written: str) -> tuple[Flag, bool]:
    """The flag, and whether it is negated. One that no known release has takes a value if one follows."""
    flags = _flags()
    name = written.replace("_", "-")
    if name in flags:
        return flags[name], False
    if name.startswith("--no-") and (positive := flags.get(f"--{name[5:]}")) is not None:
        return positive, True
    begun = {flag.name: flag for known, flag in flags.items() if known.startswith(name)}
    if name.startswith("--") and len(begun) == 1:
        return next(iter(begun.values())), False
    return Flag(name, "unknown"), False


@cache
def _flags() -> dict[str, Flag]:
    """By every name."""
    listed = resources.files("sparktui.bootlog").joinpath("asked_flags.txt").read_text(encoding="utf-8")
    found: dict[str, Flag] = {}
    for line in listed.splitlines():
        if line.startswith("#"):
            continue
        names, kind, *defaults = line.split(" ")
        several = names.split(",")
        flag = Flag(several[0], kind, () if "?" in defaults else tuple(defaults))
        found.update(dict.fromkeys(several, flag))
    return found

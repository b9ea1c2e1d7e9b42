"""The exact command of a LaunchSpec, for people and shells; secrets and control characters never show."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from sparktui.profile.secrecy import MASK, is_secret_env, masked_argv
from sparktui.schema.launch import LaunchSpec
from sparktui.schema.text import printable


def as_argv(spec: LaunchSpec) -> str:
    """A JSON list with one token a line."""
    return json.dumps(masked_argv(spec.argv), indent=1)


def as_shell(spec: LaunchSpec) -> str:
    """A command to paste: environment first, one flag a line; what sparktui added is named above it."""
    parts = [f"{key}={_value(key, value)}" for key, value in spec.env.items()]
    parts += ["  " * (i > 0) + " ".join(map(quote, line)) for i, line in enumerate(_lines(spec))]
    return "\n".join([*_comments(spec), " \\\n".join(parts)])


def quote(token: str) -> str:
    """A word for bash, zsh and ksh: characters that don't print are written as escapes."""
    if token.isprintable():
        return shlex.quote(token)
    return "$'" + "".join(map(_escaped, token)) + "'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if char.isprintable():
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode())


def _value(key: str, value: str) -> str:
    return MASK if is_secret_env(key) else quote(value)


def _comments(spec: LaunchSpec) -> Iterator[str]:
    if spec.env_file is not None:
        yield f"# environment also from {printable(spec.env_file)} (not shown)"
    if added := [spec.argv[i] for i in spec.added]:
        yield f"# added by sparktui: {printable(' '.join(added))}"


def _lines(spec: LaunchSpec) -> list[list[str]]:
    """Tokens by line: the command, then each flag with its values."""
    lines: list[list[str]] = [[]]
    for token in masked_argv(spec.argv):
        if token.startswith("--"):
            lines.append([])
        lines[-1].append(token)
    return lines

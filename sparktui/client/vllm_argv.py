"""Command lines of vLLM's API server, and what may be shown of them.

They hold secrets (``--api-key``, ``--hf-token``), so only model, host and port are ever taken out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from sparktui.schema.text import printable

DEFAULT_PORT = 8000  # of vLLM, and of our stand-in
_LONGEST = 200  # characters of any foreign text
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*t?")
_API_SERVER = "vllm.entrypoints.openai.api_server"
_PROGRAMS = {  # program or module -> the words after it that make it an API server
    "vllm": ("serve",),
    "vllm.entrypoints.cli.main": ("serve",),
    _API_SERVER: (),
    "sparktui": ("sim", "serve"),
    "sparktui.sim": ("serve",),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asks for."""

    model: str = ""
    host: str = ""
    port: int | None = None


def serve_arguments(argv: Sequence[str]) -> list[str] | None:
    """What follows ``serve`` in the command line of an API server; None for any other program."""
    if not argv:
        return None
    rest = list(argv)
    if _PYTHON.fullmatch(PurePath(rest[0]).name):
        rest = _python_program(rest[1:])
    return after_program(rest)


def _python_program(words: list[str]) -> list[str]:
    """Module or script and its arguments, without Python's own options; empty for ``-c``."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        if option == "-m":
            return words[at + 1 :]
        if option == "-c":
            return []
        at += 2 if option in ("-X", "-W") else 1
    return words[at:]


def after_program(words: list[str]) -> list[str] | None:
    """What follows ``serve`` when ``words`` begin with a program or module that serves; else None."""
    if not words:
        return None
    as_module = words[0].removesuffix(".py").replace("/", ".")
    name = _API_SERVER if as_module.endswith(f".{_API_SERVER}") else PurePath(words[0]).name
    wanted = _PROGRAMS.get(name)
    if wanted is None or tuple(words[1 : 1 + len(wanted)]) != wanted:
        return None
    return words[1 + len(wanted) :]


def asked(args: Sequence[str], *, positional: bool = True) -> Asked:
    """Model, host and port. A model that is neither first nor named stays unknown: what else stands alone
    may be the second value of ``--api-key``."""
    values: dict[str, str] = {}
    if positional and args and re.match(r"[\w./~$]", args[0]):  # no flag, and nothing of a shell's
        values["--model"] = args[0]
    for at, word in enumerate(args):
        name, equals, value = word.partition("=")
        if name in ("--model", "--host", "--port"):
            following = "" if at + 1 == len(args) or args[at + 1].startswith("-") else args[at + 1]
            values[name] = value if equals else following
    return Asked(
        safe(values.get("--model", "")), safe(values.get("--host", "")), _port(values.get("--port", ""))
    )


def _port(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,5}", text) and 0 < int(text) < 65536 else None


def safe(text: str) -> str:
    """Printable, on one line, short."""
    clean = printable(" ".join(text.split()))
    return clean if len(clean) <= _LONGEST else clean[: _LONGEST - 1] + "…"

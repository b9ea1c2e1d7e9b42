"""``sparktui sim serve MODEL [vLLM flags] [--sim-…]`` and ``sparktui sim table``."""

from __future__ import annotations

import io
import sys

from sparktui.sim import arguments
from sparktui.sim.truth import Truth

_USAGE = """usage: sparktui sim serve MODEL [flags of vllm serve] [--sim-boot-seconds S] [--sim-seed N]
                          [--sim-noise R] [--sim-restart-noise R] [--sim-fail FAILURE]
       sparktui sim table

A stand-in for vLLM whose speed is known, for trying sparktui without a GPU.
FAILURE: {failures}
"""
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def main(argv: list[str]) -> int:
    """Run what ``argv`` (without ``sim``) asks for; returns the exit code, 2 for wrong usage."""
    command, rest = (argv[0], argv[1:]) if argv else ("", [])
    if command == "table":
        sys.stdout.write(table(Truth()))
        return 0
    if command != "serve" or "-h" in rest or "--help" in rest:
        text = _USAGE.format(failures=", ".join(arguments.FAILURES))
        asked = command in ("-h", "--help", "serve")
        (sys.stdout if asked else sys.stderr).write(text)
        return 0 if asked else 2
    try:
        parsed = arguments.parse(rest)
    except SystemExit as error:
        return int(error.code or 0)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    from sparktui.sim.server import Server  # aiohttp takes a moment: wrong usage should not wait for it

    return Server(parsed).run()


def table(truth: Truth) -> str:
    """The truth behind the stand-in: decode tok/s per stream by batch and by k."""
    columns = (("off", 0), ("k=2", 2), ("k=3", 3), ("k=4", 4))
    lines = ["decode tok/s per stream", "batch " + "".join(f"{name:>8}" for name, _ in columns)]
    lines.extend(
        f"{batch:>5} " + "".join(f"{truth.decode_tok_s(k, batch):8.1f}" for _, k in columns)
        for batch in _BATCHES
    )
    return "\n".join(lines) + "\n"

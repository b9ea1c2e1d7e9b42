"""``sparktui sim``: ``serve MODEL [vLLM flags]``, ``table [--json]``, ``model [NAME|FILE]``."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator

from sparktui.schema.text import printable
from sparktui.sim import arguments
from sparktui.sim.boot.facts import boot_facts
from sparktui.sim.model.modelfile import DEFAULT_MODEL, ModelFileError, load, shipped
from sparktui.sim.model.truth import Truth
from sparktui.sim.release import DEFAULT, RELEASES

_USAGE = """usage: sparktui sim serve MODEL [flags of vllm serve] [--sim-model NAME|FILE] [--sim-vllm VERSION]
                          [--boot-speed N] [--sim-boot-seconds S] [--sim-seed N]
                          [--sim-noise R] [--sim-restart-noise R] [--sim-fail FAILURE]
                          [--sim-linger-seconds S] [--sim-clock FILE]
       sparktui sim table [--json]
       sparktui sim model [NAME|FILE]

A stand-in for vLLM whose speed is known, for trying sparktui without a GPU.
table: published figures beside the stand-in's own; exit 1 when one is out of its tolerance.
model: what a machine-and-model file says, at several loads.
--boot-speed N: seconds of the modelled boot that pass in one second; --sim-boot-seconds S: all of it in S.
--sim-noise R, --sim-restart-noise R: standard deviation of a step, of a start; relative, 0.01 is 1 %.
--sim-linger-seconds S: how long the engine's process outlives the server.
--sim-clock FILE: when each event of each streamed answer was written.
NAME:    {models}
VERSION: {releases}
FAILURE: {failures}
docs/sim.md: model files, and faults to set while it runs.
"""
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def main(argv: list[str]) -> int:
    """Run what ``argv`` (without ``sim``) asks for; returns the exit code, 2 for wrong usage."""
    command, rest = (argv[0], argv[1:]) if argv else ("", [])
    if command in ("-h", "--help") or (command in _COMMANDS and ("-h" in rest or "--help" in rest)):
        sys.stdout.write(_usage())
        return 0
    if command not in _COMMANDS:
        return _wrong(f"no such command: {command}" if command else "which of them?")
    return _COMMANDS[command](rest)


def _wrong(message: str) -> int:
    """Usage, then what is wrong: the last line is the one that is read."""
    sys.stderr.write(f"{_usage()}\nsparktui sim: error: {printable(message)}\n")
    return 2


def _usage() -> str:
    words = {"models": shipped(), "releases": RELEASES, "failures": arguments.FAILURES}
    return _USAGE.format(**{name: ", ".join(known) for name, known in words.items()})


def _serve(rest: list[str]) -> int:
    try:
        parsed = arguments.parse(rest)
    except SystemExit as error:
        return int(error.code or 0)
    truth = _load(parsed.sim.model)
    if truth is None:
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    from sparktui.sim.server import Server  # aiohttp takes a moment: wrong usage should not wait for it

    return Server(parsed, truth).run()


def _table(rest: list[str]) -> int:
    if strange := [word for word in rest if word != "--json"]:
        return _wrong(f"table takes --json only, not {strange[0]}")
    from sparktui.sim import calibration, claims

    rows = calibration.rows()
    sys.stdout.write(claims.as_json(rows) if rest else claims.as_text(rows))
    return 1 if any(row.within is False for row in rows) else 0


def _load(name_or_path: str | None) -> Truth | None:
    """The model, the default one without a name; None when its file is wrong, as stderr says."""
    try:
        return load(name_or_path or DEFAULT_MODEL)
    except ModelFileError as error:
        sys.stderr.write(f"{error}\n")
        return None


def _model(rest: list[str]) -> int:
    if len(rest) > 1:
        return _wrong(f"model takes one name or file, not {' '.join(rest)}")
    truth = _load(rest[0] if rest else None)
    if truth is None:
        return 2
    sys.stdout.write(describe(truth))
    return 0


_COMMANDS = {"serve": _serve, "table": _table, "model": _model}


def describe(truth: Truth) -> str:
    """A model's expected figures: tok/s of each stream while decoding, by running requests and by k."""
    drafts = sorted(truth.on_step_ms)
    heads = ["off", *(f"k={k}" for k in drafts)]
    lines = [
        f"{truth.name}: {truth.about}" if truth.about else truth.name,
        "",
        "decode tok/s per stream, by running requests (prompts' share of the time is not in it)",
        "running " + "".join(f"{head:>9}" for head in heads),
    ]
    lines.extend(
        f"{batch:>7} " + "".join(f"{truth.decode_tok_s(k, batch):9.1f}" for k in (0, *drafts))
        for batch in _BATCHES
    )
    lines += ["", f"CUDA graphs, as vLLM {DEFAULT} boots it: " + ", ".join(_graphs(truth, (0, *drafts)))]
    lines += ["", "accepted by position"]
    for k in drafts:
        lines.append(f"{f'k={k}':>7} " + "".join(f"{100 * share:8.1f}%" for share in truth.acceptance(k)))
    return "\n".join(lines) + "\n"


def _graphs(truth: Truth, drafts: Iterable[int]) -> Iterator[str]:
    """The mode that each arm boots into: it need not be the one in which its figures were measured."""
    for k in drafts:
        spec = json.dumps({"method": "eagle3", "model": "drafter", "num_speculative_tokens": k})
        given = arguments.parse(["model", *(["--speculative-config", spec] if k else [])])
        mode, measured = boot_facts(given, truth).plan.mode, truth.default_graphs(k)
        note = "" if mode == measured else f" (measured: {measured})"
        yield f"{f'k={k}' if k else 'off'} {mode}{note}"

"""``sparktui load URL -c N -d SECONDS``: load on a server that runs, and its figures, without a profile."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import difflib
import json
import math
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparktui.commands.endpoint import (
    STDOUT,
    base_url,
    check_writable,
    first_model,
    write_json,
)
from sparktui.commands.launch import MAX_STREAMS, Usage
from sparktui.commands.loadfeed import Rows, Status
from sparktui.commands.loadtable import folded, table
from sparktui.commands.output import complain, say
from sparktui.host.loader import LoadGone
from sparktui.host.loadrun import Job, run
from sparktui.schema.launch import LoadSpec
from sparktui.schema.promptfile import PromptFileError
from sparktui.schema.promptfile import read as read_prompts
from sparktui.schema.records import LoadResult
from sparktui.schema.workloads import FILE, SAMPLING, WORKLOADS, known
from sparktui.server import ready

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_WIDTH = 80  # of a terminal that doesn't tell
_INTERRUPTED = 130


def add_arguments(subparsers: Subparsers) -> None:
    """Register ``load``."""
    parser = subparsers.add_parser("load", help="load and figures without a profile")
    parser.add_argument("url", metavar="URL", type=base_url, help="a server that runs, or a proxy before it")
    parser.add_argument("-c", "--concurrency", type=_streams, required=True, metavar="N",
                        help="streams: each asks again when its answer ends")  # fmt: skip
    parser.add_argument("-d", "--duration", type=_positive, required=True, metavar="SECONDS",
                        help="of load; the streams begin 20 ms apart in it")  # fmt: skip
    parser.add_argument("--metrics-url", metavar="URL", type=base_url,
                        help="where vLLM's /metrics is, if not at URL")  # fmt: skip
    parser.add_argument("--model", metavar="NAME", help="default: the first that the server names")
    _add_requests(parser)
    parser.add_argument(
        "--json", metavar="FILE", help="write the result as JSON; - for stdout, without table"
    )
    parser.add_argument(
        "--rows", metavar="FILE", help="write a line of JSON for each request as it ends; - for stdout, too"
    )
    parser.add_argument("--quiet", action="store_true", help="no status line on a terminal")
    parser.set_defaults(run=run_load)


def _add_requests(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(WORKLOADS)
    group = parser.add_argument_group("requests", "sampling parameters are sent only when given")
    group.add_argument("--workload", default="chat", metavar="NAME", help=f"{names}, or file:PATH (JSONL)")
    group.add_argument("--input-tokens", type=_count, metavar="N")
    group.add_argument("--output-tokens", type=_count, metavar="N")
    for name in SAMPLING:
        number = int if name == "top_k" else _number
        group.add_argument(f"--{name.replace('_', '-')}", dest=name, type=number, metavar="N")
    group.add_argument("--chat-template-kwargs", type=_object, default={}, metavar="JSON")
    group.add_argument("--no-ignore-eos", action="store_true", help="answers may end by themselves")
    group.add_argument("--seed", type=int, default=1, metavar="N", help="picks the prompts; it is not sent")


def _streams(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_STREAMS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_STREAMS}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is no JSON object")
    return value


def run_load(args: argparse.Namespace) -> int:
    """0: measured; 1: nothing could be, or not to the end; 130: interrupted. Raises Usage, Missing, and
    BrokenPipeError when nobody reads the rows."""
    load = _load_spec(args)
    _check_files(args.json, args.rows)
    stop = asyncio.Event()
    rows = Rows(args.rows, stop)
    try:
        result = asyncio.run(_load(args, load, stop, rows))
    except LoadGone as exc:
        complain(f"nothing could be measured: {exc}")
        return _INTERRUPTED if stop.is_set() else 1
    if STDOUT not in (args.json, args.rows):
        width = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else None
        for line in folded(table(result), width):
            say(line)
    if args.json is not None:
        write_json(args.json, result)
    rows.check()
    return _exit_code(result, interrupted=stop.is_set())


def _check_files(json_file: str | None, rows_file: str | None) -> None:
    """Raises Usage."""
    for target in (json_file, rows_file):
        check_writable(target)
    if json_file is not None and rows_file is not None and _place(json_file) == _place(rows_file):
        raise Usage(f"--json and --rows can't both write to {json_file}")


def _place(target: str) -> str:
    return target if target == STDOUT else os.path.realpath(target)


def _exit_code(result: LoadResult, *, interrupted: bool) -> int:
    if interrupted and not result.complete:
        return _INTERRUPTED
    if not (result.output_tok_s or result.chunks_s or result.ttft_ms or result.requests):
        why = next(iter(result.error_kinds), "no answer came")
        complain(f"nothing could be measured: {why}")
        return 1
    return 0 if result.complete else 1


def _load_spec(args: argparse.Namespace) -> LoadSpec:
    """Raises Usage for an unknown workload and a file that can't be used."""
    return LoadSpec(
        workload=_workload(args.workload),
        input_tokens=args.input_tokens,
        output_tokens=args.output_tokens,
        **{name: getattr(args, name) for name in SAMPLING},
        chat_template_kwargs=args.chat_template_kwargs,
        ignore_eos=not args.no_ignore_eos,
        seed=args.seed,
    )


def _workload(name: str) -> str:
    if not known(name):
        close = difflib.get_close_matches(name, WORKLOADS, 1)
        hint = f"; did you mean {close[0]}?" if close else ":"
        raise Usage(f"no workload {name!r}{hint} There are {', '.join(WORKLOADS)} and file:PATH")
    if not name.startswith(FILE):
        return name
    path = Path(name.removeprefix(FILE)).expanduser().absolute()
    try:
        read_prompts(path)
    except PromptFileError as exc:
        raise Usage(str(exc)) from None
    return f"{FILE}{path}"


async def _load(args: argparse.Namespace, load: LoadSpec, stop: asyncio.Event, rows: Rows) -> LoadResult:
    async with ready.client() as http:
        model = args.model or await first_model(http, args.url)
        job = Job(args.url, model, load, args.concurrency, args.duration, args.metrics_url)
        with rows, _interrupts(stop), Status(args.duration, shown=not args.quiet) as status:
            return await run(job, http, stop, rows.write, status.show)


@contextlib.contextmanager
def _interrupts(stop: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and a plain kill end the load early, with what there is."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

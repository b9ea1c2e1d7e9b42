"""``sparktui probe URL``: does the prefix cache serve? The same request three times, with hits and TTFT."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from sparktui.commands.endpoint import STDOUT, base_url, check_writable, first_model, write_json
from sparktui.commands.output import say
from sparktui.host.probe import probe
from sparktui.schema.records import PrefixProbe, ProbeAnswer
from sparktui.server import ready

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_TIMES = ("1st", "2nd", "3rd")


def add_arguments(subparsers: Subparsers) -> None:
    """Register ``probe``."""
    parser = subparsers.add_parser("probe", help="does the prefix cache of a server serve?")
    parser.add_argument("url", metavar="URL", type=base_url, help="a server that runs, or a proxy before it")
    parser.add_argument(
        "--metrics-url", metavar="URL", type=base_url, help="where vLLM's /metrics is, if not at URL"
    )
    parser.add_argument("--model", metavar="NAME", help="default: the first that the server names")
    parser.add_argument("--json", metavar="FILE", help="write the answers as JSON; - for stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0: it works; 1: it doesn't, or nobody can tell. Raises Missing, Usage."""
    check_writable(args.json)
    found = asyncio.run(_probe(args))
    if args.json != STDOUT:
        for line in lines(found):
            say(line)
    if args.json is not None:
        write_json(args.json, found)
    return 0 if found.call == "works" else 1


async def _probe(args: argparse.Namespace) -> PrefixProbe:
    async with ready.client() as http:
        model = args.model or await first_model(http, args.url)
        return await probe(http, args.url, model, args.metrics_url)


def lines(found: PrefixProbe) -> list[str]:
    """Plain text: a line for each answer, and the call."""
    rows = [_row(when, answer) for when, answer in zip(_TIMES, found.answers, strict=False)]
    return [*rows, *([""] if rows else []), found.text[:1].upper() + found.text[1:]]


def _row(when: str, answer: ProbeAnswer) -> str:
    ttft = "—" if answer.ttft_ms is None else f"{answer.ttft_ms:.0f} ms"
    prompt = "—" if answer.prompt_tokens is None else f"{answer.prompt_tokens:,}"
    parts = [f"{when}: TTFT {ttft:>8}", f"{prompt} prompt tokens"]
    if answer.hits is not None and answer.queries is not None:
        parts.append(f"{answer.hits:,.0f} of {answer.queries:,.0f} queried tokens hit")
    if answer.cached_tokens is not None:
        parts.append(f"{answer.cached_tokens:,} cached by the answer")
    return " · ".join(parts)

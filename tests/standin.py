"""The stand-in as a server that somebody else started: a subprocess, with its counters and faults."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import httpx

from sparktui.metrics.page import Page, parse
from sparktui.schema.codec import loads
from sparktui.schema.records import LoadResult, RequestRow
from tests.contract.server import Limits, Server, start
from tests.support import free_port

MODEL = "test/stand-in"
LIMITS = Limits(boot=60.0, stop=30.0, answer=20.0)


@contextlib.contextmanager
def stand_in(cwd: Path, *flags: str, key: str | None = None) -> Iterator[Server]:
    """``sparktui sim serve`` with these flags, ready; gone afterwards."""
    port = free_port()
    argv = [sys.executable, "-m", "sparktui", "sim", "serve", MODEL, "--port", str(port)]
    server = start([*argv, "--sim-boot-seconds", "0.3", *flags], port, LIMITS, env={}, key=key, cwd=cwd)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.end()


def fast_server(cwd: Path) -> contextlib.AbstractContextManager[Server]:
    """One whose steps take a few milliseconds, with 16 seats."""
    return stand_in(cwd, "--sim-model", "tiny-h200", "--max-num-seqs", "16")


def page(server: Server) -> Page:
    """Its counters now."""
    return parse(httpx.get(f"{server.url}/metrics", timeout=10).text, monotonic())


def fault(server: Server, **fields: Any) -> None:
    """Set a fault."""
    httpx.post(f"{server.url}/sim/fault", json=fields, timeout=10).raise_for_status()


def no_faults(server: Server) -> None:
    """Clear all faults."""
    httpx.delete(f"{server.url}/sim/fault", timeout=10).raise_for_status()


def result_in(path: Path) -> LoadResult:
    """What ``--json`` wrote."""
    return loads(LoadResult, path.read_bytes())


def rows_in(path: Path) -> list[RequestRow]:
    """What ``--rows`` wrote."""
    return [loads(RequestRow, text) for text in path.read_bytes().splitlines()]


def flagged(result: LoadResult, text: str) -> bool:
    """Whether one of the result's flags has ``text``."""
    return any(text in flag for flag in result.flags)

"""How ``sparktui load`` ends before its time: with what there is, and with nothing left running."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import psutil
import pytest

from tests.contract.server import Server
from tests.standin import fault, flagged, no_faults, result_in, rows_in, stand_in
from tests.support import Home, until

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_interrupt_ends_early_with_what_there_is(home: Home, server: Server) -> None:
    rows_file = home.path / "rows.jsonl"
    process = home.start(
        "load", server.url, "-c", 2, "-d", 60, "--output-tokens", 300, "--json", home.path / "r.json",
        "--rows", rows_file,
    )  # fmt: skip
    until(lambda: rows_file.exists() and rows_file.read_bytes().count(b"\n") >= 3, what="finished requests")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert re.search(r"^TTFT \(ms\) +\d", output, re.M)
    result = result_in(home.path / "r.json")
    assert not result.complete
    assert flagged(result, "ended early, after ")
    assert result.cancelled == sum(row.cancelled for row in rows_in(rows_file)) > 0
    assert result.output_tok_s is not None


def test_killed_it_leaves_no_load_process(home: Home, server: Server) -> None:
    """Its standard input ends with us, and it with that."""
    rows_file = home.path / "rows.jsonl"
    process = home.start("load", server.url, "-c", 2, "-d", 60, "--output-tokens", 100, "--rows", rows_file)
    until(lambda: rows_file.exists() and rows_file.read_bytes().count(b"\n") >= 3, what="finished requests")
    assert psutil.Process(process.pid).children()
    process.kill()
    process.communicate(timeout=20)
    until(lambda: not home.processes(), 10, "the load process gone")


def test_server_that_dies_in_the_middle(home: Home, tmp_path: Path) -> None:
    """A partial result that shows the failures; the time without a server is in no figure."""
    rows_file = home.path / "rows.jsonl"
    with stand_in(tmp_path, "--sim-model", "tiny-h200") as server:
        process = home.start(
            "load", server.url, "-c", 2, "-d", 60, "--output-tokens", 100, "--json", home.path / "r.json",
            "--rows", rows_file,
        )  # fmt: skip
        until(
            lambda: rows_file.exists() and rows_file.read_bytes().count(b"\n") >= 6, what="finished requests"
        )
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    result = result_in(home.path / "r.json")
    assert not result.complete
    assert result.errors == sum(result.error_kinds.values()) > 2
    assert re.search(r"^failures +\d+ × ", output, re.M)
    assert flagged(result, "no answers at the end: for ")
    assert flagged(result, f"failed requests: {result.errors} of ")
    assert result.output_tok_s is not None
    assert result.window_s < result.seconds - 2.5
    assert result.requests > 0


def test_all_requests_fail(home: Home, server: Server) -> None:
    fault(server, fault="server_errors", status=503)
    try:
        code, output = home.run("load", server.url, "-c", 2, "-d", 60, "--json", home.path / "r.json")
    finally:
        no_faults(server)
    assert code == 1
    assert re.search(r"nothing could be measured: HTTP 503", output)
    result = result_in(home.path / "r.json")
    assert result.output_tok_s is None
    assert result.requests == 0
    assert result.errors >= 2
    assert result.seconds < 40, "it gives up on a server that only refuses, later than it may be told to wait"


def test_a_server_that_hangs_ends_in_time(home: Home, tmp_path: Path) -> None:
    with stand_in(tmp_path) as server:
        fault(server, fault="hang")
        code, output = home.run("load", server.url, "-c", 3, "-d", 1.5, "--json", home.path / "r.json")
    assert code == 1
    assert "nothing could be measured: no answer came" in output
    assert "Traceback" not in output
    result = result_in(home.path / "r.json")
    assert result.cancelled == 3
    assert flagged(result, "no steady window")


def test_dead_load_process_leaves_a_partial_result(home: Home, server: Server) -> None:
    rows_file = home.path / "rows.jsonl"
    process = home.start(
        "load", server.url, "-c", 1, "-d", 60, "--output-tokens", 100, "--json", home.path / "r.json",
        "--rows", rows_file,
    )  # fmt: skip
    until(lambda: rows_file.exists() and rows_file.read_bytes().count(b"\n") >= 3, what="finished requests")
    (child,) = psutil.Process(process.pid).children()
    child.kill()
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1, output
    result = result_in(home.path / "r.json")
    assert flagged(result, "the load process failed: the load process ended")
    assert result.output_tok_s is not None

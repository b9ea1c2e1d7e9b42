"""``sparktui load`` against the stand-in, as its users run it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from sparktui.schema.codec import loads
from sparktui.schema.records import RequestRow
from tests.contract.server import Server
from tests.standin import MODEL, page, result_in, rows_in, stand_in
from tests.support import Home

SPARKTUI = (sys.executable, "-m", "sparktui")
GENERATED = "generation_tokens_total"

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_figures_rows_and_counters_agree(home: Home, server: Server) -> None:
    before = page(server)
    json_file, rows_file = home.path / "r.json", home.path / "rows.jsonl"
    code, output = home.run(
        "load", server.url, "-c", 4, "-d", 4, "--output-tokens", 200, "--json", json_file, "--rows", rows_file
    )
    assert code == 0, output
    after = page(server)
    result, rows = result_in(json_file), rows_in(rows_file)

    assert (result.url, result.model, result.concurrency) == (server.url, MODEL, 4)
    assert result.complete
    assert result.server is not None
    assert result.output_tok_s is not None
    assert result.server.output_tok_s == pytest.approx(result.output_tok_s, rel=0.005)
    assert result.seconds == pytest.approx(4.0, abs=0.6)
    assert 0 < result.window_s < result.seconds

    assert all(row.ok for row in rows), [row.error for row in rows if not row.ok]
    assert (result.errors, result.cancelled, result.excluded) == (0, 0, 0)
    assert len({row.index for row in rows}) == len(rows)
    assert 0 < result.requests < len(rows)  # those of ramp and drain are rows, and not of the window
    ours = sum(row.completion_tokens or 0 for row in rows)
    assert after.counters[GENERATED] - before.counters[GENERATED] == ours
    finished = after.counters["request_success_total"] - before.counters["request_success_total"]
    assert finished == len(rows)


def test_table_says_what_users_look_for(home: Home, server: Server) -> None:
    code, output = home.run(
        "load", server.url.removeprefix("http://"), "-c", 2, "-d", 2, "--workload", "code", "--output-tokens",
        64, "--temperature", 0.5, "--top-p", 0.9, "--chat-template-kwargs", '{"enable_thinking": false}',
    )  # fmt: skip
    assert code == 0, output
    assert re.search(r"^ +p50 +p95 +p99$", output, re.M)
    for name in ("TTFT (ms)", "chunk gap (ms)", "decode tok/s a request"):
        assert re.search(rf"^{re.escape(name)} +[\d,.]+ +[\d,.]+ +[\d,.]+$", output, re.M), name
    assert re.search(r"^output +[\d,.]+ tok/s +\(the server says [\d,.]+\)$", output, re.M)
    assert re.search(r"^decode a stream +[\d,.]+ tok/s", output, re.M)
    assert re.search(r"^requests +\d+ finished in the window, 0 failed, 0 cancelled", output, re.M)
    assert re.search(r"^client +loop lag p99 [\d.]+ ms, CPU \d+% of a core", output, re.M)
    assert re.search(
        r"^server +(TTFT p50 about \d+ ms · )?step [\d.]+ ms .* KV max [\d.]+% · prefix hits 0.0%",
        output,
        re.M,
    )
    assert (
        'temperature 0.5 · top_p 0.9 · ignore_eos · chat_template_kwargs {"enable_thinking": false}; '
        "the rest: the server's defaults"
    ) in output
    assert "\x1b" not in output  # no status line where there is no terminal


def test_json_to_stdout_is_json_alone(home: Home, server: Server) -> None:
    finished = subprocess.run(
        [*SPARKTUI, "load", server.url, "-c", "1", "-d", "1.5", "--output-tokens", "64", "--json", "-"],
        cwd=home.path, env=home.env, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    value = json.loads(finished.stdout)
    assert {
        "ttft_ms",
        "chunk_gap_ms",
        "decode_tok_s",
        "output_tok_s",
        "requests",
        "errors",
        "cancelled",
    } <= set(value)
    assert value["client"].keys() == {"lag_ms_p99", "cpu", "limited"}
    assert value["ttft_ms"].keys() == value["chunk_gap_ms"].keys() == {"p50", "p95", "p99"}


def test_status_line_on_a_terminal(home: Home, server: Server) -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*SPARKTUI, "load", server.url, "-c", "2", "-d", "2.5", "--output-tokens", "64"],
        cwd=home.path, env=home.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
    )  # fmt: skip
    assert process.wait(60) == 0
    os.set_blocking(ours, False)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(theirs)
    assert re.search(r"2/2 s · 2 of 2 streams · out [\d,.]+ tok/s · TTFT \d+ ms", text), text
    assert text.endswith("\r\x1b[K")  # wiped, so that the table begins on a clean line


def on_a_terminal(home: Home, arguments: tuple[object, ...], columns: int, **extra: str) -> tuple[int, str]:
    """Exit code, and what a terminal of this width gets of both outputs."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*SPARKTUI, *map(str, arguments)],
        cwd=home.path, env=home.env | extra, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):  # EIO: the last writer has gone
        while data := os.read(ours, 65536):
            text += data
    os.close(ours)
    return process.wait(60), text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [40, 80])
def test_narrow_terminal(home: Home, server: Server, columns: int) -> None:
    """No line wraps: a wrapped status line could not be wiped."""
    arguments = ("load", server.url, "-c", 2, "-d", 1.5, "--output-tokens", 16)
    code, text = on_a_terminal(home, arguments, columns, TERM="xterm", COLUMNS="")
    assert code == 0, text
    assert "\r\x1b[K" in text
    assert max(len(part) for line in text.split("\n") for part in line.split("\r\x1b[K")) <= columns, text
    assert "too short for decode tok/s" in " ".join(text.split())


def test_terminal_that_can_t(home: Home, server: Server) -> None:
    arguments = ("load", server.url, "-c", 1, "-d", 1.5, "--output-tokens", 16)
    code, text = on_a_terminal(home, arguments, 120, TERM="dumb", NO_COLOR="1")
    assert code == 0, text
    assert "\x1b" not in text
    assert "\r" not in text


def test_rows_to_stdout_as_they_end(home: Home, server: Server) -> None:
    """Also for a reader that leaves early: it ends the load."""
    arguments = ("load", server.url, "-c", "1", "-d", "60", "--output-tokens", "16", "--rows", "-")
    process = subprocess.Popen(
        [*SPARKTUI, *arguments], cwd=home.path, env=home.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout as out, process.stderr as err:
        rows = [loads(RequestRow, out.readline()) for _ in range(3)]
        out.close()
        assert process.wait(30) == 0
        assert err.read() == b""
    assert [row.index for row in rows] == [0, 1, 2]


def test_rows_replace_a_file_and_a_full_disk_is_told(home: Home, server: Server) -> None:
    rows_file = home.path / "rows.jsonl"
    rows_file.write_text("old\n")
    arguments = ("load", server.url, "-c", 1, "-d", 1, "--output-tokens", 16)
    code, output = home.run(*arguments, "--rows", rows_file)
    assert code == 0, output
    assert rows_in(rows_file)
    code, output = home.run(*arguments, "--rows", "/dev/full")
    assert code == 2, output
    assert re.search(r"^TTFT \(ms\) +\d", output, re.M), "the figures are there all the same"
    assert "/dev/full: No space left on device" in output
    assert "Traceback" not in output


def test_prompts_that_can_t_be_as_short_as_asked_are_told(home: Home, server: Server) -> None:
    arguments = ("-c", 1, "-d", 1, "--input-tokens", 4, "--output-tokens", 16)
    code, output = home.run("load", server.url, *arguments, "--json", home.path / "r.json")
    assert code == 0, output
    told = r"prompts have \d+ tokens: without any text that is already more than 4"
    assert re.search(rf"^▲ +{told}$", output, re.M)
    assert re.search(told, " ".join(result_in(home.path / "r.json").flags))


def test_acceptance_and_memory_reads_stand_beside(home: Home, tmp_path: Path) -> None:
    config = json.dumps({"method": "eagle3", "model": "d", "num_speculative_tokens": 3})
    flags = ("--sim-model", "nemotron-super-gb10", "--speculative-config", config, "--enable-mfu-metrics")
    with stand_in(tmp_path, *flags) as server:
        code, output = home.run(
            "load", server.url, "-c", 1, "-d", 3, "--input-tokens", 64, "--output-tokens", 48,
            "--json", home.path / "r.json",
        )  # fmt: skip
    assert code == 0, output
    assert re.search(
        r"^acceptance +\d+\.\d%  \(by position \d+% / \d+% / \d+%, length \d\.\d\d\)$", output, re.M
    )
    found = result_in(home.path / "r.json").server
    assert found is not None
    assert len(found.acceptance_by_position) == 3
    assert found.read_gb_s
    assert f" · reads {found.read_gb_s:.0f} GB/s" in output


def test_arguments_are_all_sent(home: Home, server: Server) -> None:
    """Each sampling parameter that LoadSpec has can be given."""
    given: dict[str, Any] = {
        "temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": 0.1, "presence_penalty": 0.2,
        "frequency_penalty": 0.3, "repetition_penalty": 1.1,
    }  # fmt: skip
    flags = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]
    code, output = home.run(
        "load", server.url, "-c", 1, "-d", 1, "--output-tokens", 8, *flags, "--no-ignore-eos", "--quiet",
        "--json", home.path / "r.json",
    )  # fmt: skip
    assert code == 0, output
    assert result_in(home.path / "r.json").sampling == given


def test_one_answer_longer_than_the_load_is_measured(home: Home, server: Server) -> None:
    """Its first text opened the window and its end is no more in it: neither TTFT nor a finished request."""
    code, output = home.run(
        "load", server.url, "-c", 1, "-d", 2, "--output-tokens", 6000, "--json", home.path / "r.json"
    )
    result = result_in(home.path / "r.json")
    assert (result.requests, result.ttft_ms) == (0, {})
    assert result.output_tok_s
    assert code == 0, output
    assert "nothing could be measured" not in output

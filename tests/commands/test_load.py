"""``sparktui load`` against the stand-in, as its users run it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sparktui.schema.codec import loads
from sparktui.schema.records import LoadResult, RequestRow
from tests.commands.standin import MODEL, fault, no_faults, page, stand_in
from tests.contract.server import Server
from tests.support import Home, free_port, until

SPARKTUI = (sys.executable, "-m", "sparktui")
GENERATED = "generation_tokens_total"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A fast stand-in: its steps are short against a window of two seconds."""
    folder = tmp_path_factory.mktemp("server")
    with stand_in(folder, "--sim-model", "tiny-h200", "--max-num-seqs", "16") as made:
        yield made


@pytest.fixture(autouse=True)
def _nothing_left(home: Home) -> object:
    yield
    assert not home.processes()


def result_in(path: Path) -> LoadResult:
    return loads(LoadResult, path.read_bytes())


def rows_in(path: Path) -> list[RequestRow]:
    return [loads(RequestRow, text) for text in path.read_bytes().splitlines()]


def flagged(result: LoadResult, text: str) -> bool:
    return any(text in flag for flag in result.flags)


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
        r"^server +TTFT \d+ ms · step [\d.]+ ms .* KV max [\d.]+% · prefix hits 0.0%", output, re.M
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


def test_acceptance_by_position_stands_beside(home: Home, tmp_path: Path) -> None:
    config = json.dumps({"method": "eagle3", "model": "d", "num_speculative_tokens": 3})
    with stand_in(tmp_path, "--sim-model", "nemotron-super-gb10", "--speculative-config", config) as server:
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
        code, output = home.run("load", server.url, "-c", 2, "-d", 30, "--json", home.path / "r.json")
    finally:
        no_faults(server)
    assert code == 1
    assert re.search(r"nothing could be measured: HTTP 503", output)
    result = result_in(home.path / "r.json")
    assert result.output_tok_s is None
    assert result.requests == 0
    assert result.errors >= 2
    assert result.seconds < 15, "it gives up on a server that only refuses"


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


def test_server_not_there(home: Home, tmp_path: Path) -> None:
    code, output = home.run("load", f"http://127.0.0.1:{free_port()}", "-c", 1, "-d", 1)
    assert code == 3
    assert "/v1/models: " in output
    with stand_in(tmp_path, "--api-key", "sk-not-for-your-eyes", key="sk-not-for-your-eyes") as server:
        rows_file = home.path / "rows.jsonl"
        code, output = home.run("load", server.url, "-c", 1, "-d", 1, "--rows", rows_file)
        assert code == 3
        assert "HTTP 401: the server wants an API key; set VLLM_API_KEY in the environment" in output
        assert not rows_file.exists(), "nothing is left behind"
        home.extra = {"VLLM_API_KEY": "sk-not-for-your-eyes"}
        json_file = home.path / "r.json"
        arguments = ("-c", 1, "-d", 1, "--output-tokens", 16, "--input-tokens", 32)
        code, output = home.run("load", server.url, *arguments, "--json", json_file, "--rows", rows_file)
    assert code == 0, output
    assert "sk-not" not in output + json_file.read_text() + rows_file.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-c", "0", "-d", "1"), "'0' is not a number from 1 to 4096"),
        (("-c", "1", "-d", "0"), "'0' is not a number of seconds above 0"),
        (("-c", "1", "-d", "inf"), "'inf' is not a number of seconds above 0"),
        (("-c", "1"), "-d/--duration"),
        (("-c", "1", "-d", "1", "--workload", "chta"), "no workload 'chta'; did you mean chat? There are chat, "),
        (("-c", "1", "-d", "1", "--workload", "file:none.jsonl"), "none.jsonl"),
        (("-c", "1", "-d", "1", "--workload", "file:bad.jsonl"), "bad.jsonl:2: "),
        (("-c", "1", "-d", "1", "--json", "no/r.json"), "no/r.json: No such file or directory"),
        (("-c", "1", "-d", "1", "--rows", "."), ".: Is a directory"),
        (("-c", "1", "-d", "1", "--chat-template-kwargs", "[1]"), "'[1]' is no JSON object"),
        (("-c", "1", "-d", "1", "--output-tokens", "0"), "'0' is not a number from 1"),
    ],
    ids=[
        "no stream", "no time", "endless", "no duration", "workload", "no file", "bad file", "json", "rows",
        "template", "no output",
    ],
)  # fmt: skip
def test_wrong_usage(home: Home, arguments: tuple[str, ...], said: str) -> None:
    good = '{"messages": [{"role": "user", "content": "hello"}]}'
    (home.path / "bad.jsonl").write_text(f"{good}\n{{\n")
    code, output = home.run("load", "http://127.0.0.1:9", *arguments)
    assert code == 2, output
    assert said in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    "url", ["ftp://box", "http://", "http://box:99999", "http://me:secret@box:8000"],
    ids=["scheme", "no host", "port", "secret"],
)  # fmt: skip
def test_bad_url(home: Home, url: str) -> None:
    code, output = home.run("load", url, "-c", 1, "-d", 1)
    assert code == 2, output
    assert "secret@" not in output


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

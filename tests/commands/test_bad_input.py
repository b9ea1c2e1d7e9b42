"""Bad input: a plain message, the design's exit code, nothing left running."""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path

import psutil
import pytest

from tests.support import FAST, Home, until

pytestmark = pytest.mark.usefixtures("nothing_left")


def no_traceback(output: str) -> None:
    assert "Traceback" not in output.split("server.log")[0], output


def test_unknown_key_names_file_line_and_the_right_word(home: Home) -> None:
    path = home.profile()
    path.write_text(path.read_text() + "prot: 8000\n")
    code, output = home.run("ab", path)
    assert code == 2
    assert "fast.yaml:11: " in output
    assert "prot" in output
    assert "port" in output.replace("prot", "")
    no_traceback(output)
    assert not home.runs()


def test_wrong_type(home: Home) -> None:
    path = home.profile(text=FAST.replace("port: {port}", "port: eighty # {port}"))
    code, output = home.run("run", path, "--plain")
    assert code == 2
    assert "fast.yaml:4: " in output
    assert "eighty" in output


def test_unknown_profile_and_variant(home: Home) -> None:
    code, output = home.run("ab", "dmeo")
    assert code == 2
    assert "demo" in output
    code, output = home.run("ab", f"{home.profile()}:off,onn")
    assert code == 2
    assert "onn" in output


def test_one_variant_is_no_comparison(home: Home) -> None:
    code, output = home.run("ab", f"{home.profile()}:on")
    assert code == 2
    assert "two variants" in output


def test_bad_loads_and_unwritable_report(home: Home, tmp_path: Path) -> None:
    assert home.run("ab", "demo", "-c", "0")[0] == 2
    assert home.run("ab", "demo", "-c", "one")[0] == 2
    code, output = home.run("ab", "demo", "--json", tmp_path / "no" / "r.json")
    assert code == 2
    assert "no such folder" in output


def test_program_that_is_not_there(home: Home) -> None:
    text = FAST.replace("runner: sim", "runner: local\nvllm_bin: /nowhere/vllm").replace(
        ", sim-boot-seconds: {boot}", ""
    )
    code, output = home.run("ab", home.profile(text=text), "-c", 1)
    assert code == 3
    assert "/nowhere/vllm: no such program" in output


def test_port_taken(home: Home) -> None:
    path = home.profile()
    port = int(path.read_text().split("port: ")[1].split()[0])
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        code, output = home.run("ab", path, "-c", 1)
    assert code == 1
    assert f"port {port} is taken by " in output
    no_traceback(output)


def test_server_that_dies_at_boot_says_its_root_cause(home: Home) -> None:
    code, output = home.run("ab", home.profile(args="sim-fail: engine-oom"), "-c", 1)
    assert code == 1
    assert "OutOfMemoryError: CUDA out of memory" in output
    no_traceback(output)


def test_unknown_vllm_flag_is_the_root_cause(home: Home) -> None:
    code, output = home.run("run", home.profile(args="no-such-flag: 3"), "--plain")
    assert code == 1
    assert "unrecognized arguments: --no-such-flag 3" in output


def test_server_that_never_gets_ready(home: Home) -> None:
    code, output = home.run("ab", home.profile(args="sim-fail: never-ready", ready=3), "-c", 1)
    assert code == 1
    assert "not ready after 3 s" in output


def test_no_key_for_a_server_that_wants_one(home: Home) -> None:
    """A user's wrapper has the key, and we don't."""
    wrapper = home.path / "vllm"
    run = f'exec {sys.executable} -m sparktui sim "$@" --sim-boot-seconds 0.3'
    wrapper.write_text(f"#!/bin/sh\nexport VLLM_API_KEY=sk-of-the-server\n{run}\n")
    wrapper.chmod(0o755)
    text = FAST.replace("runner: sim", f"runner: local\nvllm_bin: {wrapper}")
    code, output = home.run("ab", home.profile(text=text.replace(", sim-boot-seconds: {boot}", "")), "-c", 1)
    assert code == 1, output
    assert "HTTP 401" in output
    assert "VLLM_API_KEY" in output
    assert "sk-of-the-server" not in output
    no_traceback(output)


def test_key_from_env_file_opens_the_server_and_is_nowhere(home: Home) -> None:
    secret = "sk-not-for-your-eyes"
    (home.path / "keys.env").write_text(f"VLLM_API_KEY={secret}\n")
    process = home.start("ab", home.profile(boot=0.3, text=FAST + "env_file: keys.env\n"), "-c", 1)
    loads = until(lambda: command_lines(home, "sparktui.load"), what="the load process")
    told = [*loads, *command_lines(home)]
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert not [line for line in told if secret in line]
    assert secret not in output
    for file in home.only_run().path.rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file


def command_lines(home: Home, text: str = "") -> list[str]:
    """Of every process that was started from here, if it has ``text`` in it."""
    lines = []
    for process in home.processes():
        with contextlib.suppress(psutil.Error):
            lines.append(" ".join(process.cmdline()))
    return [line for line in lines if text in line]


def test_key_from_the_environment_opens_the_server(home: Home) -> None:
    home.extra = {"VLLM_API_KEY": "sk-from-the-environment"}
    code, output = home.run("ab", home.profile(boot=0.3), "-c", 1)
    assert code == 0, output
    for file in home.only_run().path.rglob("*"):
        assert not file.is_file() or b"sk-from-the-environment" not in file.read_bytes(), file


def test_metrics_with_nonsense_still_gives_the_clients_figures(home: Home, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    path = home.profile(args="sim-fail: metrics-nonsense")
    code, output = home.run("ab", path, "-c", 1, "--json", report)
    assert code == 0, output
    assert "▲ /metrics: " in output
    assert output.count("/metrics: ") <= 4  # told once a boot, not once a scrape
    assert '"decode_tok_s": null' not in report.read_text()


def test_requests_that_hang(home: Home) -> None:
    code, output = home.run("ab", home.profile(args="sim-fail: hang-requests"), "-c", 2)
    assert code == 1
    assert "no data for 3 s" in output


def test_escape_codes_never_reach_the_terminal(home: Home) -> None:
    text = FAST.replace("name: fast", 'name: "fa\\e[31mst"')
    code, output = home.run("show", home.profile(text=text))
    assert "\x1b" not in output
    code, output = home.run("ab", "de\x1b[31mmo")
    assert code == 2
    assert "\x1b" not in output


def test_stop_of_what_is_not_there(home: Home) -> None:
    assert home.run("stop", "nothing-of-that-name")[0] == 2
    assert home.run("stop")[0] == 2
    code, output = home.run("stop", "--all")
    assert code == 0
    assert "nothing runs" in output
    assert home.run("once")[0] == 1

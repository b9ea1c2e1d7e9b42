"""Starting a server: where its input and output go, what its environment is, which signals it hears."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparktui.schema.launch import LaunchSpec
from sparktui.server.local import LaunchError, environment, start
from tests.server.processes import PATIENCE_S

TELL = """
import json, os, sys
print(json.dumps({
    "stdin": os.readlink("/proc/self/fd/0"), "sid": os.getsid(0), "pid": os.getpid(), "argv": sys.argv[1:],
    "fds": sorted(map(int, os.listdir("/proc/self/fd"))), "env": dict(os.environ),
    "cmdline": open("/proc/self/cmdline").read(),
}))
print("on stderr", file=sys.stderr)
"""
Start = Callable[..., "subprocess.Popen[bytes]"]


def spec(*argv: str, **values: Any) -> LaunchSpec:
    fields: dict[str, Any] = {"argv": argv, "host": "127.0.0.1", "port": 8000, "model": "m"} | values
    return LaunchSpec(profile="p", variant="off", runner="local", speculating=False, **fields)


def telling(*args: str, **values: Any) -> LaunchSpec:
    return spec(sys.executable, "-c", TELL, *args, **values)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def begin(log: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(what: LaunchSpec, inherited: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        process = start(what, log, dict(os.environ) if inherited is None else inherited)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait(PATIENCE_S)


def told(
    begin: Start, log: Path, what: LaunchSpec, inherited: dict[str, str] | None = None
) -> dict[str, Any]:
    """What the server said about itself."""
    assert begin(what, inherited).wait(PATIENCE_S) == 0
    (line,) = [text for text in log.read_text("utf-8").splitlines() if text.startswith("{")]
    said: dict[str, Any] = json.loads(line)
    return said


@pytest.fixture
def own_stdin() -> Iterator[None]:
    """An open pipe as our own stdin, as a terminal would be: under pytest it is /dev/null already."""
    before, (read, write) = os.dup(0), os.pipe()
    os.dup2(read, 0)
    yield
    os.dup2(before, 0)
    for number in (before, read, write):
        os.close(number)


@pytest.mark.usefixtures("own_stdin")
def test_it_has_no_terminal_and_a_session_of_its_own(begin: Start, log: Path) -> None:
    said = told(begin, log, telling())
    assert said["stdin"] == "/dev/null"
    assert said["sid"] == said["pid"] != os.getsid(0)
    assert said["fds"][:3] == [0, 1, 2]
    assert len(said["fds"]) == 4  # the listing itself is the fourth


def test_both_outputs_are_appended_to_the_log(begin: Start, log: Path) -> None:
    log.write_text("an earlier boot\n")
    told(begin, log, telling())
    lines = log.read_text("utf-8").splitlines()
    assert lines[0] == "an earlier boot"
    assert "on stderr" in lines
    assert len(lines) == 3


def test_arguments_meet_no_shell(begin: Start, log: Path) -> None:
    args = ["$(touch pwned)", "; exit 1", "*", "a b", '{"k": 3}', "~", "é\n"]
    assert told(begin, log, telling(*args))["argv"] == args


def test_the_environment_in_order(begin: Start, log: Path, tmp_path: Path) -> None:
    secrets = tmp_path / "keys.env"
    secrets.write_text("HF_TOKEN=hf_secret\nBOTH=secret\n")
    what = telling(env={"LEVEL": "profile", "BOTH": "profile"}, env_file=str(secrets))
    said = told(
        begin, log, what, {"LEVEL": "inherited", "KEPT": "1", "NO_COLOR": "", "PATH": os.environ["PATH"]}
    )
    env = said["env"]
    assert {name: env[name] for name in ("LEVEL", "KEPT", "BOTH", "HF_TOKEN")} == {
        "LEVEL": "profile", "KEPT": "1", "BOTH": "secret", "HF_TOKEN": "hf_secret",
    }  # fmt: skip
    assert (env["NO_COLOR"], env["VLLM_LOGGING_COLOR"], env["PYTHONUNBUFFERED"]) == ("1", "0", "1")
    assert "hf_secret" not in said["cmdline"]
    assert "hf_secret" not in repr(what)


def test_a_profile_may_ask_for_colour_all_the_same() -> None:
    assert environment(spec("x", env={"NO_COLOR": "0"}), {})["NO_COLOR"] == "0"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# note\n\n  \nA=1\n", {"A": "1"}),
        ("export A=1\nexport  B = 2 \n", {"A": "1", "B": "2"}),
        ("A='a b'\nB=\"c=d\"\nC='\nD=\"x'\n", {"A": "a b", "B": "c=d", "C": "'", "D": "\"x'"}),
        ("A=\nB=x#y\n", {"A": "", "B": "x#y"}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("A=$(id)\n", {"A": "$(id)"}),
        ("A=1\nA=2", {"A": "2"}),
    ],
)
def test_env_file(tmp_path: Path, text: str, values: dict[str, str]) -> None:
    path = tmp_path / "keys.env"
    path.write_bytes(text.encode())
    plain = environment(spec("x"), {})
    assert environment(spec("x", env_file=str(path)), {}) == plain | values


@pytest.mark.parametrize(
    "line", ["hf_secret", "=hf_secret", "a b=hf_secret", "$X=hf_secret", "export hf_secret"]
)
def test_a_broken_line_of_env_file_is_named_and_not_shown(tmp_path: Path, log: Path, line: str) -> None:
    path = tmp_path / "keys.env"
    path.write_text(f"A=1\n# fine\n{line}\n")
    with pytest.raises(LaunchError) as caught:
        start(telling(env_file=str(path)), log, {})
    assert str(caught.value) == f"env_file {path}:3: expected NAME=value"


def test_an_env_file_that_cannot_be_read_is_named(tmp_path: Path, log: Path) -> None:
    missing, binary = tmp_path / "none.env", tmp_path / "bin.env"
    binary.write_bytes(b"A=\xff\xfe\n")
    for path in (missing, binary, tmp_path):
        with pytest.raises(LaunchError, match=f"^env_file {path}: "):
            start(telling(env_file=str(path)), log, {})


def test_a_program_that_is_not_there_is_named(log: Path) -> None:
    with pytest.raises(LaunchError) as caught:
        start(spec("/nowhere/vllm", "serve"), log, {})
    assert str(caught.value) == "/nowhere/vllm: no such program"


def test_a_program_that_may_not_run_is_named(tmp_path: Path, log: Path) -> None:
    plain = tmp_path / "vllm"
    plain.write_text("not a program")
    for path in (plain, tmp_path):
        with pytest.raises(LaunchError, match=f"^{path}: Permission denied$"):
            start(spec(str(path)), log, {})


SIGNALS = """
import os, pathlib, signal, sys
from sparktui.schema.launch import LaunchSpec
from sparktui.server.local import reset_signals, start

def shows(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    lines = [line.split() for line in text.splitlines() if line.startswith(("SigIgn", "SigBlk"))]
    masks = {name: int(value, 16) for name, value in lines}
    return [bool(masks[field] >> (number - 1) & 1) for field, number in
            (("SigIgn:", signal.SIGINT), ("SigIgn:", signal.SIGHUP), ("SigBlk:", signal.SIGTERM))]

def child():
    spec = LaunchSpec("p", "off", "local", ("sleep", "60"), "127.0.0.1", 8000, "m", False)
    process = start(spec, pathlib.Path(sys.argv[1]), os.environ)
    try:
        return shows(process.pid)
    finally:
        process.kill()
        process.wait()

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print(child())
reset_signals()
print(child())
"""


def test_a_server_hears_the_signals_that_a_background_shell_took_from_us(log: Path) -> None:
    """A job started with ``&`` or nohup has SIGINT and SIGHUP ignored, and children inherit that."""
    script = 'trap "" INT HUP; exec "$0" -c "$1" "$2"'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, SIGNALS, str(log)],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["[True, True, True]", "[False, False, False]"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

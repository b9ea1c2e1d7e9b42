"""``sparktui explain``, from the command line."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from sparktui.cli import main
from tests.bootlog.logs import LOGS, log_bytes
from tests.bootlog.test_boots import RECORDED
from tests.cases.boots import READY, engine, server

ROOT = Path(__file__).parents[2]
NGRAM = "0.24.0-h200/boot_fi_ngram.log"
FAILED = "0.32.0-cpu/fail_suffix.log"
KEYS = {
    "schema", "vllm_version", "ready", "phases", "findings", "facts", "expected", "root_cause", "graph_steps",
    "lines", "boot", "boots", "first_line", "last_line",
}  # fmt: skip
PROFILE = """\
name: tiny
runner: local
vllm_bin: /nowhere/vllm
model: /models/tiny-1b
port: 8123
args: {max-num-seqs: 64}
speculative: {method: ngram, num_speculative_tokens: 3}
expect: ["Using V1", {when: spec, line: "setting cudagraph_mode=PIECEWISE"}, {when: off, line: "never said"}]
"""

Captured = pytest.CaptureFixture[str]


def text_of(capsys: Captured, *args: object) -> tuple[int, str]:
    code = main(["explain", *map(str, args)])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, captured.out


def json_of(capsys: Captured, *args: object) -> tuple[int, dict[str, Any]]:
    code, out = text_of(capsys, *args, "--json")
    return code, json.loads(out)


def refused(capsys: Captured, *args: object) -> str:
    """The complaint of a command that exits with 2."""
    assert main(["explain", *map(str, args)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def written(path: Path, *lines: str) -> Path:
    file = path / "made.log"
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8", errors="surrogateescape")
    return file


def controls(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char).startswith("C") and char != "\n"}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_logs_in_80_columns(name: str, capsys: Captured) -> None:
    code, out = text_of(capsys, LOGS / name)
    # the last one's engine was killed while it served
    failed = Path(name).name.startswith(("fail", "boot_fail", "runtime-crash", "boot_off_pipe"))
    assert code == failed
    assert ("✖ root cause: " in out) is failed
    assert max(map(len, out.splitlines())) <= 80
    assert not controls(out)
    assert out.startswith("vLLM ")


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_logs_as_json(name: str, capsys: Captured) -> None:
    code, told = json_of(capsys, LOGS / name)
    assert code == (told["root_cause"] is not None)
    assert told.keys() == KEYS
    assert told["schema"] == 1
    assert all(phase.keys() == {"name", "start", "seconds", "quiet"} for phase in told["phases"])
    wanted = {"id", "severity", "line", "text", "meaning", "cost", "remedy"}
    assert told["findings"]
    assert all(finding.keys() >= wanted for finding in told["findings"])
    assert not controls(json.dumps(told, ensure_ascii=False))
    assert told["lines"] == log_bytes(name).count(b"\n")


def test_the_costly_line_stands_first_and_whole(capsys: Captured) -> None:
    code, out = text_of(capsys, LOGS / NGRAM)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "vLLM 0.24.0, ready after 80 s"
    first = lines.index("Findings") + 1
    assert lines[first] == "▲ costs speed, line 34 [cg-spec-piecewise]"
    text = " ".join(line.strip() for line in lines[first + 1 : first + 5])
    assert text.startswith("CUDAGraphMode.FULL_AND_PIECEWISE is not supported with spec-decode")
    assert text.endswith("setting cudagraph_mode=PIECEWISE")
    assert lines[first + 5].startswith("  means: ")
    assert "costs speed, line 12 [spec-async-off]" in out
    assert "cudagraph_mode PIECEWISE" in out
    assert "steps: 0 % of steps FULL, 100 % PIECEWISE" in out


def test_notes_take_a_line_and_the_harmless_are_counted(capsys: Captured) -> None:
    _, out = text_of(capsys, LOGS / NGRAM)
    notes = [line for line in out.splitlines() if line.startswith("· line ")]
    (runner,) = [note for note in notes if "Model Runner V2" in note]
    assert runner.startswith("· line 15")
    assert runner.endswith("model runner instead.")
    assert all(len(note) <= 80 for note in notes)
    assert re.search(r"^  \d harmless \(--all lists them\)$", out, re.MULTILINE)
    assert "Found ulimit" not in out
    _, everything = text_of(capsys, LOGS / NGRAM, "--all")
    assert "· harmless, line 8 [ulimit]" in everything
    assert "--all lists" not in everything


def test_a_failed_boot_says_why_first(capsys: Captured) -> None:
    code, out = text_of(capsys, LOGS / FAILED)
    assert code == 1
    assert out.splitlines()[:2] == [
        "vLLM 0.32.0, the boot failed in phase config",
        "✖ root cause: ImportError: Arctic Inference is required for suffix decoding.",
    ]


def test_expected_texts(capsys: Captured) -> None:
    code, out = text_of(capsys, LOGS / NGRAM, "--expect", "setting cudagraph_mode=PIECEWISE")
    assert code == 0
    assert "  ✔ setting cudagraph_mode=PIECEWISE (line 34)" in out
    code, out = text_of(capsys, LOGS / NGRAM, "--expect", "[red]MARLIN[/x]", "--expect", "FlashInfer")
    assert code == 1
    assert "  ✖ [red]MARLIN[/x] (missing)" in out


@pytest.mark.parametrize(
    ("variant", "expected"), [("on", ["Using V1", "setting"]), ("off", ["Using V1", "never"])]
)
def test_a_profile_brings_its_expected_lines(
    variant: str, expected: list[str], tmp_path: Path, capsys: Captured
) -> None:
    profile = tmp_path / "tiny.yaml"
    profile.write_text(PROFILE)
    code, told = json_of(capsys, LOGS / NGRAM, "--profile", f"{profile}:{variant}")
    assert [line["text"].startswith(e) for line, e in zip(told["expected"], expected, strict=True)] == [
        True
    ] * 2
    assert code == any(not line["met"] for line in told["expected"])


def test_a_profile_brings_its_arguments(tmp_path: Path, capsys: Captured) -> None:
    profile = tmp_path / "tiny.yaml"
    profile.write_text(PROFILE.replace("64", "128"))
    _, told = json_of(capsys, LOGS / NGRAM, "--profile", f"{profile}:on")
    assert any("128" in finding["text"] for finding in told["findings"])


def test_a_profile_that_is_not_there(capsys: Captured) -> None:
    assert "no-such-profile" in refused(capsys, LOGS / NGRAM, "--profile", "no-such-profile")


def test_several_boots(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "server.log"
    file.write_bytes(log_bytes(FAILED) + log_bytes(NGRAM) + log_bytes("0.27.1-cpu/boot_off.log"))
    code, out = text_of(capsys, file)
    assert code == 0
    assert out.splitlines()[0].startswith("vLLM 0.27.1")
    lines = file.read_bytes().decode().split("\n")[:-1]
    banner = max(number for number, line in enumerate(lines, 1) if "█▄   ▄█" in line)
    assert out.splitlines()[1] == f"boot 3 of 3, lines {banner}-{len(lines)}; --boot N for another"
    code, told = json_of(capsys, file, "--boot", 1)
    assert code == 1
    assert (told["boot"], told["boots"], told["first_line"]) == (1, 3, 1)
    _, out = text_of(capsys, file, "--boot", 2)
    line = log_bytes(FAILED).count(b"\n") + 34
    assert f"▲ costs speed, line {line} [cg-spec-piecewise]" in out
    assert "there is no boot 4" in refused(capsys, file, "--boot", 4)


@pytest.mark.parametrize("number", ["0", "-1", "two"])
def test_a_boot_is_a_number_from_1(number: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["explain", "some.log", f"--boot={number}"])
    assert exit_.value.code == 2
    assert "is not a number from 1" in capsys.readouterr().err


def test_foreign_text_can_do_nothing(tmp_path: Path, capsys: Captured) -> None:
    nasty = "\x1b]0;owned\x07\x1b[31m[red]\u202e[/x]\x9b2J"
    file = written(
        tmp_path,
        *server(
            "version 0.27.1", f"non-default args: {{'model': '/m{nasty}\\x1b[2J\\ud800', 'seed': 1e999}}"
        ),
        *engine(f"ValueError: {nasty} No available memory for the cache blocks", level="ERROR"),
    )
    code, out = text_of(capsys, file, "--all")
    assert code == 1
    assert not controls(out)
    assert "[red][/x]" in out
    code, told = json_of(capsys, file)
    assert code == 1
    main(["explain", str(file), "--json"])
    assert not controls(capsys.readouterr().out)
    assert told["facts"]["non_default_args"]["seed"] is None


def test_a_very_long_line_keeps_its_end(tmp_path: Path, capsys: Captured) -> None:
    text = "CUDAGraphMode.FULL is not supported with spec-decode for attention backend B (support: X); "
    text += "setting cudagraph_mode=PIECEWISE" + " x" * 200_000
    note = f"Model Runner V2 does not yet support {'very ' * 30}much; using the V1 model runner instead"
    file = written(tmp_path, *server("version 0.27.1", text, note, level="WARNING"), READY)
    _, out = text_of(capsys, file)
    assert "[cg-spec-piecewise]" in out
    assert max(map(len, out.splitlines())) <= 80
    assert len(out.splitlines()) < 60
    assert "runner instead" in out


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "empty"),
        (bytes(range(256)) * 100, "not a text file"),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 500, "not a text file"),
        ("(APIServer pid=1)".encode("utf-16"), "UTF-16 text"),
        (b"some other program\nready\n", "not a line of vLLM in it"),
        (b"\n\n", "not a line of vLLM in it"),
        (gzip.compress(b"(APIServer pid=1) hello\n" * 1000, mtime=0)[:40], "ended before the end"),
        (b"\x1f\x8bnot gzip at all", "nknown compression method"),
    ],
)
def test_files_that_are_no_log(data: bytes, complaint: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "x.log"
    file.write_bytes(data)
    said = refused(capsys, file)
    assert str(file) in said
    assert complaint in said


def test_files_that_cannot_be_read(tmp_path: Path, capsys: Captured) -> None:
    assert f"{tmp_path}: Is a directory" in refused(capsys, tmp_path)
    assert "No such file" in refused(capsys, tmp_path / "gone.log")


def test_a_log_that_was_emptied_under_its_writer(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "x.log"
    file.write_bytes(b"\0" * 100_000 + log_bytes(NGRAM))
    assert text_of(capsys, file)[1].startswith("vLLM 0.24.0")


def test_gzip(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "server.log.1.gz"
    file.write_bytes(gzip.compress(log_bytes(NGRAM)))
    assert text_of(capsys, file) == text_of(capsys, LOGS / NGRAM)


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(packed: bool, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    data = log_bytes(NGRAM)
    piped(monkeypatch, gzip.compress(data) if packed else data)
    assert text_of(capsys, "-") == text_of(capsys, LOGS / NGRAM)
    piped(monkeypatch, b"")
    assert "standard input: empty" in refused(capsys, "-")


def test_ctrl_c_explains_what_came_so_far() -> None:
    command = [sys.executable, "-m", "sparktui", "explain", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(log_bytes(NGRAM) + b"x" * (1 << 20))  # more than a pipe holds: it is being read
        process.stdin.flush()
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout is not None
        out = process.stdout.read().decode()
        assert process.wait() == 0
        assert out.startswith("vLLM 0.24.0, ready after 80 s")


def test_secrets_are_not_shown(tmp_path: Path, capsys: Captured) -> None:
    secret = "sk-0123456789abcdef0123"
    refusal = f"vllm serve: error: unrecognized arguments: --api-kye {secret}"
    file = written(
        tmp_path, *server("version 0.27.1", f"non-default args: {{'api_key': ['{secret}']}}"), refusal
    )
    for args in ((file,), (file, "--all"), (file, "--json")):
        code, out = text_of(capsys, *args)
        assert code == 1
        assert "unrecognized arguments" in out
        assert secret not in out


def documented_rules() -> str:
    """The example of the user's guide."""
    return (ROOT / "docs" / "boot-log.md").read_text("utf-8").split("```yaml\n")[1].split("```")[0]


def test_rules_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "sparktui" / "rules"
    folder.mkdir(parents=True)
    (folder / "site.yaml").write_text(documented_rules(), "utf-8")
    _, told = json_of(capsys, LOGS / NGRAM)
    limit = next(finding for finding in told["findings"] if finding["id"] == "ulimit")
    assert limit["severity"] == "note"
    assert limit["meaning"] == "At most 20000 open files, too few for our load tests."
    file = written(tmp_path, *server("version 0.27.1", "Retrying download of a.bin (attempt 3)"))
    _, told = json_of(capsys, file)
    assert [finding["id"] for finding in told["findings"]] == ["site-proxy-slow"]
    (folder / "site.yaml").write_text("mine:\n  neds: x\n")
    said = refused(capsys, LOGS / NGRAM)
    assert "site.yaml:2" in said
    assert "neds" in said

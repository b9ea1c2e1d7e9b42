"""``sparktui diff``, from the command line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from sparktui.cli import main
from sparktui.schema.bootlog import BootDifference
from sparktui.schema.codec import loads
from tests.bootlog.logs import LOGS, log_bytes

H200 = LOGS / "0.24.0-h200"
OFF, DRAFT, FAILED = H200 / "boot_off.log", H200 / "boot_draft.log", H200 / "boot_fail_missing_flashinfer.log"

Captured = pytest.CaptureFixture[str]


def diff(capsys: Captured, *args: object) -> list[str]:
    assert main(["diff", *map(str, args)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out.splitlines()


def test_what_speculation_changed(capsys: Captured) -> None:
    lines = diff(capsys, OFF, DRAFT)
    assert len(lines) <= 5
    assert lines[0] == "speculation: off → draft_model /models/tiny-draft, k=3"
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "scheduler",
        "graphs and kernels",
        "memory",
        "findings",
    ]


def test_no_difference(capsys: Captured) -> None:
    assert diff(capsys, OFF, OFF) == ["no difference"]


def test_json_is_the_schemas(capsys: Captured) -> None:
    found = loads(BootDifference, "\n".join(diff(capsys, OFF, DRAFT, "--json")))
    assert {change.name for change in found.facts} >= {"spec_method", "async_scheduling", "kv_cache_tokens"}
    assert "spec-async-off" in {finding.id for finding in found.only_b}
    assert list(found.text) == diff(capsys, OFF, DRAFT)


def test_a_failed_boot_comes_first(capsys: Captured) -> None:
    first = diff(capsys, OFF, FAILED)[0]
    assert (
        first == "boot: A got ready after 59 s; B failed: ModuleNotFoundError: No module named 'flashinfer'"
    )


def test_two_boots_of_one_file(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "server.log"
    file.write_bytes(OFF.read_bytes() + DRAFT.read_bytes())
    lines = diff(capsys, file, file, "--boot-a", 1, "--boot-b", 2)
    assert lines[:4] == diff(capsys, OFF, DRAFT)[:4]
    line = OFF.read_bytes().count(b"\n") + 14
    assert f"spec-async-off (line {line})" in lines[4]
    assert diff(capsys, file, DRAFT) == ["no difference"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    data = io.BufferedReader(io.BytesIO(log_bytes("0.24.0-h200/boot_draft.log")))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(data))
    assert diff(capsys, OFF, "-")[0] == "speculation: off → draft_model /models/tiny-draft, k=3"


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("-", "-"), "only one of the two logs can be standard input"),
        ((OFF, H200), "Is a directory"),
        (("gone.log", OFF), "gone.log: No such file"),
        ((OFF, DRAFT, "--boot-b", 2), "boot_draft.log: it holds one boot; there is no boot 2"),
    ],
)
def test_wrong_usage(args: tuple[object, ...], complaint: str, capsys: Captured) -> None:
    assert main(["diff", *map(str, args)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert complaint in captured.err

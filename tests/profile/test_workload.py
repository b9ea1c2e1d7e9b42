"""``load: {workload: …}``: a known name, or a prompt file that is there and is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparktui.profile.argv import plan
from sparktui.schema.workloads import WORKLOADS
from tests.profile.make import HOME, errors, profile, write

USER = '[{"role": "user", "content": "Hi"}]\n'


def made(folder: Path, workload: str) -> str:
    return profile(folder, f"model: m\nload: {{workload: {workload}}}\n").load.workload


def problems(folder: Path, workload: str) -> list[str]:
    return errors(folder, f"model: m\nload:\n  seed: 1\n  workload: {workload}\n")


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_every_known_name(tmp_path: Path, name: str) -> None:
    assert made(tmp_path, name) == name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("chta", "got 'chta'; did you mean 'chat'?"),
        ("shared_prefix", "got 'shared_prefix'; did you mean 'shared-prefix'?"),
        ("Code", "got 'Code'; did you mean 'code'?"),
        ("sharegpt", "got 'sharegpt'"),
        ("prompts.jsonl", "got 'prompts.jsonl'"),
    ],
)
def test_an_unknown_name_is_told_with_the_known_ones(tmp_path: Path, name: str, says: str) -> None:
    (problem,) = problems(tmp_path, name)
    known = "chat, code, long, coder, shared-prefix, repeat or file:PATH"
    assert problem == f"4: load.workload: expected {known}, {says}"


def test_a_file_is_found_beside_the_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "a.jsonl").write_text(USER)
    monkeypatch.chdir("/")
    read = profile(tmp_path, "model: m\nload: {workload: 'file:prompts/a.jsonl'}\n")
    wanted = f"file:{tmp_path}/prompts/a.jsonl"
    assert read.load.workload == wanted
    assert plan(read, ["base"], environ=HOME).load.workload == wanted


def test_a_profile_named_by_a_relative_path_gives_an_absolute_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sparktui.profile.decode import load

    (tmp_path / "a.jsonl").write_text(USER)
    write(tmp_path, "model: m\nload: {workload: 'file:a.jsonl'}\n")
    monkeypatch.chdir(tmp_path)
    assert load(Path("spark.yaml")).load.workload == f"file:{tmp_path}/a.jsonl"


def test_a_file_may_be_absolute_or_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_text(USER)
    elsewhere = tmp_path / "profiles"
    elsewhere.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert made(elsewhere, f"file:{tmp_path}/a.jsonl") == f"file:{tmp_path}/a.jsonl"
    assert made(elsewhere, "file:~/a.jsonl") == f"file:{tmp_path}/a.jsonl"


def test_a_missing_file_is_told_at_the_profiles_line(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "file:a.jsonl")
    assert problem == f"4: load.workload: {tmp_path}/a.jsonl: there is no such file"


def test_a_broken_line_is_told_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(USER + '{"prompt": "Hi"}\n')
    (problem,) = problems(tmp_path, "file:a.jsonl")
    assert problem.startswith(f"4: load.workload: {tmp_path}/a.jsonl:2: expected ")


@pytest.mark.parametrize("written", ["'file:'", "'file:  '"])
def test_a_file_without_a_path(tmp_path: Path, written: str) -> None:
    (problem,) = problems(tmp_path, written)
    assert problem.startswith("4: load.workload: expected file:PATH with the path of a prompt file, got ")


def test_a_home_that_nobody_has(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "file:~no-such-user-here/a.jsonl")
    assert problem == "4: load.workload: there is no home folder for '~no-such-user-here/a.jsonl'"


@pytest.mark.parametrize("written", ["[chat]", "''", "{a: b}"])
def test_what_is_no_text(tmp_path: Path, written: str) -> None:
    (problem,) = problems(tmp_path, written)
    assert problem.startswith("4: load.workload: expected text, got ")

"""``sparktui load`` where its arguments, its files or its server are not as they should be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sparktui.commands.endpoint import base_url, check_writable
from tests.standin import stand_in
from tests.support import Home, free_port

pytestmark = pytest.mark.usefixtures("nothing_left")


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
        (("-c", "1", "-d", "1", "--workload", "chta"), "no workload 'chta'; did you mean chat? There are "),
        (("-c", "1", "-d", "1", "--workload", "file:none.jsonl"), "none.jsonl"),
        (("-c", "1", "-d", "1", "--workload", "file:bad.jsonl"), "bad.jsonl:2: "),
        (("-c", "1", "-d", "1", "--json", "no/r.json"), "no/r.json: No such file or directory"),
        (("-c", "1", "-d", "1", "--json", "bad.jsonl/r.json"), "bad.jsonl/r.json: Not a directory"),
        (("-c", "1", "-d", "1", "--json", "r" * 300), "File name too long"),
        (("-c", "1", "-d", "1", "--rows", "."), ".: Is a directory"),
        (("-c", "1", "-d", "1", "--rows", "-", "--json", "-"), "--json and --rows can't both write to -"),
        (("-c", "1", "-d", "1", "--rows", "a", "--json", "./a"), "--json and --rows can't both write to ./a"),
        (("-c", "1", "-d", "1", "--temperature", "nan"), "'nan' is not a number"),
        (("-c", "1", "-d", "1", "--chat-template-kwargs", "[1]"), "'[1]' is no JSON object"),
        (("-c", "1", "-d", "1", "--output-tokens", "0"), "'0' is not a number from 1"),
    ],
    ids=[
        "no stream", "no time", "endless", "no duration", "workload", "no file", "bad file", "json",
        "json below a file", "long name", "rows", "both to stdout", "both to one file", "nan", "template",
        "no output",
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
    "url",
    [
        "ftp://box", "http://", "http://box:99999", "box:", "http:/box", "http://[::1", "http://xn--", "http://a\x01b",
        "http://me:secret@box:8000", "http://me:secret@[box",
    ],
    ids=[
        "scheme", "no host", "port", "no port", "one slash", "bracket", "punycode", "control code", "secret",
        "secret in nonsense",
    ],
)  # fmt: skip
def test_bad_url(home: Home, url: str) -> None:
    code, output = home.run("load", url, "-c", 1, "-d", 1)
    assert code == 2, output
    assert "error: argument URL: " in output
    assert "secret@" not in output
    assert "Traceback" not in output
    assert "\x01" not in output


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("box", "http://box"),
        ("box:8000", "http://box:8000"),
        ("https://box/", "https://box"),
        ("http://box:8000/v1", "http://box:8000"),
        ("http://box:8000/v1/", "http://box:8000"),
        ("http://box:8000/metrics", "http://box:8000"),
        ("http://box/llm/v1/chat/completions", "http://box/llm"),
        ("http://[::1]:8000//", "http://[::1]:8000"),
    ],
    ids=["host", "port", "https", "v1", "v1 slash", "metrics", "proxy with a path", "IPv6"],
)  # fmt: skip
def test_url_as_users_paste_it(text: str, base: str) -> None:
    assert base_url(text) == base


def test_what_is_checked_is_not_touched(home: Home) -> None:
    """A link to a file to come stays a link, a pipe's reader sees no end, nothing is made."""
    link, kept, pipe = (home.path / name for name in ("link", "kept", "pipe"))
    link.symlink_to("later.json")
    kept.write_text("old")
    os.mkfifo(pipe)
    for target in (link, kept, pipe, home.path / "new"):
        check_writable(str(target))
    assert link.is_symlink()
    assert kept.read_text() == "old"
    assert sorted(path.name for path in home.path.iterdir()) == ["kept", "link", "pipe"]

"""``sparktui probe`` against the stand-in, as its users run it."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sparktui.commands.endpoint import base_url
from sparktui.schema.codec import loads
from sparktui.schema.records import PrefixProbe
from tests.contract.server import Server
from tests.standin import stand_in
from tests.support import Home, free_port

KEY = "sk-not-for-your-eyes"
TINY = ("--sim-model", "tiny-h200")

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_works(home: Home, server: Server) -> None:
    code, output = home.run("probe", f"{server.url}/v1", "--json", home.path / "p.json")
    assert code == 0, output
    for when, hits in (("1st", "0"), ("2nd", "1,984"), ("3rd", "1,984")):
        assert re.search(
            rf"^{when}: TTFT +\d+ ms · 2,000 prompt tokens · {hits} of 2,000 queried tokens hit$",
            output,
            re.M,
        ), output
    assert re.search(
        r"^The prefix cache works: the 2nd and 3rd took 1,984 of 2,000 prompt tokens from the cache, TTFT ",
        output,
        re.M,
    )
    assert "\x1b" not in output
    assert loads(PrefixProbe, (home.path / "p.json").read_bytes()).call == "works"


def test_json_to_stdout_is_json_alone(home: Home, server: Server) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "sparktui", "probe", server.url, "--json", "-"],
        cwd=home.path, env=home.env, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    value = json.loads(finished.stdout)
    assert value["call"] == "works"
    assert [answer["hits"] for answer in value["answers"]] == [0, 1984, 1984]


def test_off(home: Home, tmp_path: Path) -> None:
    with stand_in(tmp_path, *TINY, "--no-enable-prefix-caching") as off:
        code, output = home.run("probe", off.url)
    assert code == 1
    assert re.search(r"^No token of the same prompt .* prefix caching is off$", output, re.M), output


def test_not_known_without_metrics(home: Home, tmp_path: Path) -> None:
    with stand_in(tmp_path, *TINY, "--sim-fail", "metrics-nonsense") as blind:
        code, output = home.run("probe", blind.url)
    assert code == 1
    assert re.search(r"^3rd: TTFT +\d+ ms · 2,000 prompt tokens$", output, re.M), output
    assert "Whether the prefix cache serves is not known: /metrics has no prefix cache counters" in output


def test_server_not_there_and_bad_files(home: Home) -> None:
    code, output = home.run("probe", f"http://127.0.0.1:{free_port()}")
    assert code == 3
    assert "/v1/models: " in output
    code, output = home.run("probe", "http://127.0.0.1:9", "--json", "no/p.json")
    assert code == 2
    assert "no/p.json: No such file or directory" in output
    code, output = home.run("probe", "ftp://box")
    assert code == 2
    assert "Traceback" not in output


@pytest.mark.parametrize(
    "url",
    [
        f"http://127.0.0.1:8000/v1?api_key={KEY}",
        f"127.0.0.1:8000?api_key={KEY}",
        f"http://127.0.0.1:port?api_key={KEY}",
        f"http://127.0.0.1:8000/#{KEY}",
        f"http://me:{KEY}@127.0.0.1:8000",
        f"http:/me:{KEY}?@127.0.0.1:8000",
        f"http://127.0.0.1:8000/?me:a@{KEY}",
        f"http://me:{KEY}/@127.0.0.1:8000",
    ],
)
def test_a_secret_in_a_url_is_not_repeated(url: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        base_url(url)
    assert KEY not in str(refused.value)


def test_what_is_wrong_with_a_url_is_said() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"'http://box:x1' is not a URL: .*'x1'"):
        base_url("http://box:x1")
    with pytest.raises(argparse.ArgumentTypeError, match=r"'http://box:80\?…' is not a URL like http://127"):
        base_url("http://box:80?a=b")


def test_key(home: Home, tmp_path: Path) -> None:
    with stand_in(tmp_path, *TINY, "--api-key", KEY, key=KEY) as closed:
        code, output = home.run("probe", closed.url)
        assert code == 3
        assert "set VLLM_API_KEY in the environment" in output
        home.extra = {"VLLM_API_KEY": KEY}
        code, output = home.run("probe", closed.url, "--json", home.path / "p.json")
    assert code == 0, output
    assert KEY not in output + (home.path / "p.json").read_text()

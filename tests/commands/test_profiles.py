from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pytest

from sparktui.commands import profiles
from sparktui.profile.problems import ProfileError

BOX = """
name: box
about: "mine \\e[31mred"
model: org/m
port: 9000
args: {dtype: auto}
speculative: {method: ngram}
observe: {cudagraph_metrics: true}
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The profiles folder of an otherwise empty working directory: one good profile, one broken."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "box.yaml").write_text(BOX)
    (folder / "bad.yaml").write_text("model: m\nport: eighty\nhots: x\n")
    return folder


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    profiles.add_arguments(parser.add_subparsers(required=True))
    args = parser.parse_args(words)
    code: int = args.run(args)
    return code


def test_list_shows_good_profiles_and_then_the_broken(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "RUNNER", "VARIANTS", "ABOUT"]
    assert lines[1].split() == ["box", "local", "off", "on", "mine", "[31mred"]
    assert {"cpu-tiny", "demo"} <= {line.split()[0] for line in lines[2 : lines.index("")]}
    assert lines[-3:] == [
        "broken:",
        f"  ✖ {own}/bad.yaml:2: port: expected an integer, got 'eighty'",
        f"  ✖ {own}/bad.yaml:3: unknown key 'hots'; did you mean 'host'?",
    ]
    assert all(line.isprintable() for line in lines)


def test_list_as_json_has_the_errors_in_it(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--json") == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["box"] == {
        "name": "box",
        "path": str(own / "box.yaml"),
        "about": "mine \x1b[31mred",
        "runner": "local",
        "model": "org/m",
        "variants": ["off", "on"],
        "error": None,
    }
    assert (
        entries["bad"]["error"]
        .splitlines()[0]
        .endswith("bad.yaml:2: port: expected an integer, got 'eighty'")
    )
    assert entries["bad"]["variants"] == []


def test_show_prints_the_command_of_the_profile_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "box") == 0
    assert capsys.readouterr().out == (
        "# added by sparktui: --cudagraph-metrics\n"
        "vllm serve org/m \\\n"
        "  --host 127.0.0.1 \\\n"
        "  --port 9000 \\\n"
        "  --dtype auto \\\n"
        '  --speculative-config \'{"method":"ngram"}\' \\\n'
        "  --cudagraph-metrics\n"
    )


def test_show_takes_a_variant_a_form_and_exact(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "box:off", "--as", "argv", "--exact") == 0
    assert json.loads(capsys.readouterr().out) == [
        *("vllm", "serve", "org/m", "--host", "127.0.0.1", "--port", "9000", "--dtype", "auto"),
    ]


def test_show_of_the_demo_is_the_stand_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "demo:on", "--as", "argv") == 0
    assert json.loads(capsys.readouterr().out) == [
        *(sys.executable, "-P", "-m", "sparktui", "sim", "serve", "demo/nemotron-lightning-stand-in"),
        *("--host", "127.0.0.1", "--port", "8411", "--max-num-seqs", "32", "--kv-cache-dtype", "fp8"),
        *("--moe-backend", "marlin", "--sim-boot-seconds", "2.5", "--sim-seed", "1"),
        *("--speculative-config", '{"model":"demo/dspark","num_speculative_tokens":3}'),
    ]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("bxo", "did you mean 'box'?"),
        ("box:of", "did you mean 'off'?"),
        ("bad", "port: expected an integer, got 'eighty'"),
        ("gone.yaml", "there is no such file"),
    ],
)
def test_show_of_something_wrong_raises_what_main_prints(target: str, words: str) -> None:
    with pytest.raises(ProfileError) as caught:
        run("show", target)
    assert words in str(caught.value)


def test_an_unknown_form_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("show", "box", "--as", "perl")
    assert caught.value.code == 2

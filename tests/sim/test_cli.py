"""``sparktui sim`` and its commands, short of serving."""

from __future__ import annotations

import pytest

from sparktui.sim.cli import main


@pytest.mark.parametrize("argv", [[], ["tabel"], ["--json"]])
def test_no_command_or_an_unknown_one_is_wrong_usage(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    shown = capsys.readouterr()
    assert "sparktui sim serve" in shown.err
    assert shown.err.splitlines()[-1].startswith("sparktui sim: error: ")
    assert shown.out == ""


@pytest.mark.parametrize("argv", [["-h"], ["--help"], ["serve", "--help"], ["table", "-h"], ["model", "-h"]])
def test_help_is_no_mistake(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    shown = capsys.readouterr()
    assert "nemotron-lightning-gb10" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["table", "--jsno"], "table takes --json only, not --jsno"),
        (["model", "a", "b"], "model takes one name or file, not a b"),
        (["\x1b[31m"], "no such command: "),
    ],
)
def test_wrong_usage_says_what_is_wrong(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert message in last
    assert last.isprintable()


def test_a_model_tells_which_graphs_its_arms_boot_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "nemotron-lightning-gb10"]) == 0
    assert "vLLM 0.27.1 boots it: off full, k=2 piecewise, k=3 piecewise" in capsys.readouterr().out
    assert main(["model", "nemotron-super-gb10"]) == 0
    assert "off full, k=2 full, k=3 full" in capsys.readouterr().out

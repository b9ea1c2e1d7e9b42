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
    assert shown.out == ""


@pytest.mark.parametrize("argv", [["-h"], ["--help"], ["serve", "--help"], ["table", "-h"], ["model", "-h"]])
def test_help_is_no_mistake(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    shown = capsys.readouterr()
    assert "nemotron-lightning-gb10" in shown.out
    assert shown.err == ""

"""What the pacing benchmark calls good."""

from __future__ import annotations

import pytest

from benchmarks.sim_pacing import STEP_S, complaints, report

EVEN = [index * STEP_S for index in range(50)]


def test_even_streams_are_good(capsys: pytest.CaptureFixture[str]) -> None:
    assert report([EVEN, EVEN], 1.0, (0.1, 0.1), [0.0])
    output = capsys.readouterr().out
    assert "100 chunks/s of 100" in output
    assert "load of the machine " in output
    assert output.endswith("good\n")


def test_a_stream_without_chunks_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert not report([EVEN, []], 1.0, (0.1, 0.1), [0.0])
    assert "1 streams without a chunk; 50.0 % of the chunks: less than 99 %" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rate", "p99", "good"),
    [(0.99, 0.0049, True), (0.989, 0.001, False), (1.0, 0.005, False), (1.0, None, False)],
)
def test_where_good_ends(rate: float, p99: float | None, good: bool) -> None:
    assert (not complaints(rate, 0, p99)) is good

"""Window figures from lines of totals, with arithmetic done here by hand."""

from __future__ import annotations

import pytest

from sparktui.host.clientfigures import client_figures, limited
from sparktui.schema.gaps import bucket
from sparktui.schema.messages import LoadTotals


def line(t: float, tokens: int = 0, *, decode: int = 0, seconds: float = 0.0, **more: object) -> LoadTotals:
    given: dict[str, object] = {
        "asked": 2, "in_flight": 2, "done": 0, "ok": 0, "errors": 0, "cancelled": 0, "lag_ms_p99": 0.5,
        "cpu": 0.1, "usage": "continuous",
    }  # fmt: skip
    return LoadTotals(
        t=t,
        output_tokens=tokens,
        decode_tokens=decode,
        stream_seconds=seconds,
        **(given | more),  # type: ignore[arg-type]
    )


def test_rates_are_differences_and_never_since_the_beginning() -> None:
    span = [line(100.0, 5000, decode=4800, seconds=60.0), line(102.5, 5400, decode=5190, seconds=65.0)]
    found = client_figures(span)
    assert found.output_tok_s == pytest.approx(400 / 2.5)
    assert found.decode_tok_s == pytest.approx(390 / 5.0)
    assert found.chunks_s is None


def test_one_line_is_not_enough() -> None:
    assert client_figures([line(100.0, 5000)]).output_tok_s is None
    assert client_figures([]).output_tok_s is None


def test_without_usage_chunks_are_called_chunks() -> None:
    span = [line(10.0, usage="none", chunks=100), line(12.0, usage="none", chunks=180)]
    found = client_figures(span)
    assert found.chunks_s == pytest.approx(40.0)
    assert (found.output_tok_s, found.decode_tok_s) == (None, None)


def test_an_idle_client_has_no_rate() -> None:
    span = [line(10.0, 500, asked=0, in_flight=0), line(12.0, 500, asked=0, in_flight=0)]
    assert client_figures(span).output_tok_s is None
    loaded = [line(10.0, 500), line(12.0, 500)]
    assert client_figures(loaded).output_tok_s == 0.0  # asked for, and nothing came: that is a nought


def test_ttft_and_gaps_are_those_that_came_after_the_first_line() -> None:
    span = [
        line(10.0, ttft_ms=(900.0,), gaps={str(bucket(900.0)): 50}),
        line(10.2, ttft_ms=(100.0, 300.0), gaps={str(bucket(20.0)): 98}),
        line(10.4, ttft_ms=(200.0,), gaps={str(bucket(20.0)): 1, str(bucket(70.0)): 1}),
    ]
    found = client_figures(span)
    assert found.ttft_ms == 200.0
    assert found.gap_ms == pytest.approx(20.0, rel=0.01)
    assert found.gap_p99_ms == pytest.approx(20.0, rel=0.01)


@pytest.mark.parametrize(
    ("cpu", "lag", "expected"), [(0.5, 1.0, False), (0.81, 1.0, True), (0.5, 5.1, True), (0.8, 5.0, False)]
)
def test_the_client_is_the_limit_by_cpu_or_lag(cpu: float, lag: float, expected: bool) -> None:
    assert limited([line(t, cpu=cpu, lag_ms_p99=lag) for t in (1.0, 1.2, 1.4)]) is expected


def test_without_lines_nothing_is_limited() -> None:
    assert limited([]) is False

"""Throughput and SpecDecoding lines of every wording from 0.5 to 0.33."""

from __future__ import annotations

import pytest

from sparktui.bootlog.lines import parse_line
from sparktui.bootlog.stats import read_stats
from sparktui.schema.bootlog import EngineStats, SpecStats
from tests.bootlog.logs import LOGS, line, log_lines

BEGIN = "Avg prompt throughput: 5.0 tokens/s, Avg generation throughput: 124.5 tokens/s, Running: 1 reqs, "
SPEC = "SpecDecoding metrics: "


@pytest.mark.parametrize(
    ("message", "stats"),
    [
        (
            f"Engine 000: {BEGIN}Waiting: 0 reqs, GPU KV cache usage: 7.4%, Prefix cache hit rate: 0.0%",
            EngineStats(5.0, 124.5, 1, 0, 0.074, 0.0, None, "0"),
        ),
        (  # from 0.32 on without the rate when nothing asked the cache; the KV cache is the device's
            f"Engine 012: {BEGIN}Waiting: 3 reqs, Deferred: 2 reqs, Preemptions: 4, CPU KV cache usage: 0.0%",
            EngineStats(5.0, 124.5, 1, 3, 0.0, None, 4, "12"),
        ),
        (
            f"Engine 001: {BEGIN}Waiting: 0 reqs, KV fetch: 1 waiting to start, 2 in progress, 0 "
            "completed waiting, GPU KV cache usage: 1.0%, External prefix cache hit rate: 50.0%, "
            "MM cache hit rate: 9.0%",
            EngineStats(5.0, 124.5, 1, 0, 0.01, None, None, "1"),
        ),
        (
            f"2 Engines Aggregated: {BEGIN}Waiting: 0 reqs, "
            "GPU KV cache usage: 1.0%, Prefix cache hit rate: 2.5%",
            EngineStats(5.0, 124.5, 1, 0, 0.01, 0.025, None, ""),
        ),
        (
            f"{BEGIN}Swapped: 1 reqs, Pending: 7 reqs, GPU KV cache usage: 1.6%, CPU KV cache usage: 0.5%.",
            EngineStats(5.0, 124.5, 1, 7, 0.016, None, None, ""),
        ),
        (f"Engine 000: {BEGIN}Waiting: 0 reqs", EngineStats(5.0, 124.5, 1, 0, engine="0")),
    ],
)
def test_engine(message: str, stats: EngineStats) -> None:
    assert read_stats(line(message)) == stats


@pytest.mark.parametrize(
    ("message", "stats"),
    [
        (
            f"{SPEC}Draft acceptance rate: 62.3%, Accepted: 987 tokens, Drafted: 1584 tokens",
            SpecStats(None, 987, 1584, (), 0.623),
        ),
        (
            f"{SPEC}Draft acceptance rate: 62.3%, Mean acceptance length: 2.87, Accepted: 987 tokens, "
            "Drafted: 1584 tokens, Per-position acceptance rate: 0.917, 0.837, 0.648",
            SpecStats(2.87, 987, 1584, (0.917, 0.837, 0.648), 0.623),
        ),
        (  # nothing was accepted: 0, which is known
            f"{SPEC}Mean acceptance length: 1.00, Accepted throughput: 0.00 tokens/s, Drafted throughput: "
            "90.00 tokens/s, Accepted: 0 tokens, Drafted: 900 tokens, Per-position acceptance rate: 0.000, "
            "0.000, Avg Draft acceptance rate: 0.0%",
            SpecStats(1.0, 0, 900, (0.0, 0.0), 0.0),
        ),
        (  # nothing was drafted: nan, which is unknown
            f"{SPEC}Mean acceptance length: nan, Accepted throughput: 0.00 tokens/s, Drafted throughput: "
            "0.00 tokens/s, Accepted: 0 tokens, Drafted: 0 tokens, Per-position acceptance rate: nan, nan, "
            "Avg Draft acceptance rate: nan%",
            SpecStats(None, 0, 0, (), None),
        ),
        (  # 0.5 to 0.7: since the start
            "Speculative metrics: Draft acceptance rate: 0.655, System efficiency: 0.649, Number of "
            "speculative tokens: 4, Number of accepted tokens: 10, Number of draft tokens: 20, "
            "Number of emitted tokens: 9.",
            SpecStats(None, 0, 0, (), 0.655),
        ),
    ],
)
def test_spec(message: str, stats: SpecStats) -> None:
    assert read_stats(line(message)) == stats


def test_six_positions_of_a_public_report() -> None:
    path = LOGS.parent / "cases" / "22-spec-line-six-positions.txt"
    lines = [parse_line(n, text) for n, text in enumerate(path.read_text("utf-8").splitlines(), 1) if text]
    spec, engine = [found for found in map(read_stats, lines) if found is not None]
    assert isinstance(spec, SpecStats)
    assert spec.acceptance_by_position == (0.917, 0.837, 0.648, 0.538, 0.451, 0.348)
    assert spec.acceptance_rate == pytest.approx(spec.accepted / spec.drafted, abs=5e-4)
    drafts = spec.drafted / len(spec.acceptance_by_position)
    assert drafts == 264
    assert spec.mean_acceptance_length == round(1 + spec.accepted / drafts, 2) == 4.74
    assert engine == EngineStats(5.0, 124.5, 1, 0, 0.074, 0.0, None, "0")


def test_old_lines_of_a_public_report() -> None:
    path = LOGS.parent / "cases" / "49-old-spec-line.txt"
    text = path.read_text("utf-8").replace(
        " ..., ", " Avg generation throughput: 1.0 tokens/s, Running: 2 reqs, "
    )
    lines = [parse_line(n, each) for n, each in enumerate(text.splitlines(), 1)]
    found = [stats for stats in map(read_stats, lines) if stats is not None]
    assert found == [
        SpecStats(None, 0, 0, (), 0.655),
        EngineStats(1480.7, 1.0, 2, 0, 0.016),
    ]


@pytest.mark.parametrize(
    "message",
    [
        "Engine 000: Avg prompt throughput: x tokens/s",
        f"Engine 000: {BEGIN}",
        f"Engine 000: {BEGIN.replace('5.0', 'nan')}Waiting: 0 reqs",
        f"Engine 000: {BEGIN.replace('5.0', '5.0.1')}Waiting: 0 reqs",
        f"A user's text: {BEGIN}Waiting: 0 reqs",
        f"{SPEC}none yet",
        "Received request: SpecDecoding metrics: Accepted: 1 tokens, Drafted: 1 tokens",
    ],
)
def test_no_figures(message: str) -> None:
    assert read_stats(line(message)) is None


@pytest.mark.parametrize(
    ("log", "engine", "spec"),
    [
        ("0.24.0-h200/boot_fi_ngram.log", 14, 10),
        ("0.24.0-h200/boot_fa_off.log", 10, 0),
        ("0.32.0-cpu/boot_draft_pipe.log", 11, 9),
        ("0.32.0-cpu/boot_off_pipe.log", 29, 0),
    ],
)
def test_recorded(log: str, engine: int, spec: int) -> None:
    found = [stats for stats in map(read_stats, log_lines(log)) if stats is not None]
    assert sum(isinstance(stats, EngineStats) for stats in found) == engine
    specs = [stats for stats in found if isinstance(stats, SpecStats)]
    assert len(specs) == spec
    for stats in specs:
        assert stats.acceptance_rate == pytest.approx(stats.accepted / stats.drafted, abs=6e-4)
        assert len(stats.acceptance_by_position) == 3

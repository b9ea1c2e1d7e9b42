"""The periodic statistics lines and the cudagraph table, against recorded logs."""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from sparktui.bootlog.lines import parse_line
from sparktui.sim.boot.logfile import Log
from sparktui.sim.counts import stats
from sparktui.sim.counts.graphtable import header_sizes, table
from sparktui.sim.counts.metrics import Metrics
from sparktui.sim.counts.observed import GraphStep, Observed, Totals
from sparktui.sim.counts.stats import EngineLog
from sparktui.sim.model.engine import Engine
from sparktui.sim.model.requests import EngineConfig, Output, Request, Step
from sparktui.sim.release import Release
from sparktui.sim.service import EngineService

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
NGRAM = LOGS / "0.24.0-h200" / "boot_fi_ngram.log"
DRAFT = LOGS / "0.32.0-cpu" / "boot_draft_pipe.log"
HEADER = ("FULL_AND_PIECEWISE", (1, 2, 4, 8))


def recorded(log: Path, start: str) -> tuple[str, str]:
    """Source location and message of the first line whose message begins with ``start``."""
    for number, text in enumerate(log.read_text(encoding="utf-8").split("\n")):
        line = parse_line(number, text)
        if line.message.startswith(start):
            return str(line.source), line.message
    raise AssertionError(start)


def recorded_tables(log: Path) -> list[str]:
    """The messages of every cudagraph table in a log, as they were before each line got its prefix."""
    rows = [
        text.split("[cuda_graph.py:123] ", 1)[1]
        for text in log.read_text(encoding="utf-8").split("\n")
        if "[cuda_graph.py:123] " in text
    ]
    return re.split(
        r"(?<=\n)\n(?=\*\*CUDAGraph Config)",
        "\n".join(rows).replace("\n\n**CUDAGraph C", "\n\n\n**CUDAGraph C"),
    )


def figures_gone(text: str) -> str:
    return re.sub(r"[\d.]+|nan", "0", text)


def one_request(**changes: int) -> Step:
    """A step that answers one new request of 100 prompt tokens, 64 of them cached, with 4 tokens."""
    request = Request("r", prompt_tokens=100, max_tokens=9, cached_tokens=64)
    graph = {"scheduled_tokens": 36, "padded_tokens": 40} | changes
    output = Output(request, 4, None)
    return Step(1.0, 0.1, (output,), (), 0, 2, 6, (2, 1, 0), (request,), 36, **graph, mode="PIECEWISE")


def seen_after(*steps: Step) -> Observed:
    seen = Observed(3)
    for step in steps:
        seen.see(step)
    return seen


def logged(version: str, *steps: Step) -> list[tuple[str, str]]:
    """The lines of the first ten seconds, in which ``steps`` happened."""
    seen = Observed(3)
    log = EngineLog(0, seen, Release(version), 0.0)
    for step in steps:
        seen.see(step)
    return list(log.lines(10.0))


@pytest.mark.parametrize(("version", "log", "device"), [("0.24.0", NGRAM, "GPU"), ("0.32.0", DRAFT, "CPU")])
def test_lines_read_as_recorded(version: str, log: Path, device: str) -> None:
    (engine_file, engine), (spec_file, spec) = logged(version, one_request())
    for file, message, start in ((engine_file, engine, "Engine 000: "), (spec_file, spec, "SpecDecoding ")):
        their_file, theirs = recorded(log, start)
        assert file == their_file
        assert figures_gone(message) == figures_gone(theirs.replace(f"{device} KV", "GPU KV"))


def test_figures_of_an_interval() -> None:
    (_, engine), (_, spec) = logged("0.24.0", one_request())
    assert "Avg prompt throughput: 3.6 tokens/s, Avg generation throughput: 0.4 tokens/s" in engine
    assert engine.endswith("Prefix cache hit rate: 64.0%")
    assert "Mean acceptance length: 2.50, Accepted throughput: 0.30 tokens/s" in spec
    assert "Drafted throughput: 0.60 tokens/s, Accepted: 3 tokens, Drafted: 6 tokens" in spec
    assert spec.endswith(
        "Per-position acceptance rate: 1.000, 0.500, 0.000, Avg Draft acceptance rate: 50.0%"
    )


def test_older_releases_count_cached_prompt_tokens_too() -> None:
    assert "Avg prompt throughput: 10.0 tokens/s" in logged("0.13.0", one_request())[0][1]
    assert "Avg prompt throughput: 3.6 tokens/s" in logged("0.17.1", one_request())[0][1]


@pytest.mark.parametrize(
    ("version", "ending"), [("0.30.0", "Prefix cache hit rate: 0.0%"), ("0.32.0", "0.0%")]
)
def test_a_hit_rate_without_lookups_is_left_out_since_0_32(version: str, ending: str) -> None:
    line = logged(version, replace(one_request(), admitted=()))[0][1]
    assert line.endswith(ending)
    assert ("hit rate" in line) == (version == "0.30.0")


def test_the_hit_rate_is_that_of_the_last_thousand_requests() -> None:
    old = [Request("o", prompt_tokens=10, max_tokens=1) for _ in range(600)]
    new = [Request("n", prompt_tokens=10, max_tokens=1, cached_tokens=5) for _ in range(600)]
    steps = [Step(1.0, 0.1, (), (), 0, 0, 0, (), tuple(group)) for group in (old, new)]
    assert seen_after(steps[0]).hit_rate == 0.0
    assert seen_after(*steps).hit_rate == 0.5


def test_silent_when_idle_as_vllm_is() -> None:
    seen = Observed(3)
    log = EngineLog(0, seen, Release("0.24.0"), 0.0)
    assert list(log.lines(10.0)) == []
    seen.see(one_request())
    assert [file for file, _ in log.lines(20.0)] == ["loggers.py:273", "metrics.py:120"]
    assert [file for file, _ in log.lines(30.0)] == ["loggers.py:273"]  # the first idle one is logged
    seen.running = 1  # a request that gets nothing for long is not told either
    assert list(log.lines(40.0)) == []
    seen.see(one_request())
    spec = list(log.lines(50.0))[1][1]
    assert "Drafted throughput: 0.20 tokens/s" in spec  # over the 30 s since the last such line


def test_nothing_drafted_is_not_divided() -> None:
    before = Totals(accepted=(0,))
    line = stats.spec_line(before, Totals(drafts=2, accepted=(0,)), 10.0)
    assert line.endswith("Per-position acceptance rate: 0.000, Avg Draft acceptance rate: nan%")


def parsed(message: str) -> tuple[str, tuple[int, ...], Counter[GraphStep]]:
    """Mode, sizes and steps of a table."""
    mode = re.search(r"^- Mode: (\w+)$", message, re.M)
    sizes = re.search(r"^- Capture sizes: \[([\d, ]*)\]$", message, re.M)
    assert mode
    assert sizes
    rows = re.findall(r"^\| (\d+) +\| (\d+) +\| (\d+) +\| (\w+) +\| (\d+) +\|$", message, re.M)
    steps = Counter({GraphStep(int(a), int(b), kind): int(count) for a, b, _, kind, count in rows})
    assert all(int(b) - int(a) == int(gap) for a, b, gap, _, _ in rows)
    return mode[1], tuple(int(size) for size in sizes[1].split(", ")), steps


def test_tables_are_written_as_recorded() -> None:
    theirs = recorded_tables(NGRAM)
    assert len(theirs) > 10
    for message in theirs:
        assert table(*parsed(message)) == message.rstrip("\n") + "\n"


@pytest.mark.parametrize(
    ("log", "seqs", "k"), [(NGRAM, 64, 3), (LOGS / "0.24.0-h200" / "boot_fa_ngram.log", 64, 3)]
)
def test_the_header_lies_as_the_real_one_does(log: Path, seqs: int, k: int) -> None:
    """The mode before the downgrade, the sizes before rounding: with PIECEWISE and with FULL graphs."""
    mode, sizes, _ = parsed(recorded_tables(log)[0])
    assert mode == "FULL_AND_PIECEWISE"
    for graphs in ("piecewise", "full"):
        config = EngineConfig(k=k, max_num_seqs=seqs, graphs=graphs)
        assert header_sizes(config, mode) == sizes
    assert header_sizes(EngineConfig(), "NONE") == ()


def test_the_table_counts_the_steps_of_its_interval() -> None:
    seen = Observed(3)
    log = EngineLog(0, seen, Release("0.24.0"), 0.0, HEADER)
    for step in (one_request(), one_request(), one_request(scheduled_tokens=600, padded_tokens=600)):
        seen.see(step)
    lines = list(log.lines(10.0))
    assert [file for file, _ in lines] == ["loggers.py:273", "metrics.py:120", "cuda_graph.py:123"]
    assert parsed(lines[2][1])[2] == {GraphStep(36, 40, "PIECEWISE"): 2, GraphStep(600, 600, "PIECEWISE"): 1}
    assert [file for file, _ in log.lines(20.0)] == ["loggers.py:273"]


async def report_until(service: EngineService, ending: str, **more: object) -> str:
    """What ``report`` logs until a line ends so."""
    stream, done = io.StringIO(), asyncio.Event()

    class Watched(Log):
        def api(self, file: str, message: str, level: str = "INFO") -> None:
            super().api(file, message, level)
            if ending in message:
                done.set()

    job = asyncio.ensure_future(
        stats.report(service, Watched(stream, 7), 0.01, **more)  # type: ignore[arg-type]
    )
    asked = asyncio.ensure_future(done.wait())
    await asyncio.sleep(0)  # the report notes its beginning
    for index, engine in enumerate(service.engines):
        for _ in range(3):
            step = engine.step(engine.due or 0.0)
            assert step is not None
            service.metrics.record(step, engine, index)
    await asyncio.wait_for(asked, 10)
    job.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await job
    return stream.getvalue().replace("\r\n", "\n")  # vLLM's formatter breaks a message's lines so


def busy_service(release: str = "0.24.0", engines: int = 1, log_stats: bool = True) -> EngineService:
    """Engines with a request each, not yet stepped."""
    config = EngineConfig(k=3, max_num_seqs=64, graphs="piecewise")
    chosen = [Engine(config, random.Random(seed)) for seed in range(engines)]
    for engine in chosen:
        engine.add(Request("r", prompt_tokens=40, max_tokens=500), 0.0)
    return EngineService(chosen, Metrics("m", 3, {}, Release(release), engines, log_stats=log_stats))


async def test_each_engine_has_its_line() -> None:
    text = await report_until(busy_service(engines=2), "Engine 001")
    assert text.index("Engine 000: Avg prompt throughput") < text.index("Engine 001: Avg prompt throughput")
    assert text.count("SpecDecoding metrics") >= 1
    assert "CUDAGraph" not in text


async def test_the_table_is_logged_line_by_line_with_its_prefix() -> None:
    text = await report_until(busy_service(), "CUDAGraph Stats", table=True)
    prefix = re.compile(r"\(APIServer pid=7\) INFO \d\d-\d\d \d\d:\d\d:\d\d \[cuda_graph\.py:123\] ")
    lines = [line for line in text.split("\n") if "cuda_graph.py" in line]
    assert all(prefix.match(line) for line in lines)
    mode, sizes, steps = parsed("\n".join(prefix.sub("", line) for line in lines))
    assert (mode, len(sizes), max(sizes)) == ("FULL_AND_PIECEWISE", 51, 512)
    assert {step.mode for step in steps} == {"PIECEWISE"}
    assert steps[GraphStep(4, 4, "PIECEWISE")] == 2  # k + 1 tokens a decode step
    assert steps.total() == 3


async def test_nothing_is_logged_with_log_stats_off() -> None:
    stream = io.StringIO()
    service = busy_service(log_stats=False)
    await asyncio.wait_for(stats.report(service, Log(stream, 1), 0.01), 5)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("given", "seconds"), [("3", 3.0), ("0.5", 0.5), ("0", 10.0), ("-1", 10.0), ("x", 10.0)]
)
def test_the_interval_comes_from_the_environment(
    given: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_LOG_STATS_INTERVAL", given)
    assert stats.interval_s() == seconds
    monkeypatch.delenv("VLLM_LOG_STATS_INTERVAL")
    assert stats.interval_s() == 10.0

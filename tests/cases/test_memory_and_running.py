"""Public reports on memory, caches, acceptance and odd lines."""

from __future__ import annotations

import re

import pytest

from sparktui.bootlog.lines import LineSplitter, parse_line
from sparktui.bootlog.stats import read_stats
from sparktui.schema.bootlog import EngineStats, SpecStats
from tests.cases.boots import boot, engine, excerpt, finding, read, serious

SPEC = (
    "(APIServer pid=1) INFO 11-30 12:0{minute}:{second:02} [metrics.py:101] SpecDecoding metrics: Mean "
    "acceptance length: {length}, Accepted throughput: 1.00 tokens/s, Drafted throughput: 82.00 tokens/s, "
    "Accepted: {accepted} tokens, Drafted: {drafted} tokens, Per-position acceptance rate: {by}, "
    "Avg Draft acceptance rate: {rate}%"
)
READY = "INFO:     Application startup complete."


def minute_of(accepted: int, drafted: int, by: str, rate: str, times: int = 8) -> list[str]:
    """Spec lines ten seconds apart."""
    return [
        SPEC.format(
            minute=3 + s // 60,
            second=s % 60,
            length="1.0",
            accepted=accepted,
            drafted=drafted,
            by=by,
            rate=rate,
        )
        for s in range(0, times * 10, 10)
    ]


def read_in_time(lines: list[str]) -> set[str]:
    """Ids of the findings when the lines come ten seconds apart."""
    from sparktui.bootlog.reader import BootReader

    reader = BootReader(0.0)
    for number, line in enumerate([READY, *lines]):
        reader.feed(line.encode() + b"\n", 10.0 * number)
    return {f.id for f in reader.findings}


def test_10_and_11_a_hybrid_model_says_below_which_length_nothing_is_cached() -> None:
    assert "hits_total     0" in excerpt("10")[2]
    line = excerpt("11")[0].split("] ", 1)[1]
    reader = boot(*engine(line), args="{'enable_prefix_caching': True}")
    assert reader.facts["mamba_block_tokens"] == 528
    assert serious(reader) == {}
    assert any("528" in f.meaning + f.text and f.severity == "note" for f in reader.findings)


def test_14_graph_memory_that_is_estimated_too_high() -> None:
    estimate = re.sub(r"^INFO \[[^]]*\] |   \(GB300\)$", "", excerpt("14")[0])
    assert estimate == "Estimated CUDA graph memory: 118.65 GiB total"
    reader = boot(
        *engine(
            "Model loading took 60.1 GiB memory and 20.0 seconds",
            estimate,
            "Available KV cache memory: 69.1 GiB",
        )
    )
    (found,) = [f for f in reader.findings if f.severity == "costs memory"]
    assert "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0" in found.remedy
    assert "118.65" in found.text + found.meaning


def test_14_an_ordinary_estimate_is_silent() -> None:
    reader = boot(
        *engine(
            "Model loading took 60.1 GiB memory and 20.0 seconds",
            "Estimated CUDA graph memory: 1.25 GiB total",
            "Available KV cache memory: 69.1 GiB",
        )
    )
    assert serious(reader) == {}


def test_37_a_negative_estimate_inflates_the_cache() -> None:
    estimate = excerpt("37")[0].split("   (")[0]
    assert estimate == "Estimated CUDA graph memory: -35.69 GiB total"
    reader = boot(*engine(estimate, "Available KV cache memory: 80.0 GiB"))
    assert reader.facts["cudagraph_estimate_gib"] == -35.69
    (found,) = [f for f in reader.findings if f.severity == "costs memory"]
    assert "35.69" in found.text + found.meaning


def test_38_a_cache_that_got_far_less_than_there_was() -> None:
    assert "9.5 GiB instead of 40+" in excerpt("38")[0]
    reader = boot(
        *engine(
            "Model loading took 60.1 GiB memory and 20.0 seconds",
            "Available KV cache memory: 9.5 GiB",
        ),
        args="{'gpu_memory_utilization': 0.85}",
    )
    assert reader.facts["kv_available_gib"] == 9.5  # without the machine's size nothing more can be said
    assert serious(reader) == {}


def test_17_a_drafter_that_is_nearly_never_right_is_pure_overhead() -> None:
    assert "1.22%" in excerpt("17")[0]
    assert "spec-overhead" in read_in_time(minute_of(10, 820, "0.02, 0.01, 0.0", "1.2"))
    assert "spec-overhead" not in read_in_time(minute_of(574, 820, "0.9, 0.7, 0.5", "70.0"))
    assert "spec-overhead" not in read_in_time(minute_of(10, 820, "0.02, 0.01, 0.0", "1.2", times=3))


def test_19_nothing_accepted_is_zero_and_not_missing() -> None:
    assert excerpt("19")[1].startswith("0% MTP")
    line = minute_of(0, 820, "0.000, 0.000, 0.000", "0.0", times=1)[0]
    stats = read_stats(parse_line(1, line))
    assert isinstance(stats, SpecStats)
    assert (stats.acceptance_rate, stats.acceptance_by_position) == (0.0, (0.0, 0.0, 0.0))


def test_20_acceptance_at_the_first_position_is_read_as_it_stands() -> None:
    assert "72.1%" in excerpt("20")[0]
    stats = read_stats(parse_line(1, minute_of(721, 1000, "0.721", "72.1", times=1)[0]))
    assert isinstance(stats, SpecStats)
    assert stats.acceptance_by_position == (0.721,)


def test_22_a_pair_of_periodic_lines_with_six_positions() -> None:
    spec, engine_line = (read_stats(parse_line(1, line)) for line in excerpt("22"))
    assert isinstance(spec, SpecStats)
    assert len(spec.acceptance_by_position) == 6
    drafts = spec.drafted / 6
    assert spec.mean_acceptance_length == pytest.approx(1 + spec.accepted / drafts, abs=0.005)
    assert spec.acceptance_rate == pytest.approx(spec.accepted / spec.drafted, abs=0.0005)
    assert engine_line == EngineStats(5.0, 124.5, 1, 0, 0.074, 0.0, None, "0")


def test_41_a_server_that_hangs_says_nothing_that_the_log_could_be_blamed_for() -> None:
    assert any("/health" in line for line in excerpt("41"))
    wait = "No available shared memory broadcast block found in 60 seconds. This typically happens when"
    reader = boot(READY, *(line for _ in range(12) for line in engine(wait)))
    found = finding(reader, "shm-hang")
    assert found.count == 12
    assert "hang" in found.meaning


def test_46_colour_codes_whole_and_half_stripped() -> None:
    half, whole = excerpt("46")
    first = parse_line(1, LineSplitter().feed(half.encode() + b"\n")[0].text)
    assert (first.process, first.pid, first.level, first.source) == (
        "VllmWorker",
        215,
        "WARNING",
        "fused_moe.py:659",
    )
    coded = whole.replace("ESC", "\x1b").replace("INFO ...", "INFO 11-30 12:00:00 [a.py:1] hello")
    (line,) = LineSplitter().feed(coded.split("   (")[0].encode() + b"\n")
    assert (line.process, line.level, line.message) == ("APIServer", "INFO", "hello")


def test_47_prefixes_in_prefixes() -> None:
    nested, ray = excerpt("47")
    (line,) = LineSplitter().feed(nested.encode() + b"\n")
    assert (line.process, line.pid) == ("RayWorkerWrapper", 2528)
    assert line.message.startswith("spark:2528:2528 [0] NCCL INFO Channel")
    (line,) = LineSplitter().feed(ray.replace("x.x", "1.2").encode() + b"\n")
    assert (line.process, line.pid, line.message) == ("RayWorkerWrapper", 2981, "...")


def test_49_the_lines_of_old_releases_are_read_as_far_as_they_go() -> None:
    lines = LineSplitter().feed("\n".join(excerpt("49")).encode() + b"\n")
    assert [(x.level, x.source) for x in lines] == [("INFO", "metrics.py:427"), ("INFO", "metrics.py:411")]
    assert lines[0].message.startswith("Speculative metrics: Draft acceptance rate: 0.655")
    whole = lines[1].message.replace(
        "tokens/s, ...,", "tokens/s, Avg generation throughput: 3.5 tokens/s, Running: 2 reqs,"
    )
    stats = read_stats(parse_line(1, f"INFO 08-26 12:07:05 metrics.py:411] {whole}"))
    assert isinstance(stats, EngineStats)
    assert (stats.prompt_tok_s, stats.running, stats.kv_usage) == (1480.7, 2, 0.016)
    assert serious(read(excerpt("49"))) == {}


def test_50_a_kernel_compiled_while_serving_however_long_its_line() -> None:
    head = excerpt("50")[0].split("configs=[")[0]
    giant = head + "configs=[" + "x" * 30_000
    reader = boot(READY, *(giant.replace("pid=386", f"pid={n}") for n in range(5)))
    found = finding(reader, "jit-hit")
    assert (found.severity, found.count) == ("note", 5)
    assert len(found.text) < 5_000
    assert reader.jit_lines == 5

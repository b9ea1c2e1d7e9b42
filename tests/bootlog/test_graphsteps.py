"""``--cudagraph-metrics`` tables: the recorded ones, and tables cut, empty or of several engines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparktui.bootlog.graphsteps import GraphTable, graph_words
from sparktui.bootlog.lines import Line
from sparktui.schema.live import GraphSteps
from tests.bootlog.logs import line, log_lines

HEAD = (
    "**CUDAGraph Config Settings:**",
    "",
    "- Mode: FULL_AND_PIECEWISE",
    "- Capture sizes: [1, 2, 4, 128]",
    "",
    "**CUDAGraph Stats:**",
    "",
    "| Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | Count |",
    "|-----------------|---------------|--------------|--------------|-------|",
)
THROUGHPUT = "Engine {}: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s"


def row(tokens: int, mode: str, count: int) -> str:
    return f"| {tokens:<15} | {tokens:<13} | 0            | {mode:<12} | {count:<5} |"


def table_of(*rows: str) -> tuple[str, ...]:
    return (*HEAD, *rows, "")


def server(message: str) -> Line:
    return replace(line(message), process="APIServer", pid=1)


def read(*messages: str) -> GraphTable:
    table = GraphTable()
    for message in messages:
        table.read(server(message))
    return table


@pytest.mark.parametrize(
    ("log", "total", "newest"),
    [
        ("fa_ngram", GraphSteps(4340, 2376, 0, 42), GraphSteps(0, 580, 0, 0)),
        ("fi_ngram", GraphSteps(0, 4732, 0, 26), GraphSteps(0, 397, 0, 0)),
        ("fa_ngram_pw", GraphSteps(0, 5404, 0, 27), GraphSteps(0, 379, 0, 0)),
        ("fa_off_v1", GraphSteps(13272, 58, 0, 28), GraphSteps(92, 0, 0, 0)),
        ("fi_off_v1", GraphSteps(10462, 46, 0, 24), GraphSteps(678, 2, 0, 0)),
    ],
)
def test_recorded_tables(log: str, total: GraphSteps, newest: GraphSteps) -> None:
    table = GraphTable()
    for each in log_lines(f"0.24.0-h200/boot_{log}.log"):
        table.read(each)
    assert (table.total, table.steps) == (total, newest)


def test_the_counts_follow_the_log() -> None:
    lines = log_lines("0.24.0-h200/boot_fa_ngram.log")
    table = GraphTable()
    seen: list[GraphSteps] = []
    for each in lines:
        table.read(each)
        if table.steps is not None and (not seen or seen[-1] != table.steps):
            seen.append(table.steps)
    assert seen[:2] == [GraphSteps(0, 5, 0, 0), GraphSteps(839, 79, 0, 0)]


def test_a_v2_runner_logs_none() -> None:
    table = GraphTable()
    for each in log_lines("0.24.0-h200/boot_fa_off.log"):
        table.read(each)
    assert table.steps is None
    assert table.total is None


def test_only_above_the_largest_size_is_a_step_beyond_graphs() -> None:
    rows = (row(4, "FULL", 90), row(8, "PIECEWISE", 5), row(128, "NONE", 3), row(129, "NONE", 2))
    assert read(*table_of(*rows)).steps == GraphSteps(90, 5, 3, 2)


def test_the_profiled_size_outweighs_the_one_asked_for() -> None:
    profiled = "Profiling CUDA graph memory: PIECEWISE=3 (largest=96), FULL=2 (largest=64)"
    assert read(profiled, *table_of(row(100, "NONE", 2))).steps == GraphSteps(0, 0, 0, 2)


def test_without_sizes_no_step_is_excused() -> None:
    messages = [message.replace("1, 2, 4, 128", "") for message in table_of(row(9000, "NONE", 2))]
    assert read(*messages).steps == GraphSteps(0, 0, 2, 0)


@pytest.mark.parametrize(
    "messages",
    [
        HEAD,  # the log ends
        (*HEAD, row(1, "FULL", 5)),  # before the empty line that ends a table
        (*HEAD, row(1, "FULL", 5), "| 2               | 2       ", ""),
        (*HEAD, row(1, "FULL", 5), "Something else", ""),
        table_of(),  # no counts
        (row(1, "FULL", 5), ""),  # its head was before the beginning
        table_of(row(1, "SIDEWAYS", 5)),
    ],
)
def test_what_is_no_complete_table(messages: tuple[str, ...]) -> None:
    table = read(*messages)
    assert table.steps is None
    assert read(*messages, *table_of(row(1, "FULL", 7))).steps == GraphSteps(7, 0, 0, 0)


def test_lines_of_other_processes_in_between() -> None:
    table = GraphTable()
    for message in table_of(row(1, "FULL", 5)):
        table.read(server(message))
        table.read(
            replace(line("Triton kernel JIT compilation during inference"), process="EngineCore", pid=2)
        )
        table.read(line('INFO: 127.0.0.1 - "GET /metrics HTTP/1.1" 200 OK'))
    assert table.steps == GraphSteps(5, 0, 0, 0)


def test_a_whole_table_in_one_record() -> None:
    table = GraphTable()
    table.read(server("\n".join(table_of(row(1, "FULL", 5)))))
    assert table.steps == GraphSteps(5, 0, 0, 0)


def test_several_engines_add_up_until_each_has_a_newer_table() -> None:
    first = (THROUGHPUT.format("000"), *table_of(row(1, "FULL", 5)))
    second = (THROUGHPUT.format("001"), *table_of(row(1, "PIECEWISE", 3)))
    assert read(*first, *second).steps == GraphSteps(5, 3, 0, 0)
    assert read(*first, *second, *first).steps == GraphSteps(5, 0, 0, 0)
    assert read(*first, *second, *first, *second).steps == GraphSteps(5, 3, 0, 0)
    assert read(*first, *second, *first).total == GraphSteps(10, 3, 0, 0)
    only = (THROUGHPUT.format("000"), THROUGHPUT.format("001"))
    assert read(*first, *second, *only, *second[1:]).steps == GraphSteps(0, 3, 0, 0)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (GraphSteps(96, 3, 1, 500), "96 % of steps FULL, 3 % PIECEWISE, 1 % without a graph"),
        (GraphSteps(0, 397), "0 % of steps FULL, 100 % PIECEWISE"),
        (GraphSteps(13272, 58, 0, 28), "99 % of steps FULL, 1 % PIECEWISE"),
        (GraphSteps(12), "100 % of steps FULL"),
        (GraphSteps(beyond=3), "only steps above the largest captured size so far"),
    ],
)
def test_words(steps: GraphSteps, words: str) -> None:
    assert graph_words(steps, {"model_runner": "V1"}) == words


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"model_runner": "V2"}, "unknown: the V2 model runner logs no table"),
        ({"model_runner": "V1", "cudagraph_mode": "NONE"}, "no CUDA graphs"),
        ({"non_default_args": {"port": 1}}, "unknown: the server runs without --cudagraph-metrics"),
        ({"non_default_args": {"cudagraph_metrics": True}}, "unknown: no table yet"),
        ({}, "unknown: no table yet"),
    ],
)
def test_words_without_a_table(facts: dict[str, object], words: str) -> None:
    assert graph_words(None, facts) == words

"""Which lines belong together, in recorded logs and in made ones."""

from __future__ import annotations

import re

import pytest

from sparktui.bootlog.lines import Line, LineSplitter
from sparktui.bootlog.records import RECORD_LIMIT
from tests.bootlog.logs import LOGS, log_bytes, log_lines

NAMES = sorted(str(path.relative_to(LOGS)) for path in LOGS.glob("*/*.log"))
CRASH = "0.24.0-h200/boot_fail_missing_flashinfer.log"


def split(data: bytes) -> list[Line]:
    splitter = LineSplitter()
    return splitter.feed(data) + splitter.flush()


def records(*texts: str) -> list[int]:
    """The record of each of these lines."""
    return [line.record for line in split("\n".join(texts).encode())]


def spans(lines: list[Line]) -> dict[int, tuple[int, str, str]]:
    """Records of several lines: how many, first message, last message."""
    found: dict[int, list[Line]] = {}
    for line in lines:
        found.setdefault(line.record, []).append(line)
    return {
        record: (len(lines), lines[0].message, lines[-1].message)
        for record, lines in found.items()
        if len(lines) > 1
    }


def head(message: str, second: int = 0, process: str = "EngineCore pid=7") -> str:
    return f"({process}) ERROR 11-30 17:40:{second:02} [core.py:1] {message}"


@pytest.mark.parametrize("name", NAMES)
def test_a_record_begins_with_its_first_line(name: str) -> None:
    first: dict[int, Line] = {}
    for line in log_lines(name):
        begun = first.setdefault(line.record, line)
        assert begun.number == line.record <= line.number
        assert (begun.process, begun.pid, begun.level, begun.time, begun.source) == (
            line.process,
            line.pid,
            line.level,
            line.time,
            line.source,
        )


def test_a_recorded_crash() -> None:
    lines = log_lines(CRASH)
    found = spans(lines)
    assert found[23] == (
        33,
        "EngineCore failed to start.",
        "ModuleNotFoundError: No module named 'flashinfer'",
    )
    assert found[56] == (39, "Process EngineCore:", "ModuleNotFoundError: No module named 'flashinfer'")
    assert found[96][:2] == (63, "Traceback (most recent call last):")
    assert found[96][2].startswith("RuntimeError: Engine core initialization failed.")
    assert sorted(found) == [1, 23, 56, 96]
    assert lines[94].message.startswith("[rank0]:[W1130")
    assert lines[94].record == 95


def test_tracebacks_of_new_releases_have_no_heads() -> None:
    found = spans(log_lines("0.32.0-cpu/sig_sigint_boot.log"))
    assert found[65] == (44, "Traceback (most recent call last):", "KeyboardInterrupt")
    count, first, last = found[109]
    assert (count, "UserWarning" in first, last.strip()) == (
        2, True, "warnings.warn('resource_tracker: There appear to be %d '",
    )  # fmt: skip
    found = spans(log_lines("0.32.0-cpu/fail_maxlen.log"))
    assert found[12][2].strip().startswith("For further information visit")


def test_a_table_is_one_record_and_lines_of_one_second_are_many() -> None:
    lines = log_lines("0.24.0-h200/boot_fi_ngram.log")
    table = next(line for line in lines if line.message.startswith("**CUDAGraph Config"))
    rows = [line for line in lines if line.record == table.number]
    assert len(rows) == 14
    assert any(line.message.startswith("| Unpadded Tokens") for line in rows)
    routes = [line for line in lines if line.message.startswith("Route: ")]
    assert len({line.record for line in routes}) == len(routes) > 20


def test_a_terminal_adds_a_return_to_each_line() -> None:
    found = spans(log_lines("0.32.0-cpu/boot_ngram_tty.log"))
    assert found[24] == (5, "OpenMP thread binding info: ", "\treserved_cpus=[1]")
    assert set(found) == {3, 24, 29, 31, 128}


@pytest.mark.parametrize("name", NAMES)
def test_a_copied_log_has_lost_its_returns(name: str) -> None:
    data = log_bytes(name)
    bare = re.sub(rb"\r+\n", b"\n", data)
    assert [line.record for line in split(bare)] == [line.record for line in split(data)]


def test_a_terminal_is_known_before_its_first_record_of_several_lines() -> None:
    data = "\r\n".join([head("a", 1), head("b", 2), head("Route: 1", 3), head("Route: 2", 3), ""])
    assert [line.record for line in split(data.encode())] == [1, 2, 3, 4]
    piped = (
        head("a", 1)
        + "\n"
        + head("x", 2)
        + "\r\n"
        + head("y", 2)
        + "\r\n"
        + head("z", 2)
        + "\n"
        + head("w", 2)
    )
    assert [line.record for line in split(piped.encode())] == [1, 2, 2, 2, 5]


def test_records_of_two_processes_interleave() -> None:
    mine, other = "EngineCore pid=7", "Worker pid=8"
    lines = [
        head("a\r", process=mine),
        head("c\r", process=other),
        head("b", process=mine),
        head("d", process=other),
    ]
    assert records(head("start", 59), *lines) == [1, 2, 3, 2, 3]


def test_a_bare_traceback_goes_on_between_other_lines() -> None:
    found = records(
        "Process EngineCore:",
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in <module>',
        head("something else", process="APIServer pid=1"),
        "Capturing CUDA graphs: 50%|█████     | 1/2 [00:00<00:00,  1.00it/s]",
        "[W1130 17:47:08.552435897 socket.cpp:207] no hostname",
        "    f()",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "CUDA kernel errors might be asynchronously reported at some other API call",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        "ValueError: y",
        head("later", 1, process="APIServer pid=1"),
        "a line of its own",
    )
    assert found == [1, 1, 1, 4, 5, 6, 1, 1, 1, 1, 1, 1, 1, 1, 15, 16]


def test_what_begins_something_ends_a_record() -> None:
    for text in (
        "Traceback (most recent call last):",
        "Process Worker_TP0:",
        "usage: vllm [-h] [-v]",
        "vllm serve: error: unrecognized arguments: --x",
        "INFO:     Application startup complete.",
        "Loading safetensors checkpoint shards: 100% Completed | 1/1 [00:00<00:00, 1.0it/s]",
        " █▄█▀ █     █     █ ▀▄▀ █  version 0.24.0",
        "+ vllm serve model",
        "/usr/lib/python3.12/x.py:254: UserWarning: leaked",
    ):
        assert records("Traceback (most recent call last):", "  x", "ValueError: y", text) == [1, 1, 1, 4], (
            text
        )


def test_uvicorn_writes_a_bare_traceback_below_an_error() -> None:
    trace = ["Traceback (most recent call last):", "  x", "ValueError: y"]
    assert records("ERROR:    Exception in ASGI application", *trace, "INFO:     done") == [1, 1, 1, 1, 5]
    assert records("INFO:     127.0.0.1:1 - x", *trace) == [1, 2, 2, 2]
    prefixed = [f"(APIServer pid=1) {text}" for text in ("ERROR:    Exception", *trace)]
    assert records(*prefixed) == [1, 1, 1, 1]


def test_a_bar_takes_nothing_in() -> None:
    bar = "(EngineCore pid=7) Capturing: 100%|██████████| 1/1 [00:00<00:00,  1.00it/s]"
    assert records(bar, "(EngineCore pid=7)   indented") == [1, 2]


def test_torch_puts_the_rank_before_each_line() -> None:
    assert records(
        "[rank0]: Traceback (most recent call last):",
        "[rank0]:   File x",
        "[rank0]: ValueError: y",
        "[rank0]:[W1130 x",
    ) == [1, 1, 1, 4]


def test_a_record_has_an_end() -> None:
    lines = ["Traceback (most recent call last):", *["  x"] * (2 * RECORD_LIMIT)]
    found = records(*lines)
    assert found[:RECORD_LIMIT] == [1] * RECORD_LIMIT
    assert found[RECORD_LIMIT : RECORD_LIMIT + 2] == [RECORD_LIMIT + 1] * 2
    assert len(set(found)) == 3


def test_any_number_of_processes() -> None:
    lines = [head("a\r", process=f"Worker pid={pid}") for pid in range(2000)]
    assert len(set(records(*lines, head("b", process="Worker pid=1999")))) == 2000

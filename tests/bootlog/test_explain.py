"""A whole log, explained."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparktui.bootlog.explain import Asked, NoBoot, explain, find_boot, gravity
from sparktui.schema.bootlog import BootReport
from tests.bootlog.logs import log_bytes
from tests.cases.boots import READY, engine, server

NGRAM = "0.24.0-h200/boot_fi_ngram.log"
OFF = "0.32.0-cpu/boot_off_pipe.log"
FAILED = "0.32.0-cpu/fail_suffix.log"


def chunked(*names: str, size: int = 3000) -> Iterator[bytes]:
    data = b"".join(log_bytes(name) for name in names)
    return (data[start : start + size] for start in range(0, len(data), size))


def lines(*messages: str) -> list[bytes]:
    return ["".join(f"{message}\n" for message in messages).encode()]


def findings(report: BootReport) -> set[tuple[str, int]]:
    return {(finding.id, finding.line) for finding in report.findings}


def test_the_boot_that_lost_its_graphs() -> None:
    report = explain(chunked(NGRAM))
    assert report.vllm_version == "0.24.0"
    assert report.ready
    assert report.root_cause is None
    assert report.lines == log_bytes(NGRAM).count(b"\n")
    assert report.findings[0].id == "cg-spec-piecewise"
    assert report.findings[0].line == 34
    assert report.facts["cudagraph_mode"] == "PIECEWISE"


def test_seconds_are_the_logs_own() -> None:
    phases = {phase.name: phase for phase in explain(chunked(NGRAM)).phases}
    assert phases["ready"].start_s == 80  # 18:15:57 to 18:17:17
    assert phases["engine"].start_s == 42
    assert sum(phase.seconds or 0 for phase in phases.values()) == 80


def test_gravest_first_and_graphs_among_equals() -> None:
    report = explain(chunked(NGRAM))
    assert list(report.findings) == sorted(report.findings, key=gravity)
    grave = [finding.id for finding in report.findings if finding.severity == "costs speed"]
    assert grave.index("cg-spec-piecewise") < grave.index("spec-async-off")
    assert report.findings[-1].severity == "harmless"


@pytest.mark.parametrize("size", [1, 700, 1 << 20])
def test_chunks_change_nothing(size: int) -> None:
    assert explain(chunked(FAILED, NGRAM, size=size)) == explain(chunked(FAILED, NGRAM))


def test_the_last_boot_with_the_lines_of_the_file() -> None:
    alone, before = explain(chunked(NGRAM)), log_bytes(OFF).count(b"\n") + 1  # the banner's empty line
    boot = find_boot(chunked(OFF, NGRAM))
    assert (boot.number, boot.of) == (2, 2)
    assert (boot.first_line, boot.last_line) == (before + 1, before + alone.lines - 1)
    assert boot.report.lines == alone.lines - 1
    moved = {(id_, line + before - 1) for id_, line in findings(alone)}
    assert findings(boot.report) == moved


def test_an_earlier_boot() -> None:
    boot = find_boot(chunked(FAILED, NGRAM, OFF), boot=2)
    assert (boot.number, boot.of) == (2, 3)
    assert boot.report.vllm_version == "0.24.0"
    assert boot == find_boot(chunked(FAILED, NGRAM, OFF, size=77), boot=2)
    first = find_boot(chunked(FAILED, NGRAM, OFF), boot=1)
    assert first.first_line == 1
    assert first.last_line == boot.first_line - 1


def test_a_boot_that_is_not_there() -> None:
    with pytest.raises(NoBoot, match="holds 2 boots; there is no boot 3"):
        find_boot(chunked(OFF, NGRAM), boot=3)
    with pytest.raises(NoBoot, match="holds one boot; there is no boot 2"):
        find_boot(chunked(OFF), boot=2)


@pytest.mark.parametrize(
    "line", ["", "hello", "INFO:     Uvicorn running on http://0.0.0.0:80", "[1/3] done"]
)
def test_a_log_of_something_else(line: str) -> None:
    with pytest.raises(NoBoot, match="not a line of vLLM"):
        explain(lines(line, "another line"))


def test_an_excerpt_is_a_log() -> None:
    excerpt = (
        "ValueError: Free memory on device cuda:0 (3.5/121.7 GiB) on startup is less than desired GPU memory"
    )
    assert explain(lines(*engine("Using V2 Model Runner"))).facts["model_runner"] == "V2"
    assert explain(lines(excerpt + " utilization (0.9, 109.5 GiB).")).findings


def test_a_failed_boot_has_a_root_cause() -> None:
    report = explain(chunked(FAILED))
    assert not report.ready
    assert report.root_cause is not None
    assert report.root_cause.startswith("ImportError: Arctic Inference is required")


def test_errors_that_a_server_survived_are_no_root_cause() -> None:
    start = server("version 0.27.1", "non-default args: {}")
    error = server("Error in a request", level="ERROR")
    report = explain(lines(*start, READY, *error))
    assert report.ready
    assert report.root_cause is None


def test_expected_lines_carry_the_lines_of_the_file() -> None:
    before = log_bytes(OFF).count(b"\n")
    asked = Asked(expect=("setting cudagraph_mode=PIECEWISE", "MARLIN"))
    met, missing = explain(chunked(OFF, NGRAM), asked).expected
    assert (met.met, met.line) == (True, before + 34)
    assert (missing.met, missing.line) == (False, 0)


def test_the_arguments_that_were_sent_are_compared() -> None:
    argv = ("vllm", "serve", "/models/tiny-1b", "--max-num-seqs", "128")
    alone = {finding.id for finding in explain(chunked(NGRAM)).findings}
    compared = explain(chunked(NGRAM), Asked(argv=argv)).findings
    new = [finding for finding in compared if finding.id not in alone]
    assert any("max" in finding.text and "128" in finding.text for finding in new)


def test_a_log_without_a_newline_at_its_end() -> None:
    (data,) = lines(*server("version 0.27.1", "non-default args: {}"), READY)
    boot = find_boot([data[:-1]])
    assert boot.report.ready
    assert (boot.first_line, boot.last_line, boot.report.lines) == (1, 3, 3)

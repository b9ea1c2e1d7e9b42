"""What stands before a message, in every release and as people paste it."""

from __future__ import annotations

import pytest

from sparktui.bootlog.lines import Line, LineSplitter, parse_line
from tests.bootlog.logs import log_lines


def one(data: bytes) -> Line:
    splitter = LineSplitter()
    (line,) = splitter.feed(data) + splitter.flush()
    return line


@pytest.mark.parametrize(
    ("text", "process", "pid", "level", "source", "message"),
    [
        ("INFO 08-26 12:07:05 metrics.py:411] x", None, None, "INFO", "metrics.py:411", "x"),
        ("INFO 06-09 12:00:00 [core.py:58] x", None, None, "INFO", "core.py:58", "x"),
        ("(VllmWorker rank=0 pid=8) INFO 06-09 12:00:00 [a.py:1] x", "VllmWorker", 8, "INFO", "a.py:1", "x"),
        ("(VllmWorker rank=0) INFO 06-09 12:00:00 [a.py:1] x", "VllmWorker", None, "INFO", "a.py:1", "x"),
        ("(A pid=1) (A pid=1) DEBUG 06-09 12:00:00 [v1/.../a.py:1] x", "A", 1, "DEBUG", "v1/.../a.py:1", "x"),
        ("(pid=2528, ip=10.0.0.2) x", None, 2528, None, None, "x"),
        ("(Serve:app:LLM pid=5) INFO 06-09 12:00:00 [a.py:1] x", "Serve:app:LLM", 5, "INFO", "a.py:1", "x"),
        ("(RayWorkerWrapper pid=9, ip=169.254.x.x) y:9 [0] NCCL INFO x", "RayWorkerWrapper", 9, None, None,
         "y:9 [0] NCCL INFO x"),
        ("node1 (EngineCore pid=7) INFO 06-09 12:00:00 [a.py:1] x", "EngineCore", 7, "INFO", "a.py:1", "x"),
        ("(EngineCore pid=7) [node1] INFO 06-09 12:00:00 [a.py:1] x", "EngineCore", 7, "INFO", "a.py:1", "x"),
        ("(EngineCore pid=7) node1:INFO 06-09 12:00:00 [a.py:1] x", "EngineCore", 7, "INFO", "a.py:1", "x"),
        ("CRITICAL: x", None, None, "CRITICAL", None, "x"),
        ("ERROR: x", None, None, None, None, "ERROR: x"),
        ("+ vllm serve model --port 8000", None, None, None, None, "+ vllm serve model --port 8000"),
        ("starting the server (try 2) INFO", None, None, None, None, "starting the server (try 2) INFO"),
        ("usage: vllm serve [model_tag]", None, None, None, None, "usage: vllm serve [model_tag]"),
        ("vllm: error: unrecognized: -x", None, None, None, None, "vllm: error: unrecognized: -x"),
    ],
)  # fmt: skip
def test_heads_of_all_releases(
    text: str, process: str | None, pid: int | None, level: str | None, source: str | None, message: str
) -> None:
    line = one(text.encode() + b"\n")
    assert line.text == text
    assert (line.process, line.pid, line.level, line.source) == (process, pid, level, source)
    assert line.message == message


def test_a_head_far_into_a_line_is_quoted() -> None:
    line = one(b"x" * 120 + b" INFO 06-09 12:00:00 [a.py:1] x\n")
    assert (line.level, line.time) == (None, None)


def test_every_colour_code_without_its_escape() -> None:
    text = b"[0;36m(APIServer pid=1)[0;0m [32mINFO[0m [90m11-30 17:40:00[0m [90m[a.py:1][0m x [1] y\n"
    line = one(text)
    assert line.text == "(APIServer pid=1) INFO 11-30 17:40:00 [a.py:1] x [1] y"
    assert one(b"took 10m in [10m steps\n").text == "took 10m in [10m steps"


def test_the_logo_is_of_a_logger_or_bare() -> None:
    lines = log_lines("0.24.0-h200/boot_off.log")
    assert [line.level for line in lines[:6]] == ["INFO"] * 6
    assert lines[2].message.endswith("version 0.24.0")
    assert one(" ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.24.0\n".encode()).level is None


def test_innermost_of_nested_prefixes() -> None:
    line = one(
        b"(RayWorkerWrapper pid=5, ip=10.0.0.1) (EngineCore pid=6) INFO 01-02 03:04:05 [core.py:1] x\n"
    )
    assert (line.process, line.pid, line.level, line.message) == ("EngineCore", 6, "INFO", "x")
    assert one(b"(VllmWorker rank=0 pid=8) x\n").pid == 8
    assert one(b"(see above) x\n").process is None


def test_half_stripped_colours_after_the_prefix() -> None:
    line = one(b"[0;36m(EngineCore pid=7)[0;0m INFO 11-30 17:40:00 [core.py:1] x [1] done\n")
    assert (line.process, line.level, line.message) == ("EngineCore", "INFO", "x [1] done")
    assert one(b"(EngineCore pid=7) [0;0mINFO 11-30 17:40:00 [core.py:1] x\n").level == "INFO"


def test_uvicorn_level_with_and_without_prefix() -> None:
    for data in (
        b"INFO:     Application startup complete.\n",
        b"(APIServer pid=1) INFO:     Application startup complete.\n",
    ):
        line = one(data)
        assert (line.level, line.message) == ("INFO", "Application startup complete.")


def test_a_line_that_a_report_quotes_without_its_time() -> None:
    line = parse_line(1, "WARNING [vllm.py:865] Dynamic speculative decoding")
    assert (line.level, line.time, line.source) == ("WARNING", None, "vllm.py:865")
    assert line.message == "Dynamic speculative decoding"
    other = parse_line(1, "INFO [worker] started")  # some other program's
    assert (other.level, other.message) == (None, "INFO [worker] started")

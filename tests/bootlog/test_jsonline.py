"""JSON records as vLLM 0.32 writes them; the field names are those of vllm/logging_utils/formatter.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparktui.bootlog.failure import root_cause
from sparktui.bootlog.jsonline import RECORD_LINES, read_record
from sparktui.bootlog.lines import LINE_LIMIT, Line, LineSplitter, parse_line
from tests.bootlog.logs import log_lines

TRACE = 'Traceback (most recent call last):\n  File "core.py", line 1, in f\nValueError: too large'


def record(message: str, **fields: Any) -> dict[str, Any]:
    """The fields of ``JSON_FORMAT``, in its order."""
    return {
        "asctime": "2026-11-30 18:17:11,123",
        "levelname": "INFO",
        "name": "vllm.v1.engine.core",
        "processName": "EngineCore",
        "process": 717,
        "message": message,
    } | fields


def split(*records: dict[str, Any] | str) -> list[Line]:
    text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)
    splitter = LineSplitter()
    return splitter.feed(text.encode()) + splitter.flush()


def test_a_record_reads_like_a_line_of_text() -> None:
    (line,) = split(record("Using max model len 8192"))
    assert line.text == (
        "(EngineCore pid=717) INFO 11-30 18:17:11 [vllm.v1.engine.core] Using max model len 8192"
    )
    assert (line.process, line.pid, line.level, line.time) == ("EngineCore", 717, "INFO", "11-30 18:17:11")
    assert (line.source, line.message) == ("vllm.v1.engine.core", "Using max model len 8192")
    assert parse_line(1, line.text) == line


def test_uvicorn_through_the_same_formatter() -> None:
    (line,) = split(
        record(
            '127.0.0.1:46342 - "GET /health HTTP/1.1" 200',
            name="uvicorn.access",
            processName="MainProcess",
            process=592,
        )
    )
    assert line.text == '(MainProcess pid=592) INFO:     127.0.0.1:46342 - "GET /health HTTP/1.1" 200'
    assert (line.level, line.pid, line.time) == ("INFO", 592, "11-30 18:17:11")
    assert line.message.startswith("127.0.0.1:46342")


def test_an_exception_is_a_record_of_several_lines() -> None:
    lines = split(
        record("before"),
        record("EngineCore failed to start.", levelname="ERROR", exc_info=TRACE),
        record("after"),
    )
    assert [line.number for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line.record for line in lines] == [1, 2, 2, 2, 2, 6]
    assert [line.message for line in lines][1:5] == ["EngineCore failed to start.", *TRACE.split("\n")]
    assert {line.text[:44] for line in lines[1:5]} == {"(EngineCore pid=717) ERROR 11-30 18:17:11 [v"}
    assert root_cause(lines) == "ValueError: too large"


def test_records_of_one_second_stay_apart() -> None:
    lines = split(record("a"), record("  b"), record("c"))
    assert [line.record for line in lines] == [1, 2, 3]


def test_a_whole_failed_boot_has_the_same_cause_as_in_text() -> None:
    text = log_lines("0.24.0-h200/boot_fail_missing_flashinfer.log")
    records: dict[int, list[Line]] = {}
    for line in text:
        records.setdefault(line.record, []).append(line)
    lines = split(
        *(
            record(
                "\n".join(line.message for line in lines),
                levelname=lines[0].level,
                processName=lines[0].process,
                process=lines[0].pid,
            )
            if lines[0].level
            else "\n".join(line.text for line in lines)
            for lines in records.values()
        )
    )
    assert root_cause(lines) == root_cause(text) == "ModuleNotFoundError: No module named 'flashinfer'"
    assert [line.message for line in lines] == [line.message for line in text]


def test_escapes_and_halves_of_characters_in_json_are_cleaned() -> None:
    (line,) = split(record("\x1b[32mgreen\x1b[0m \x07bell \ud800 [/x] [bold]"))
    assert line.message == "green bell  [/x] [bold]"
    assert line.text.encode("utf-8").endswith(b"[bold]")


def test_a_cut_record_keeps_what_there_is() -> None:
    whole = json.dumps(record("x" * 2 * LINE_LIMIT))
    (line,) = split(whole)
    assert (line.process, line.level) == ("EngineCore", "INFO")
    assert line.message.startswith("xxx")
    assert line.message.endswith(" bytes dropped]")
    assert f"[{len(whole) - LINE_LIMIT} bytes dropped]" in line.message


@pytest.mark.parametrize("end", ["\\", "\\u", "\\u00e", "\\\\\\", "\\n"])
def test_a_cut_within_an_escape(end: str) -> None:
    cut = json.dumps(record("ab"))[:-2] + end
    found = read_record(cut)
    assert found is not None
    assert found.lines[0].startswith("ab")


def test_a_record_has_an_end() -> None:
    lines = split(record("\n".join("abc" for _ in range(10_000))))
    assert len(lines) == RECORD_LINES
    assert lines[-1].message == f"… [{10_000 - RECORD_LINES + 1} lines dropped]"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '{"levelname": "INFO"}',
        '{"levelname": "LOUD", "message": "x"}',
        '{"message": ["x"], "level": "INFO"}',
        "{'model': 'x', 'level': 'INFO', 'message': 'y'}",
        '{"level": "INFO", "message": "x"} and more',
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_other_json_is_a_line_like_any(text: str) -> None:
    (line,) = split(text)
    assert (line.level, line.process) == (None, None)
    assert line.text.startswith(text[:LINE_LIMIT])


def test_other_names_of_the_fields() -> None:
    (line,) = split('{"timestamp": "2026-11-30T18:17:11.5Z", "level": "warning", "msg": "late"}')
    assert (line.level, line.time, line.message) == ("WARNING", "11-30 18:17:11", "late")
    assert line.text == "WARNING 11-30 18:17:11 late"

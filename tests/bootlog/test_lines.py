from __future__ import annotations

import unicodedata
from dataclasses import FrozenInstanceError, astuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparktui.bootlog.lines import LINE_LIMIT, Line, LineSplitter
from tests.bootlog.logs import LOGS, log_bytes, log_lines

NAMES = sorted(str(path.relative_to(LOGS)) for path in LOGS.glob("*/*.log"))
STAMP = b"2026-11-30T18:17:11.123456789Z "
CUT = 16 * 1024
PIECES = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\x1b[0;36m",
        b"\x1b[",
        b"\x1b]0;title\x07",
        b"\xff",
        "█▄é".encode(),
        b"\t",
        b" ",
        b"(EngineCore pid=7) ",
        b"INFO 11-30 17:40:00 [core.py:1] ",
        b"50%|",
        b"text",
        b"[0;0m",
        b"\x00\x9b\x85",
    ]
)
CARRIED = st.sampled_from(
    [
        b"Traceback (most recent call last):\n  x\n",
        b"ValueError: x",
        b'{"levelname": "INFO", "process": 1, "message": "a\\nb',
        b'"}\n',
        b'{"log":"half","stream":"stdout"}\n',
        b'{"log":"\\rwhole\\n","stream":"stdout","time":"x"}\n',
        STAMP + b"stderr P half ",
        STAMP + b"stderr F whole",
        STAMP,
        b"vllm-1  | ",
        b"Nov 30 18:17:11 spark vllm[123]: ",
        b"x" * CUT,
        b"x" * (CUT - 8),
    ]
)
STREAM = st.lists(PIECES | st.binary(max_size=8), max_size=30).map(b"".join)
MIXED = st.lists(PIECES | CARRIED, max_size=30).map(b"".join)
CUTS = st.lists(st.integers(0, 200) | st.integers(0, 6 * CUT), max_size=12)


def split(data: bytes, cuts: list[int] | None = None) -> list[Line]:
    splitter, lines, start = LineSplitter(), [], 0
    for cut in sorted(min(cut, len(data)) for cut in cuts or []):
        lines += splitter.feed(data[start:cut])
        start = cut
    return lines + splitter.feed(data[start:]) + splitter.flush()


def one(data: bytes) -> Line:
    (line,) = split(data)
    return line


@given(STREAM | MIXED, CUTS)
def test_chunks_change_nothing(data: bytes, cuts: list[int]) -> None:
    assert split(data, cuts) == split(data)


@given(MIXED)
def test_numbers_grow_and_records_begin_where_they_say(data: bytes) -> None:
    lines = split(data)
    numbers = [line.number for line in lines]
    assert numbers == sorted(set(numbers))
    assert {line.record for line in lines} <= set(numbers)
    assert all(line.record <= line.number for line in lines)
    assert not any(unicodedata.category(char) == "Cc" for x in lines for char in x.text.replace("\t", ""))


@given(STREAM)
def test_a_line_a_newline_and_no_control_characters(data: bytes) -> None:
    lines = split(data)
    unfinished = 0 if data.endswith(b"\n") or not data else 1
    assert [line.number for line in lines] == list(range(1, data.count(b"\n") + unfinished + 1))
    for line in lines:
        shown = line.text.replace("\t", "")
        assert not any(unicodedata.category(char) == "Cc" for char in shown)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_recorded_log_in_chunks(size: int) -> None:
    data = log_bytes("0.32.0-cpu/boot_ngram_tty.log")
    assert split(data, list(range(0, len(data), size))) == log_lines("0.32.0-cpu/boot_ngram_tty.log")


@pytest.mark.parametrize("name", NAMES)
@given(cuts=st.lists(st.integers(0, 90_000), max_size=40))
@settings(max_examples=5, deadline=None)
def test_every_recorded_log_in_chunks(name: str, cuts: list[int]) -> None:
    assert split(log_bytes(name), cuts) == log_lines(name)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_quickly_reads_the_same_slowly(name: str) -> None:
    """A line that comes in two chunks takes the long way."""
    for line in log_bytes(name).splitlines(keepends=True):
        if len(line) > 1:
            assert split(line, [1]) == split(line)


def test_old_grammar_prefixes_every_line() -> None:
    line = one(b"(EngineCore_DP0 pid=12) WARNING 01-02 03:04:05 [gpu/model_runner.py:9] a: b\r\n")
    assert (line.process, line.pid, line.level, line.time) == (
        "EngineCore_DP0",
        12,
        "WARNING",
        "01-02 03:04:05",
    )
    assert (line.source, line.message) == ("gpu/model_runner.py:9", "a: b")
    bare = one(b"(Worker_TP0_EP0 pid=3)   File x, line 1\n")
    assert (bare.process, bare.level, bare.message) == ("Worker_TP0_EP0", None, "  File x, line 1")


def test_new_grammar_leaves_other_lines_bare() -> None:
    line = one(b"Traceback (most recent call last):\n")
    assert (line.process, line.level, line.message) == (None, None, "Traceback (most recent call last):")


def test_a_terminal_log_reads_like_a_piped_one() -> None:
    lines = log_lines("0.32.0-cpu/boot_ngram_tty.log")
    args = next(line for line in lines if line.message.startswith("non-default args"))
    assert (args.process, args.pid, args.level, args.source) == (
        "APIServer",
        11574,
        "INFO",
        "api_utils.py:286",
    )
    assert not any("\x1b" in line.text or "[0m" in line.text for line in lines)


def test_escapes_go_and_markup_stays() -> None:
    data = b"a\x1b[31mb\x1b[0m\x1b]8;;http://x\x1b\\c\x1b]0;t\x07d \x1bPq\x1b\\e [/x] [bold]f"
    data += b"\x7f\x08\x00\x9b\xc2\x9b1mg\n"
    assert one(data).text == "abcd e [/x] [bold]f\ufffdg"
    assert one("a\u202eb\u2028c\n".encode()).text == "abc"


def test_an_unfinished_escape_hides_nothing() -> None:
    assert one(b"x\x1b]0;no end\n").text == "x0;no end"


def test_last_state_of_a_progress_bar_keeps_its_process() -> None:
    line = one(b"(EngineCore pid=7) \rCapturing:  0%\rCapturing: 50%\rCapturing: 100%\r\r\n")
    assert (line.text, line.process) == ("Capturing: 100%", "EngineCore")


def test_partial_follows_the_bar() -> None:
    splitter = LineSplitter()
    splitter.feed(b"whole\nhalf a li")
    assert splitter.partial == ""
    splitter.feed(b"ne\n\rbar: \x1b[1m10%")
    assert splitter.partial == "bar: 10%"
    splitter.feed(b"\r")
    assert splitter.partial == "bar: 10%"
    splitter.feed(b"bar: 20%")
    assert splitter.partial == "bar: 20%"
    assert splitter.partial_line == Line(3, "bar: 20%", message="bar: 20%")
    assert [line.text for line in splitter.feed(b"\n")] == ["bar: 20%"]
    assert splitter.partial == ""
    assert splitter.partial_line is None


def test_a_megabyte_without_newline_is_cut() -> None:
    splitter = LineSplitter()
    for _ in range(16):
        assert splitter.feed(b"x" * 2**16) == []
    (line,) = splitter.flush()
    assert line.text.startswith("x" * LINE_LIMIT + " … [")
    assert line.text.endswith(f"[{2**20 - LINE_LIMIT} bytes dropped]")
    assert len(line.text) < LINE_LIMIT + 50


def test_a_cut_line_ends_at_its_newline() -> None:
    lines = split(b"x" * 2**20 + b"\nnext\n")
    assert [line.number for line in lines] == [1, 2]
    assert lines[1].text == "next"


def test_flush_gives_the_unfinished_line_once() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"a\nb") == [Line(1, "a", message="a")]
    assert splitter.flush() == [Line(2, "b", message="b")]
    assert splitter.flush() == []


def head(message: str) -> bytes:
    return b"(EngineCore pid=7) INFO 11-30 17:40:00 [core.py:1] " + message.encode()


def test_a_line_of_16_kib_goes_on_where_no_head_is() -> None:
    message = "".join(f"{n} " for n in range(9000))
    data = head(message)
    pieces = [data[at : at + CUT] for at in range(0, len(data), CUT)]
    assert len(pieces) == 3
    lines = split(b"\n".join([*pieces, head("next"), b""]))
    assert [(line.number, line.message) for line in lines] == [(3, message), (4, "next")]


def test_a_line_of_16_kib_may_be_whole() -> None:
    exact = head("")
    exact += b"x" * (CUT - len(exact))
    for following in (
        head("next"),
        b"INFO:     up",
        b'{"levelname": "INFO", "message": "x"}',
        STAMP + b"x",
        b"",
    ):
        lines = split(exact + b"\n" + following + b"\n")
        assert [line.number for line in lines] == [1, 2]
        assert len(lines[0].text) == CUT
    assert [len(line.text) for line in split(exact + b"x\nbare\n")] == [CUT + 1, 4]
    splitter = LineSplitter()
    assert splitter.feed(exact + b"\n") == []
    assert [(line.number, len(line.text)) for line in splitter.flush()] == [(1, CUT)]


def test_pieces_that_never_end_are_cut() -> None:
    splitter = LineSplitter()
    for _ in range(100):
        assert splitter.feed(b"x" * CUT + b"\n") == []
    (line,) = splitter.flush()
    assert line.text.endswith(f"x … [{100 * CUT - LINE_LIMIT} bytes dropped]")


def test_a_line_cannot_be_changed() -> None:
    line = one(head("x"))
    with pytest.raises(FrozenInstanceError):
        line.message = "y"  # type: ignore[misc]
    assert (line, hash(line)) == (Line(*astuple(line)), hash(Line(*astuple(line))))
    assert Line(7, "x").record == 7

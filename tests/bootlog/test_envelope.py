"""Logs as docker, compose, journald and Kubernetes hand them over."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparktui.bootlog.envelope import CUT, Envelopes
from sparktui.bootlog.lines import LINE_LIMIT, Line, LineSplitter
from tests.bootlog.logs import LOGS, log_bytes

STAMP = "2026-11-30T18:17:11.123456789Z"
HEAD = "(EngineCore pid=7) WARNING 11-30 17:40:00 [core.py:1] "
NAMES = sorted(str(path.relative_to(LOGS)) for path in LOGS.glob("*/*.log"))


def docker_json(line: bytes, stream: str = "stdout") -> bytes:
    """docker's json-file: pieces of 16 KiB, the last with the line end."""
    pieces = [line[at : at + CUT] for at in range(0, len(line), CUT)] or [b""]
    texts = [piece.decode("utf-8", "replace") for piece in pieces]
    texts[-1] += "\n"
    records = [{"log": text, "stream": stream, "time": STAMP} for text in texts]
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def cri(line: bytes, stream: str = "stderr") -> bytes:
    pieces = [line[at : at + CUT] for at in range(0, len(line), CUT)] or [b""]
    tags = [b"P"] * (len(pieces) - 1) + [b"F"]
    return b"".join(
        f"{STAMP} {stream} ".encode() + tag + b" " + piece + b"\n"
        for tag, piece in zip(tags, pieces, strict=True)
    )


def docker_stamped(line: bytes) -> bytes:
    pieces = [line[at : at + CUT] for at in range(0, len(line), CUT)] or [b""]
    return b"".join(f"{STAMP} ".encode() + piece for piece in pieces) + b"\n"


def prefixed(prefix: str) -> Callable[[bytes], bytes]:
    return lambda line: prefix.encode() + line + b"\n"


CARRIERS: dict[str, Callable[[bytes], bytes]] = {
    "docker json-file": docker_json,
    "docker logs -t": docker_stamped,
    "kubectl logs --timestamps": prefixed("2026-11-30T18:17:11.12+01:00 "),
    "docker compose": prefixed("vllm-1  | "),
    "docker compose, coloured": prefixed("\x1b[36mvllm-1  | \x1b[0m"),
    "docker compose -t": prefixed(f"vllm-1      | {STAMP} "),
    "journald": prefixed("Nov 30 18:17:11 spark vllm[123]: "),
    "journald, short-precise": prefixed("Nov  3 18:17:11.123456 spark vllm.service[123]: "),
    "journald, short-iso": prefixed("2026-11-30T18:17:11+0000 spark.local vllm[123]: "),
    "journald, short-full": prefixed("Mon 2026-11-30 18:17:11 UTC spark vllm@8000[123]: "),
    "Kubernetes": cri,
    "kubectl logs --prefix": prefixed("[pod/vllm-5d4f-x/vllm] "),
}
CARRIER = pytest.mark.parametrize("carry", CARRIERS.values(), ids=CARRIERS.keys())


def split(data: bytes, size: int = 1 << 20) -> list[Line]:
    splitter, lines = LineSplitter(), []
    for at in range(0, len(data), size):
        lines += splitter.feed(data[at : at + size])
    return lines + splitter.flush()


def carried(data: bytes, carry: Callable[[bytes], bytes]) -> bytes:
    return b"".join(carry(line) for line in data.removesuffix(b"\n").split(b"\n"))


@CARRIER
@pytest.mark.parametrize("name", ["0.32.0-cpu/boot_ngram_tty.log", "0.24.0-h200/boot_fi_ngram.log"])
def test_a_recorded_log_reads_like_the_bare_one(carry: Callable[[bytes], bytes], name: str) -> None:
    data = log_bytes(name)
    assert split(carried(data, carry)) == split(data)


@CARRIER
@given(chunk=st.integers(1, 5000), name=st.sampled_from(NAMES))
@settings(max_examples=5, deadline=None)
def test_chunks_change_nothing(carry: Callable[[bytes], bytes], chunk: int, name: str) -> None:
    data = carried(log_bytes(name), carry)
    assert split(data, chunk) == split(data)


@pytest.mark.parametrize("name", NAMES)
def test_no_recorded_line_looks_carried(name: str) -> None:
    envelopes = Envelopes()
    for line in split(log_bytes(name)):
        assert envelopes.take_off(line.text) is None
        assert envelopes.take_off(line.message) is None or "{" in line.message


@pytest.mark.parametrize("carry", [docker_json, cri, docker_stamped])
def test_a_long_line_is_joined(carry: Callable[[bytes], bytes]) -> None:
    message = "".join(f"{n} " for n in range(9000))
    one, two = split(carry((HEAD + message).encode()) + carry((HEAD + "next").encode()))
    assert (one.message, two.message) == (message, "next")
    assert (one.process, one.level, two.level) == ("EngineCore", "WARNING", "WARNING")


@pytest.mark.parametrize("carry", [docker_json, cri])
def test_pieces_of_two_streams_do_not_mix(carry: Callable[..., bytes]) -> None:
    long = [
        carry((HEAD + letter * 20_000).encode(), stream)
        for letter, stream in (("a", "stdout"), ("b", "stderr"))
    ]
    first, second = (data.split(b"\n") for data in long)
    data = b"\n".join([first[0], second[0], second[1], first[1], b""])
    assert [line.message for line in split(data)] == ["b" * 20_000, "a" * 20_000]
    assert [line.number for line in split(data)] == [3, 4]


def test_pieces_without_an_end_are_told_at_the_end() -> None:
    data = cri(b"x" * 20_000).split(b"\n")[0] + b"\n" + cri(b"other", "stdout")
    splitter = LineSplitter()
    assert [line.text for line in splitter.feed(data)] == ["other"]
    assert [(line.number, len(line.text)) for line in splitter.flush()] == [(3, CUT)]
    assert splitter.flush() == []


def test_pieces_are_bounded() -> None:
    piece = f"{STAMP} stderr P ".encode() + b"x" * CUT + b"\n"
    splitter = LineSplitter()
    for _ in range(64):
        assert splitter.feed(piece) == []
    (line,) = splitter.flush()
    assert line.text == "x" * LINE_LIMIT + f" … [{64 * CUT - LINE_LIMIT} bytes dropped]"


def test_a_bar_in_json_shows_its_last_state() -> None:
    states = (
        "(EngineCore pid=7) "
        + "".join(f"\rCapturing: {n % 101}%" for n in range(20_000))
        + "\rCapturing: 100%"
    )
    (line,) = split(docker_json(states.encode()))
    assert (line.text, line.process) == ("Capturing: 100%", "EngineCore")


def test_colours_and_json_within_json() -> None:
    coloured = "\x1b[0;36m(EngineCore pid=7)\x1b[0;0m \x1b[32mINFO\x1b[0m 11-30 17:40:00 [core.py:1] x\r"
    inner = json.dumps({"levelname": "INFO", "processName": "EngineCore", "process": 7, "message": "a\nb"})
    lines = split(docker_json(coloured.encode()) + docker_json(inner.encode()))
    assert [(line.process, line.level, line.message) for line in lines] == [
        ("EngineCore", "INFO", "x"),
        ("EngineCore", "INFO", "a"),
        ("EngineCore", "INFO", "b"),
    ]


def test_a_service_with_a_name_of_its_own() -> None:
    data = b"Attaching to vllm-server\nvllm-server  | (APIServer pid=1) INFO:     up\n"
    data += b"vllm-server  | loose\nnone  | loose\n"
    assert [line.text for line in split(data)] == [
        "Attaching to vllm-server",
        "(APIServer pid=1) INFO:     up",
        "loose",
        "none  | loose",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30 18:21:09,886 - INFO - autotuner.py:622 - flashinfer.jit: [Autotuner]: starts",
        "2026-11-30T18:21:09Z a script's own line",
        "| Mode | Count |",
        "Loading safetensors checkpoint shards:   8% Completed | 1/13 [00:00<?, ?it/s]",
        "model | qwen",
        "Nov 30 is a date",
        '{"log": 3}',
        '{"log_level": "INFO"}',
        "[pod] x",
        "W1130 17:39:53.348000 11574 torch/_library/triton.py:53] Triton not available",
        HEAD + f"{STAMP} stderr F quoted",
    ],
)
def test_ordinary_lines_stay_whole(text: str) -> None:
    assert [line.text for line in split(text.encode() + b"\n")] == [text]

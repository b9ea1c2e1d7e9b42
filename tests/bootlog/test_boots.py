"""Where boots begin in a log of several."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import pytest

from sparktui.bootlog.boots import BootSplitter
from tests.bootlog.logs import LOGS, log_bytes
from tests.cases.boots import READY, engine, server

RECORDED = sorted(f"{path.parent.name}/{path.name}" for path in LOGS.glob("0.*/*.log"))
SEVERAL = (
    "0.24.0-h200/boot_fi_ngram.log",
    "0.32.0-cpu/fail_badflag.log",
    "0.32.0-cpu/fail_badflag.log",
    "0.32.0-cpu/boot_off_pipe.log",
    "0.27.1-cpu/boot_off.log",
    "0.32.0-cpu/fail_suffix.log",
)


def boots(data: bytes, chunk: int = 1000) -> list[bytes]:
    """The bytes of each boot."""
    splitter, found = BootSplitter(), [b""]
    pieces = [p for start in range(0, len(data), chunk) for p in splitter.feed(data[start : start + chunk])]
    for begins, piece in pieces + splitter.flush():
        found += [b""] if begins else []
        found[-1] += piece
    assert b"".join(found) == data
    return found


def text(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_log_is_one_boot(name: str) -> None:
    assert len(boots(log_bytes(name))) == 1


@pytest.mark.parametrize("name", RECORDED)
def test_the_same_log_again_is_another_boot(name: str) -> None:
    data = log_bytes(name)
    first, second = boots(data * 2)
    assert len(first) >= len(data)
    assert data.endswith(second)
    assert len(data) - len(second) < 800  # what stands before vLLM's first line


@pytest.mark.parametrize("chunk", [1, 13, 4096, 1 << 20])
def test_chunks_change_nothing(chunk: int) -> None:
    data = b"".join(log_bytes(name) for name in SEVERAL)
    found = boots(data, chunk)
    assert len(found) == len(SEVERAL)
    assert [len(boot) for boot in found] == [len(boot) for boot in boots(data)]


def test_a_boot_begins_with_the_banner_or_the_usage() -> None:
    found = boots(b"".join(log_bytes(name) for name in SEVERAL))
    first = [boot.partition(b"\n")[0].decode() for boot in found[1:]]
    assert [line.startswith("usage: vllm") for line in first] == [True, True, False, False, False]
    assert all("█▄   ▄█" in line for line in first[2:])


def old(process: int) -> list[str]:
    """The first lines of vLLM 0.10, which has no banner."""
    lines = server("vLLM API server version 0.10.0", "non-default args: {'model': '/m'}")
    return [line.replace("pid=1", f"pid={process}") for line in lines]


@pytest.mark.parametrize("process", [1, 77])
def test_without_a_banner_the_version_begins_a_boot(process: int) -> None:
    rest = [*engine("Initializing a V1 LLM engine (v0.10.0) with config: model='/m'"), READY]
    found = boots(text(*old(1), *rest, *old(process), *rest))
    assert [len(boot.splitlines()) for boot in found] == [4, 4]


def test_the_arguments_alone_begin_a_boot() -> None:
    again = server("non-default args: {'model': '/m'}")
    found = boots(text(*old(1), READY, *again, READY))
    assert found[1].splitlines()[0].decode() == again[0]


def docker_json(line: str) -> str:
    return json.dumps(
        {"log": f"{line}\n", "stream": "stdout", "time": "2026-11-30T12:00:00Z"}, ensure_ascii=False
    )


def compose(line: str) -> str:
    return f"vllm-1  | {line}"


def journal(line: str) -> str:
    return f"Nov 30 12:00:00 spark vllm[77]: {line}"


@pytest.mark.parametrize("carried", [docker_json, compose, journal])
def test_whatever_carried_the_log(carried: Callable[[str], str]) -> None:
    recorded = log_bytes("0.27.1-cpu/boot_off.log").decode().split("\n")[:40]
    again = [carried(line.rstrip("\r")) for line in [*recorded, *recorded]]
    assert len(boots(text(*again))) == 2


def test_json_records() -> None:
    version, arguments = (
        json.dumps(
            {"timestamp": "11-30 12:00:00", "level": "INFO", "name": "vllm.entrypoints", "message": message}
        )
        for message in ("vLLM server version 0.32.0, serving model /m", "non-default args: {'model': '/m'}")
    )
    assert len(boots(text(version, arguments, version, arguments))) == 2


def test_several_engines_are_one_boot() -> None:
    engines = engine(*["Initializing a V1 LLM engine (v0.10.0) with config: model='/m'"] * 4)
    assert len(boots(text(*old(1), *engines, READY))) == 1


def test_a_quotation_begins_nothing() -> None:
    asked = server(
        "Received request chat-1: prompt: 'non-default args: {} vLLM API server version 0.10.0'",
        "Received request chat-2: prompt: 'usage: vllm serve'",
        "vllm serve: error: is what it said",  # nothing follows that could be a boot
    )
    assert len(boots(text(*old(1), READY, *asked))) == 1


def test_a_refusal_ends_its_boot() -> None:
    refused = ("usage: vllm serve [model_tag] [options]", "vllm serve: error: argument --dtype: invalid")
    assert len(boots(text(*refused, *old(1), READY, *refused))) == 3


def test_memory_is_bounded_without_newlines() -> None:
    splitter, passed = BootSplitter(), 0
    for _ in range(100):
        passed += sum(len(piece) for _, piece in splitter.feed(b"non-default args: " * 1000))
    assert 100 * 18_000 - passed <= 64 * 1024


def test_what_continues_a_long_line_begins_nothing() -> None:
    data = text(*old(1), READY) + b"x" * 70_000
    splitter = BootSplitter()
    pieces = [*splitter.feed(data), *splitter.feed(text(*server("version"), *old(1)[1:])), *splitter.flush()]
    starts = [piece for begins, piece in pieces if begins]
    assert len(starts) == 1
    assert starts[0].startswith(b"(APIServer pid=1) INFO")
    lengths = [len(piece) for _, piece in pieces]
    assert all(length for length in lengths)
    assert [a != b for a, b in pairwise(lengths)]

"""``python -m sparktui.load`` as its host sees it: lines in, lines out, an exit code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil
import pytest

from sparktui.schema.messages import LoadFailed, LoadRow, LoadTarget, LoadTotals, from_line, to_line
from sparktui.schema.records import RequestRow
from tests.load.backend import PATIENCE_S, Backend, config, events, refusing, streaming

KEY = "sk-never-show-this"


@dataclass
class Loader:
    process: asyncio.subprocess.Process
    rows: list[RequestRow] = field(default_factory=list)
    output: bytes = b""

    def tell(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(m if isinstance(m, bytes) else to_line(m) for m in messages))

    async def totals(self, fits: Callable[[LoadTotals], bool] = lambda totals: True) -> LoadTotals:
        """The next totals that fit; rows on the way are kept."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message = await self._message()
                if isinstance(message, LoadRow):
                    self.rows.append(message.row)
                elif fits(message):
                    assert isinstance(message, LoadTotals)
                    return message

    async def end(self) -> tuple[int, list[Any]]:
        """Close its stdin; exit code, and what it still said."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        async with asyncio.timeout(PATIENCE_S):
            left = await self.process.stdout.read()
            self.output += left
            return await self.process.wait(), [from_line(line) for line in left.splitlines()]

    async def _message(self) -> Any:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "it ended"
        self.output += line
        return from_line(line)


Spawn = Callable[..., Awaitable[Loader]]


@pytest.fixture
async def spawn() -> AsyncIterator[Spawn]:
    started: list[asyncio.subprocess.Process] = []

    async def start(extra: Mapping[str, str] | None = None) -> Loader:
        kept = {name: value for name, value in os.environ.items() if name != "VLLM_API_KEY"}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "sparktui.load", env=kept | dict(extra or {}),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return Loader(process)

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    async with Backend(streaming(*events(2, 3, 1))) as running:
        yield running


async def test_totals_and_rows_come_back_and_agree(spawn: Spawn, backend: Backend) -> None:
    loader = await spawn()
    loader.tell(config(backend.url), LoadTarget(2))
    await backend.allow(9)
    await backend.asked(11)
    busy = await loader.totals(lambda t: t.done == 9)
    assert (busy.asked, busy.in_flight, busy.ok, busy.errors) == (2, 2, 9, 0)
    assert len(loader.rows) == 9
    assert busy.output_tokens == sum(row.completion_tokens or 0 for row in loader.rows) == 54
    assert busy.decode_tokens == sum(row.decode_tokens or 0 for row in loader.rows) == 36
    assert busy.stream_seconds == pytest.approx(sum(row.decode_s or 0.0 for row in loader.rows))
    loader.tell(LoadTarget(0))
    await loader.totals(lambda t: t.asked == 0)
    await backend.allow(2)
    idle = await loader.totals(lambda t: t.in_flight == 0)
    assert (idle.done, len(loader.rows)) == (11, 11)
    assert sorted(row.index for row in loader.rows) == list(range(11))
    assert idle.t > busy.t
    assert 0 <= idle.cpu < 4
    assert idle.lag_ms_p99 >= 0
    code, _ = await loader.end()
    assert code == 0
    assert len(backend.raw) == 11


async def test_it_is_idle_until_it_is_aimed(spawn: Spawn, backend: Backend) -> None:
    loader = await spawn()
    loader.tell(config(backend.url))
    first, second = await loader.totals(), await loader.totals()
    assert (second.asked, second.in_flight, second.done) == (0, 0, 0)
    assert second.t > first.t
    assert backend.raw == []


async def test_it_ends_with_its_stdin_and_takes_its_streams_along(spawn: Spawn, backend: Backend) -> None:
    loader = await spawn()
    loader.tell(config(backend.url), LoadTarget(3))
    await backend.asked(3)
    code, _ = await loader.end()
    assert code == 0
    await backend.wait(lambda: backend.inside == 0)
    assert loader.process.stderr is not None
    assert await loader.process.stderr.read() == b""


async def test_errors_come_back_as_rows_and_in_the_totals(spawn: Spawn, backend: Backend) -> None:
    backend.answer = refusing(500, '{"error":{"message":"out of memory"}}')
    loader = await spawn()
    loader.tell(config(backend.url), LoadTarget(1))
    await backend.allow(1)
    totals = await loader.totals(lambda t: t.errors == 1)
    assert totals.last_error == "HTTP 500: out of memory"
    assert [row.error for row in loader.rows] == ["HTTP 500: out of memory"]


async def test_a_cut_comes_back_as_cancelled(spawn: Spawn, backend: Backend) -> None:
    loader = await spawn()
    loader.tell(config(backend.url), LoadTarget(2))
    await backend.asked(2)
    loader.tell(LoadTarget(0, cut=True))
    totals = await loader.totals(lambda t: t.done == 2)
    assert (totals.cancelled, totals.ok, totals.errors, totals.in_flight) == (2, 0, 0, 0)
    assert [row.cancelled for row in loader.rows] == [True, True]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"nonsense\n", "not JSON"),
        (b"", "not JSON"),
        (to_line(LoadTarget(3)), "the first line must be a LoadConfig"),
        (b'{"type":"LoadConfig","body":{"url":3}}\n', "LoadConfig.url: expected str, got int"),
    ],
)
async def test_a_first_line_that_is_wrong_is_said_and_exits_2(spawn: Spawn, line: bytes, says: str) -> None:
    loader = await spawn()
    loader.tell(line)
    code, (failed,) = await loader.end()
    assert code == 2
    assert isinstance(failed, LoadFailed)
    assert failed.error.startswith(says)


async def test_a_later_line_that_is_wrong_is_said_and_exits_2(spawn: Spawn, backend: Backend) -> None:
    loader = await spawn()
    loader.tell(config(backend.url))
    await loader.totals()
    loader.tell(config(backend.url))
    code, messages = await loader.end()
    assert code == 2
    assert messages[-1] == LoadFailed("expected a LoadTarget")


async def test_an_interrupt_is_its_hosts_business(spawn: Spawn, backend: Backend) -> None:
    loader = await spawn()
    loader.tell(config(backend.url), LoadTarget(1))
    await backend.asked(1)
    loader.process.send_signal(signal.SIGINT)
    await backend.allow(1)
    totals = await loader.totals(lambda t: t.ok == 1)
    assert totals.asked == 1
    assert (await loader.end())[0] == 0


async def test_the_key_reaches_the_server_and_nothing_else(spawn: Spawn, backend: Backend) -> None:
    loader = await spawn({"VLLM_API_KEY": KEY})
    loader.tell(config(backend.url), LoadTarget(1))
    await backend.allow(1)
    await loader.totals(lambda t: t.ok == 1)
    argv = " ".join(psutil.Process(loader.process.pid).cmdline()).encode()
    code, _ = await loader.end()
    assert code == 0
    assert backend.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert loader.process.stderr is not None
    assert KEY.encode() not in loader.output + await loader.process.stderr.read() + argv

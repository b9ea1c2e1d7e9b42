"""Servers that refuse, break off or fall silent: each is an error with a reason, and no figure."""

from __future__ import annotations

import asyncio
import socket
from time import monotonic

import pytest
from aiohttp import web

from sparktui.load import streams
from sparktui.load.streams import ClosedLoop
from sparktui.schema.messages import LoadTarget
from sparktui.schema.records import RequestRow
from tests.load.backend import (
    PATIENCE_S,
    Answer,
    Backend,
    config,
    event,
    events,
    hanging,
    refusing,
    streaming,
)
from tests.load.test_meter import CRASH


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)


async def first_row(url: str, stall_s: float = 30.0) -> tuple[RequestRow, ClosedLoop]:
    rows: asyncio.Queue[RequestRow] = asyncio.Queue()
    async with ClosedLoop(config(url, stall_s=stall_s), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(1))
        async with asyncio.timeout(PATIENCE_S):
            return await rows.get(), loop


async def answered(answer: Answer, stall_s: float = 30.0) -> RequestRow:
    """The row of the first request that gets this answer, checked to be counted as an error."""
    async with Backend(answer, permits=1) as backend:
        row, loop = await first_row(backend.url, stall_s)
    assert not row.ok
    assert not row.cancelled
    assert (loop.counts.errors, loop.counts.ok, loop.counts.last_error) == (1, 0, row.error)
    return row


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (refusing(401, '{"error":"Unauthorized"}'), "HTTP 401: Unauthorized"),
        (refusing(500, '{"error":{"message":"out of memory","code":500}}'), "HTTP 500: out of memory"),
        (refusing(404, '{"detail":"Not Found"}'), "HTTP 404: Not Found"),
        (refusing(502, "<html>Bad Gateway</html>", "text/html"), "HTTP 502: <html>Bad Gateway</html>"),
        (refusing(503), "HTTP 503"),
        (refusing(200, "{}"), "the stream ended without [DONE]"),
    ],
)
async def test_a_refusal_is_told_in_the_servers_words(answer: Answer, says: str) -> None:
    row = await answered(answer)
    assert row.error == says
    assert (row.completion_tokens, row.decode_tokens, row.ttft_ms) == (None, None, None)


async def test_a_stream_that_ends_without_done_has_failed() -> None:
    row = await answered(streaming(*list(events(2, 3))[:-1]))
    assert row.error == "the stream ended without [DONE]"
    assert (row.completion_tokens, row.decode_tokens) == (5, 3)


async def test_an_engine_that_dies_in_the_middle_is_told() -> None:
    row = await answered(streaming(event(2, content="ab"), b"data: " + CRASH + b"\n\n", b"data: [DONE]\n\n"))
    assert row.error == "EngineCore encountered an issue. See stack trace (above) for the root cause."
    assert row.completion_tokens == 2


@pytest.mark.parametrize(
    "piece", [b"data: nonsense\n\n", b'data: {"choices":["x"]}\n\n', b'data: {"usage":1}\n\n']
)
async def test_an_answer_of_another_kind_is_told(piece: bytes) -> None:
    row = await answered(streaming(piece, b"data: [DONE]\n\n"))
    assert row.error.startswith("not an event of a completion: b'")


@pytest.mark.parametrize("pieces", [(), (event(2, content="ab"),)], ids=["no byte", "one chunk"])
async def test_a_stream_that_falls_silent_has_failed(pieces: tuple[bytes, ...]) -> None:
    row = await answered(hanging(*pieces), stall_s=0.3)
    assert row.error == "no data for 0.3 s"
    assert row.total_ms is not None
    assert 300 <= row.total_ms < 5000
    assert row.completion_tokens == (2 if pieces else None)


@pytest.mark.parametrize("pieces", [(), (event(2, content="ab"),)], ids=["no event", "one event"])
async def test_comments_are_no_life(pieces: tuple[bytes, ...]) -> None:
    """A proxy's pings go on while the engine behind it hangs."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        while True:
            await response.write(b": ping\n\n")
            await asyncio.sleep(0.02)

    row = await answered(answer, stall_s=0.3)
    assert row.error == "no data for 0.3 s"
    assert row.completion_tokens == (2 if pieces else None)


async def test_a_stream_whose_last_line_has_no_end_is_whole() -> None:
    *before, done = events(2, 3)
    async with Backend(streaming(*before, done.rstrip()), permits=1) as backend:
        row, loop = await first_row(backend.url)
    assert row.error == ""
    assert (row.completion_tokens, loop.counts.ok) == (5, 1)


async def test_an_error_whose_line_has_no_end_is_told() -> None:
    row = await answered(streaming(event(2, content="ab"), b"data: " + CRASH))
    assert row.error.startswith("EngineCore encountered an issue.")


async def test_an_event_that_is_cut_off_is_a_stream_without_its_end() -> None:
    row = await answered(streaming(event(2, content="ab"), event(5, content="cde")[:40]))
    assert row.error == "the stream ended without [DONE]"
    assert row.completion_tokens == 2


async def test_a_connection_that_breaks_is_told() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(event(2, content="ab"))
        assert request.transport is not None
        request.transport.abort()
        return response

    row = await answered(answer)
    assert row.error
    assert "Traceback" not in row.error


async def test_nobody_there_is_told() -> None:
    with socket.socket() as unused:  # bound and not listening: refuses
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        row, loop = await first_row(f"http://127.0.0.1:{port}")
    assert f"127.0.0.1:{port}" in row.error
    assert not row.ok
    assert loop.counts.errors == 1


async def test_a_server_that_refuses_at_once_is_not_hammered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ERROR_PAUSE_S", 0.2)
    rows: asyncio.Queue[RequestRow] = asyncio.Queue()
    async with (
        Backend(refusing(500), permits=99) as backend,
        ClosedLoop(config(backend.url), rows.put_nowait) as loop,
    ):
        await loop.aim(LoadTarget(1))
        async with asyncio.timeout(PATIENCE_S):
            begun = monotonic()
            for _ in range(3):
                await rows.get()
    assert monotonic() - begun >= 0.4


async def test_a_stream_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ERROR_PAUSE_S", 0.01)
    rows: asyncio.Queue[RequestRow] = asyncio.Queue()
    async with (
        Backend(streaming(b"data: nonsense\n\n"), permits=1) as backend,
        ClosedLoop(config(backend.url), rows.put_nowait) as loop,
    ):
        await loop.aim(LoadTarget(1))
        async with asyncio.timeout(PATIENCE_S):
            assert (await rows.get()).error
            backend.answer = streaming(*events(2, 3))
            await backend.allow(1)
            row = await rows.get()
    assert row.ok
    assert (row.index, row.completion_tokens) == (1, 5)

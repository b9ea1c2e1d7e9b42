"""The closed loop against a scripted server: counts, targets, prompts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from sparktui.load import streams
from sparktui.load.streams import ClosedLoop
from sparktui.schema.messages import LoadTarget
from sparktui.schema.records import RequestRow
from tests.load.backend import PATIENCE_S, Backend, config, events, hanging, streaming

Rows = asyncio.Queue[RequestRow]


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    async with Backend(streaming(*events(2, 3, 1))) as running:
        yield running


async def take(rows: Rows, count: int) -> list[RequestRow]:
    async with asyncio.timeout(PATIENCE_S):
        return [await rows.get() for _ in range(count)]


async def test_counts_are_exact(backend: Backend) -> None:
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(2))
        await backend.allow(5)
        done = await take(rows, 5)
        await backend.asked(7)
        assert (loop.target, loop.in_flight, backend.inside) == (2, 2, 2)
        assert (loop.counts.done, loop.counts.ok, loop.counts.errors) == (5, 5, 0)
        assert (loop.counts.output_tokens, loop.counts.decode_tokens) == (5 * 6, 5 * 4)
        assert loop.counts.stream_seconds == pytest.approx(sum(row.decode_s or 0.0 for row in done))
    for row in done:
        assert row.ok
        assert (row.completion_tokens, row.decode_tokens, row.chunks, row.prompt_tokens) == (6, 4, 3, 11)
        assert row.ttft_ms is not None
        assert row.total_ms is not None
        assert 0 < row.ttft_ms <= row.total_ms
    assert sorted(row.index for row in done) == list(range(5))
    assert backend.most_inside == 2


async def test_requests_go_out_as_they_were_written(backend: Backend) -> None:
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url + "/", temperature=0.5), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(1))
        await backend.asked(1)
    body, headers = backend.bodies[0], backend.headers[0]
    assert (body["model"], body["temperature"], body["ignore_eos"]) == ("served", 0.5, True)
    assert headers["Content-Type"] == "application/json"
    assert "Authorization" not in headers


async def test_the_key_of_the_environment_goes_along(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "s3cret")
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(1))
        await backend.asked(1)
    assert backend.headers[0]["Authorization"] == "Bearer s3cret"


async def test_a_stream_keeps_its_connection(backend: Backend) -> None:
    """A connection a request would put its set-up time into every TTFT."""
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(1))
        await backend.allow(5)
        await take(rows, 5)
        await backend.asked(6)
    assert len(backend.connections) == 1


async def test_a_stream_keeps_its_connection_when_the_end_comes_apart(backend: Backend) -> None:
    """uvicorn writes the last, empty chunk by itself after [DONE]."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in events(2, 3):
            await response.write(piece)
        await asyncio.sleep(0.02)
        await response.write_eof()
        return response

    backend.answer = answer
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(1))
        await backend.allow(4)
        assert all(row.ok for row in await take(rows, 4))
        await backend.asked(5)
    assert len(backend.connections) == 1


async def test_a_server_that_holds_a_finished_response_is_not_waited_for(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LAST_BYTES_S", 0.05)
    backend.answer = hanging(*events(2, 3))
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(1))
        await backend.allow(2)
        assert [row.completion_tokens for row in await take(rows, 2) if row.ok] == [5, 5]


async def test_raising_adds_streams(backend: Backend) -> None:
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(1))
        await backend.asked(1)
        await loop.aim(LoadTarget(4))
        await backend.asked(4)
        assert loop.in_flight == 4
    assert len({body["messages"][0]["content"] for body in backend.bodies}) == 4


async def test_lowering_drains(backend: Backend) -> None:
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(3))
        await backend.asked(3)
        await loop.aim(LoadTarget(1))
        assert (loop.target, loop.in_flight) == (1, 3)
        await backend.allow(3)
        drained = await take(rows, 3)
        await backend.asked(4)
        assert all(row.ok for row in drained)
        await backend.allow(2)
        await take(rows, 2)
        await backend.asked(6)
        assert (loop.in_flight, backend.inside) == (1, 1)
        assert loop.counts.cancelled == 0


async def test_zero_drains_to_idle(backend: Backend) -> None:
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(2))
        await backend.asked(2)
        await loop.aim(LoadTarget(0))
        await backend.allow(99)
        assert all(row.ok for row in await take(rows, 2))
        await backend.wait(lambda: backend.inside == 0)
        assert loop.in_flight == 0
        await loop.aim(LoadTarget(1))  # and begins again
        (row,) = await take(rows, 1)
        assert row.index == 2
    assert rows.empty() or len(backend.raw) > 3


async def test_cut_cancels_and_counts_as_cancelled(backend: Backend) -> None:
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(3))
        await backend.asked(3)
        await loop.aim(LoadTarget(1, cut=True))
        cut = await take(rows, 2)
        assert all(row.cancelled and not row.ok and not row.error for row in cut)
        assert (loop.counts.done, loop.counts.cancelled, loop.counts.errors) == (2, 2, 0)
        assert loop.in_flight == 1
        await backend.wait(lambda: backend.inside == 1)  # the server sees them go


async def test_a_cut_stream_keeps_what_it_got() -> None:
    rows: Rows = asyncio.Queue()
    async with (
        Backend(hanging(*list(events(2, 3))[:-2]), permits=1) as backend,
        ClosedLoop(config(backend.url), rows.put_nowait) as loop,
    ):
        await loop.aim(LoadTarget(1))
        async with asyncio.timeout(PATIENCE_S):
            while loop.counts.output_tokens < 5:
                await asyncio.sleep(0.005)
        await loop.aim(LoadTarget(0, cut=True))
        (row,) = await take(rows, 1)
        assert (row.cancelled, row.completion_tokens, row.decode_tokens) == (True, 5, 3)


async def test_leaving_the_loop_leaves_no_stream(backend: Backend) -> None:
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(2))
        await backend.asked(2)
    await backend.wait(lambda: backend.inside == 0)
    assert [row.cancelled for row in await take(rows, 2)] == [True, True]


async def test_next_prompt_begins_the_sequence_again(backend: Backend) -> None:
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(1, next_prompt=40))
        await backend.allow(3)
        first = await take(rows, 3)
        await backend.asked(4)
        await loop.aim(LoadTarget(0, cut=True))
        await take(rows, 1)
        await backend.wait(lambda: backend.inside == 0)
        await loop.aim(LoadTarget(1, next_prompt=40))
        await backend.allow(3)
        again = await take(rows, 3)
    assert [row.index for row in first] == [row.index for row in again] == [40, 41, 42]
    assert backend.raw[4:7] == backend.raw[:3]


async def test_ignore_eos_follows_the_target(backend: Backend) -> None:
    rows: Rows = asyncio.Queue()
    async with ClosedLoop(config(backend.url), rows.put_nowait) as loop:
        for number, wanted in enumerate((False, None, True), 1):
            await loop.aim(LoadTarget(1, cut=False, ignore_eos=wanted))
            await backend.allow(1)
            await take(rows, 1)
            await backend.asked(number + 1)
    assert ["ignore_eos" in body for body in backend.bodies[:4]] == [False, False, False, True]

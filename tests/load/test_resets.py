"""Connections that end under a request: which of them are the server's failures, and which are nobody's."""

from __future__ import annotations

import asyncio

import pytest

from sparktui.load import streams
from sparktui.load.streams import ClosedLoop
from sparktui.schema.messages import LoadTarget
from sparktui.schema.records import RequestRow
from tests.load.backend import PATIENCE_S, config, event, events
from tests.load.raw import HEAD, Act, Asked, RawServer, answer, chunks, close, reset

WHOLE = tuple(events(2, 3))


@pytest.fixture(autouse=True)
def quick_and_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    monkeypatch.setattr(streams, "ERROR_PAUSE_S", 0.01)


async def load(url: str, count: int, concurrency: int = 1) -> tuple[list[RequestRow], ClosedLoop]:
    """The first so many rows."""
    rows: asyncio.Queue[RequestRow] = asyncio.Queue()
    async with ClosedLoop(config(url), rows.put_nowait) as loop:
        await loop.aim(LoadTarget(concurrency))
        async with asyncio.timeout(PATIENCE_S):
            return [await rows.get() for _ in range(count)], loop


@pytest.mark.parametrize("end", [close, reset])
async def test_a_server_that_closes_idle_connections_as_we_ask_fails_no_request(end: Act) -> None:
    """Each connection takes one request, and ends without a byte when the next one comes."""

    async def act(asked: Asked) -> None:
        await (answer(asked, *WHOLE) if asked.nth == 1 else end(asked))

    async with RawServer(act) as server:
        rows, loop = await load(server.url, 25, concurrency=3)
    assert [row.error for row in rows] == [""] * 25
    assert loop.counts.errors == 0
    assert loop.counts.ok >= 25  # others may have ended since
    retried = [asked for asked in server.asked if asked.nth > 1]
    assert len(retried) >= 8
    again = [asked.body for asked in server.asked if asked.nth == 1]
    assert all(asked.body in again for asked in retried[:8]), "the same request goes out again"


async def test_the_failed_try_is_not_in_ttft() -> None:
    async def act(asked: Asked) -> None:
        if asked.nth == 1:
            return await answer(asked, *WHOLE)
        await asyncio.sleep(0.1)
        return await close(asked)

    async with RawServer(act) as server:
        rows, _ = await load(server.url, 2)
    (failed,) = [asked for asked in server.asked if asked.nth == 2][:1]
    assert rows[1].ok
    assert rows[1].start >= failed.gone_at > rows[0].start


async def test_the_second_try_takes_no_idle_connection() -> None:
    """Three of them stand, and the server will end each."""
    rows: asyncio.Queue[RequestRow] = asyncio.Queue()
    drains = asyncio.Event()

    async def act(asked: Asked) -> None:
        await drains.wait()
        await (answer(asked, *WHOLE) if asked.nth == 1 else close(asked))

    async with RawServer(act) as server, ClosedLoop(config(server.url), rows.put_nowait) as loop:
        async with asyncio.timeout(PATIENCE_S):
            await loop.aim(LoadTarget(3))
            while len(server.asked) < 3:
                await asyncio.sleep(0.005)
            await loop.aim(LoadTarget(0))
            drains.set()
            drained = [await rows.get() for _ in range(3)]
            await loop.aim(LoadTarget(1))
            row = await rows.get()
        assert all(one.ok for one in [*drained, row])
        idle, fresh = server.asked[3:5]
        assert (idle.nth, fresh.connection, fresh.nth) == (2, 4, 1)


@pytest.mark.parametrize("end", [close, reset])
async def test_a_fresh_connection_that_ends_is_an_error(end: Act) -> None:
    async with RawServer(end) as server:
        (row,), loop = await load(server.url, 1)
    assert row.error
    assert loop.counts.errors == 1
    assert len({asked.body for asked in server.asked}) == len(server.asked), "no request came twice"


async def test_the_second_try_is_the_last() -> None:
    async def act(asked: Asked) -> None:
        await (answer(asked, *WHOLE) if (asked.connection, asked.nth) == (1, 1) else close(asked))

    async with RawServer(act) as server:
        rows, _ = await load(server.url, 2)
    assert [bool(row.error) for row in rows] == [False, True]
    assert [asked.body for asked in server.asked].count(server.asked[1].body) == 2


@pytest.mark.parametrize(
    "begun",
    [b"HTTP/1.1 200 O", HEAD, HEAD + chunks(event(2, content="ab"))],
    ids=["in the head", "after the head", "after a chunk"],
)
async def test_a_connection_that_ends_after_the_first_byte_is_an_error(begun: bytes) -> None:
    async def act(asked: Asked) -> None:
        if asked.nth == 1:
            return await answer(asked, *WHOLE)
        asked.writer.write(begun)
        await asked.writer.drain()
        return await close(asked)

    async with RawServer(act) as server:
        rows, loop = await load(server.url, 2)
    assert [bool(row.error) for row in rows] == [False, True]
    assert loop.counts.errors == 1
    assert [asked.body for asked in server.asked].count(server.asked[1].body) == 1

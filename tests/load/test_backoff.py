"""A busy server in the loop: it is left in peace for as long as it asks, and asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from time import monotonic

import pytest
from aiohttp import web

from sparktui.load import errors, streams
from sparktui.load.streams import ClosedLoop
from sparktui.schema.messages import LoadTarget
from sparktui.schema.records import RequestRow
from tests.load.backend import PATIENCE_S, Backend, config, events, streaming

TIMES = 2  # refusals before it serves


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)


async def refused(status: int, retry_after: str | None) -> tuple[list[RequestRow], list[float]]:
    """Rows up to the first answer after the refusals, and when (CLOCK_MONOTONIC) each request came."""
    came: list[float] = []
    serves = streaming(*events(2, 3))

    async def answer(request: web.Request) -> web.StreamResponse:
        came.append(monotonic())
        if len(came) > TIMES:
            return await serves(request)
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        return web.json_response({"error": {"message": "full"}}, status=status, headers=headers)

    rows: asyncio.Queue[RequestRow] = asyncio.Queue()
    async with (
        Backend(answer, permits=TIMES + 1) as backend,
        ClosedLoop(config(backend.url), rows.put_nowait) as loop,
    ):
        await loop.aim(LoadTarget(1))
        async with asyncio.timeout(PATIENCE_S):
            found = [await rows.get() for _ in range(TIMES + 1)]
    return found, came


def pauses(rows: Iterable[RequestRow], came: list[float]) -> list[float]:
    """From the end of each answer to the next request at the server, seconds."""
    ends = [row.start + (row.total_ms or 0.0) / 1000 for row in rows]
    return [after - end for end, after in zip(ends, came[1:], strict=False)]


@pytest.mark.parametrize(
    ("status", "retry_after", "least_s"),
    [
        (429, None, 0.5),
        (503, None, 0.5),
        (429, "1", 1.0),
        (503, "1", 1.0),
        (503, "soon", 0.5),
        (429, "0", 0.5),
    ],
)
async def test_it_is_not_hammered_and_comes_back(
    status: int, retry_after: str | None, least_s: float
) -> None:
    rows, came = await refused(status, retry_after)
    assert [row.error for row in rows] == [f"HTTP {status}: full"] * TIMES + [""]
    assert [row.status for row in rows[:TIMES]] == [status] * TIMES
    assert rows[-1].completion_tokens == 5
    assert min(pauses(rows, came)) >= least_s


async def test_an_hour_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "RETRY_AFTER_MOST_S", 0.6)
    rows, came = await refused(503, "3600")
    assert rows[-1].ok
    assert min(pauses(rows, came)) >= 0.6


async def test_other_refusals_ask_for_no_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ERROR_PAUSE_S", 0.01)
    rows, _ = await refused(500, "3600")
    assert rows[-1].ok


def test_the_longest_pause_is_the_longest() -> None:
    assert errors.LONGEST_PAUSE_S == errors.RETRY_AFTER_MOST_S * errors.PAUSE_SPREAD
    assert streams.ERROR_PAUSE_S * errors.PAUSE_SPREAD < errors.LONGEST_PAUSE_S

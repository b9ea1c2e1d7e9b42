"""One load on servers that refuse: how long it goes on asking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from aiohttp import web

from sparktui.host import loadrun
from sparktui.host.loadrun import Job, run
from sparktui.schema.launch import LoadSpec
from sparktui.server import ready
from tests.load.backend import Backend, events, streaming

MODEL = "tiny"
SHORT = LoadSpec("chat", 32, 40)


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with ready.client() as client:
        yield client


async def test_a_busy_server_is_waited_for(http: httpx.AsyncClient) -> None:
    """It asks for more seconds of peace than a server gets that fails in another way."""
    asked = 0
    serves = streaming(*events(2, 3))

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if 61 <= asked <= 63:  # after a second of answers
            await asyncio.sleep(0.5)  # refusals come in later lines of totals than the last token
            return web.json_response({}, status=503, headers={"Retry-After": "4"})
        await asyncio.sleep(0.05)
        return await serves(request)

    async with Backend(answer, permits=1 << 20) as backend:
        result = await run(Job(backend.url, MODEL, SHORT, 3, 9.5), http, asyncio.Event())
    assert asked > 80
    assert (result.complete, result.errors) == (True, 3)


@pytest.mark.parametrize(("status", "says"), [(503, "HTTP 503"), (500, "HTTP 500")])
async def test_a_server_that_only_fails_is_given_up(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, status: int, says: str
) -> None:
    monkeypatch.setattr(loadrun, "BUSY_GIVE_UP_S" if status == 503 else "GIVE_UP_S", 1.5)

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status)

    async with Backend(answer, permits=1 << 20) as backend:
        result = await run(Job(backend.url, MODEL, SHORT, 2, 600.0), http, asyncio.Event())
    assert not result.complete
    assert says in result.error_kinds

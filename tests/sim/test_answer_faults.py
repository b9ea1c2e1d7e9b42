"""Faults that answers have, as proxies and busy servers do it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re

import pytest

from tests.sim.conftest import TIMEOUT_S
from tests.sim.inside import chat, inside
from tests.sim.wire import CHAT, counters, events, stream


async def test_a_rate_limit_says_when_to_come_again() -> None:
    async with inside() as server:
        await server.fault("rate_limit", retry_after_s=7)
        async with server.session.post(server.url + CHAT, json=chat()) as response:
            assert (response.status, response.headers["Retry-After"]) == (429, "7")
            assert (await response.json())["error"]["type"] == "RateLimitError"
        await server.call("DELETE", "/sim/fault")
        assert (await server.call("POST", CHAT, json=chat(max_tokens=1)))[0] == 200


async def test_a_kept_connection_is_reset_at_its_next_request_and_a_new_one_works() -> None:
    async with inside() as server:
        await server.fault("keep_alive_reset")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        raw = json.dumps(chat(max_tokens=1)).encode()
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw
        writer.write(request)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        sizes = re.search(rb"content-length: (\d+)", (await reader.readuntil(b"\r\n\r\n")).lower())
        assert sizes is not None
        await reader.readexactly(int(sizes[1]))
        writer.write(request)
        async with asyncio.timeout(TIMEOUT_S):
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
        assert (await counters(server))["generation_tokens_total"] == 1, "the second one was never begun"


@pytest.mark.parametrize(
    ("fault", "with_usage"),
    [("no_usage", 0), ("final_usage", 1), (None, 5)],
    ids=["none", "final", "as asked"],
)
async def test_streams_may_lack_usage(fault: str | None, with_usage: int) -> None:
    async with inside() as server:
        if fault is not None:
            await server.fault(fault)
        told = events(await stream(server, chat(max_tokens=3)))
    assert sum("usage" in event for event in told) == with_usage
    assert sum(bool(event["choices"]) for event in told) == 4, "a role and three tokens"

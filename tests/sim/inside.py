"""The stand-in's HTTP server within the test's own event loop: no boot, no engine process."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

from sparktui.sim import arguments
from sparktui.sim.assemble import assemble
from sparktui.sim.boot.facts import boot_facts
from sparktui.sim.boot.logfile import Log
from sparktui.sim.http.disturb import EngineSwitches
from sparktui.sim.model.curve import Curve
from sparktui.sim.model.truth import Truth
from sparktui.sim.service import EngineService
from tests.sim.conftest import SimServer

FAST = Truth(off_step_ms=Curve(((1, 2.0),)), on_step_ms={3: Curve(((1, 4.0),))}, context_ms=0.0)
SPEC = ("--speculative-config", '{"method":"dspark","model":"/models/d","num_speculative_tokens":3}')
QUIET = ("--sim-noise", "0", "--sim-restart-noise", "0", "--sim-seed", "1")


@dataclass(slots=True)
class Inside:
    """``log``: what the server wrote. ``lingers``: the seconds that late_memory asked for."""

    url: str
    service: EngineService
    log: io.StringIO
    session: aiohttp.ClientSession
    lingers: list[float]
    _crashes: list[None]

    @property
    def crashes(self) -> int:
        """How often a fault killed the engine's process."""
        return len(self._crashes)

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        """Status and JSON body, or text."""
        async with self.session.request(method, self.url + path, **options) as response:
            if response.content_type == "application/json":
                return response.status, await response.json()
            return response.status, await response.text()

    async def fault(self, name: str, **fields: Any) -> None:
        status, body = await self.call("POST", "/sim/fault", json={"fault": name, **fields})
        assert status == 200, body


def chat(prompt: str = "Tell me about steps.", **changes: Any) -> dict[str, Any]:
    """A chat request of 32 tokens."""
    body: dict[str, Any] = {"model": "test/model", "messages": [{"role": "user", "content": prompt}]}
    return body | {"max_tokens": 32, "ignore_eos": True} | changes


async def fetch(server: SimServer, path: str, **options: Any) -> tuple[int, str]:
    """Status and text, from a real process. POST with a body."""
    method = "POST" if "json" in options or "data" in options else "GET"
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, server.url + path, **options) as response,
    ):
        return response.status, await response.text()


@contextlib.asynccontextmanager
async def inside(*args: str, truth: Truth | None = None) -> AsyncIterator[Inside]:
    """Serve with these flags until the block ends; steps take 2 ms, 4 ms with speculation, unless told."""
    given = arguments.parse(["test/model", *QUIET, *args])
    model = truth or FAST
    log, lingers, crashes = io.StringIO(), list[float](), list[None]()
    written = Log(log, 1, release=given.release)
    switches = EngineSwitches(lambda: crashes.append(None), lingers.append, 3.0)
    service, api, _ = assemble(given, boot_facts(given, model), model, written, switches)
    runner = api.runner()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    pacing = asyncio.ensure_future(service.run())
    try:
        async with aiohttp.ClientSession() as session:
            yield Inside(f"http://127.0.0.1:{port}", service, log, session, lingers, crashes)
    finally:
        service.die()
        pacing.cancel()
        await asyncio.gather(pacing, return_exceptions=True)
        await runner.cleanup()

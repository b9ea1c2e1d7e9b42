"""A proxy before a server, as users run one: its own model name, its own key; it remembers what came."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import orjson
from aiohttp import web

from tests.standin import MODEL

NAME = "front/name"


@dataclass
class Proxy:
    """``keys`` and ``models``: what each request had, "" for none."""

    url: str = ""
    keys: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)


@contextlib.asynccontextmanager
async def proxy_before(upstream: str, *, wants: str = "", key: str = "") -> AsyncIterator[Proxy]:
    """Forwards to ``upstream`` with ``key``; HTTP 401 for a client without the key it ``wants``."""
    seen = Proxy()
    async with aiohttp.ClientSession() as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            body = orjson.loads(await request.read())
            seen.keys.add(given)
            seen.models.add(body["model"])
            seen.paths.add(request.path)
            if wants and given != wants:
                return web.json_response({"error": {"message": "no such key"}}, status=401)
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            body["model"] = MODEL
            async with session.post(upstream + request.path, json=body, headers=headers) as answer:
                response = web.StreamResponse(status=answer.status)
                response.content_type = answer.content_type
                await response.prepare(request)
                async for data in answer.content.iter_any():
                    await response.write(data)
                return response

        app = web.Application()
        app.router.add_post("/{path:.*}", forward)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            seen.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield seen
        finally:
            await runner.cleanup()

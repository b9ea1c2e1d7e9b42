"""The HTTP surface: vLLM 0.27.1's routes that sparktui and load clients use."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from sparktui.sim.bootlog import VERSION
from sparktui.sim.engine import Request
from sparktui.sim.families import CONTENT_TYPE
from sparktui.sim.intake import Asked, Limits, Refused, check_model, parse_json, read, tokenize_text
from sparktui.sim.logfile import Log
from sparktui.sim.metrics import Metrics
from sparktui.sim.payloads import DONE, ENGINE_DEAD, Answer, engine_dead_event, error_body, models_body
from sparktui.sim.prefix import PrefixCache, count_tokens
from sparktui.sim.service import Delta, EngineDead, EngineService, Stream
from sparktui.sim.truth import Truth

ROUTES = (
    ("GET", "/health"),
    ("GET", "/ping"),
    ("GET", "/version"),
    ("GET", "/load"),
    ("GET", "/metrics"),
    ("GET", "/v1/models"),
    ("POST", "/tokenize"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/completions"),
)
_MAX_BODY_BYTES = 64 * 2**20
_NONSENSE = (
    "<!DOCTYPE html><html><body>upstream says: 12 apples {le=}\nvllm:generation_tokens_total NaNsense\n"
)


@dataclass(slots=True)
class ApiConfig:
    """What the server serves. ``fail``: one of arguments.FAILURES."""

    limits: Limits
    root: str  # the model as given, before --served-model-name
    api_keys: tuple[str, ...] = ()
    access_log: bool = True
    fail: str = "none"
    truth: Truth = field(default_factory=Truth)


class Api:
    """Handlers around one engine service."""

    def __init__(
        self, config: ApiConfig, service: EngineService, metrics: Metrics, log: Log, rng: random.Random
    ):
        self._config = config
        self._service = service
        self._metrics = metrics
        self._log = log
        self._rng = rng
        self._prefixes: PrefixCache | None = PrefixCache(config.truth.kv_cache_tokens)
        self._created = int(time.time())

    def without_prefix_cache(self) -> Api:
        """The same with --no-enable-prefix-caching."""
        self._prefixes = None
        return self

    def app(self) -> web.Application:
        """The application with its routes."""
        handlers: dict[str, Handler] = {
            "/health": self._health,
            "/ping": self._health,
            "/version": self._version,
            "/load": self._load,
            "/metrics": self._page,
            "/v1/models": self._models,
            "/tokenize": self._tokenize,
            "/v1/chat/completions": self._chat,
            "/v1/completions": self._completions,
        }
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[_errors, self._authorised])
        for method, path in ROUTES:
            app.router.add_route(method, path, handlers[path])
        app.on_response_prepare.append(self._on_prepare)
        return app

    async def _on_prepare(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = "uvicorn"
        if not self._config.access_log:
            return
        peer = request.transport.get_extra_info("peername") if request.transport else None
        client = f"{peer[0]}:{peer[1]}" if peer else "-"
        with contextlib.suppress(ValueError):
            status = f"{response.status} {HTTPStatus(response.status).phrase}"
            self._log.api_raw(f'INFO:     {client} - "{request.method} {request.path_qs} HTTP/1.1" {status}')

    @web.middleware
    async def _authorised(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        keys = self._config.api_keys
        if keys and request.path.startswith("/v1"):
            kind, _, key = request.headers.get("Authorization", "").partition(" ")
            if kind.lower() != "bearer" or key not in keys:
                return _json({"error": "Unauthorized"}, 401)
        return await handler(request)

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(status=503 if self._service.dead else 200)

    async def _version(self, request: web.Request) -> web.Response:
        return _json({"version": VERSION})

    async def _load(self, request: web.Request) -> web.Response:
        return _json({"server_load": 0})

    async def _models(self, request: web.Request) -> web.Response:
        limits = self._config.limits
        return _json(models_body(limits.names, self._config.root, limits.max_model_len, self._created))

    async def _page(self, request: web.Request) -> web.Response:
        body = self._metrics.page()
        if self._config.fail == "metrics-nonsense":
            body = _NONSENSE.encode()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = parse_json(await request.read())
        check_model(body, self._config.limits)
        count = count_tokens(tokenize_text(body))
        limit = self._config.limits.max_model_len
        tokens = list(range(1, count + 1))
        return _json({"count": count, "max_model_len": limit, "tokens": tokens, "token_strs": None})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=True)

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=False)

    async def _complete(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        config = self._config
        asked = read(await request.read(), chat, config.limits, config.truth, self._rng)
        if config.fail == "hang-requests":
            await asyncio.Event().wait()
        answer = Answer(chat, asked.model, asked.prompt_tokens, asked.include_usage, asked.continuous_usage)
        stream = self._submit(asked, answer)
        try:
            if asked.stream:
                return await self._stream(request, answer, stream)
            return _json(answer.whole(await _collect(stream)))
        finally:
            self._service.release(stream)

    def _submit(self, asked: Asked, answer: Answer) -> Stream:
        cached = self._prefixes.match(asked.prompt) if self._prefixes else 0
        request = Request(
            answer.id,
            asked.prompt_tokens,
            asked.max_tokens,
            asked.stop_after,
            min(cached, asked.prompt_tokens - 1),
        )
        return self._service.submit(request, asked.seed)

    async def _stream(self, request: web.Request, answer: Answer, stream: Stream) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            await _write_events(response, answer, stream)
        return response


async def _write_events(response: web.StreamResponse, answer: Answer, stream: Stream) -> None:
    head = answer.role_chunk() if answer.chat else b""
    try:
        while True:
            delta = await stream.get()
            await response.write(head + answer.delta_chunk(delta))
            head = b""
            if delta.finish_reason:
                break
        if answer.include_usage:
            await response.write(answer.usage_chunk(delta.generated))
    except EngineDead:
        await response.write(engine_dead_event())
    await response.write(DONE)
    await response.write_eof()


async def _collect(stream: Stream) -> Delta:
    parts: list[str] = []
    while True:
        delta = await stream.get()
        parts.append(delta.text)
        if delta.finish_reason:
            return Delta("".join(parts), delta.generated, delta.finish_reason)


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn refusals and aiohttp's own errors into vLLM's JSON."""
    try:
        return await handler(request)
    except Refused as refused:
        return _json(refused.body, refused.status)
    except EngineDead:
        return _json(error_body(ENGINE_DEAD, "InternalServerError", 500), 500)
    except web.HTTPException as error:
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return _json({"detail": error.reason}, error.status, headers)


def _json(body: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        body=orjson.dumps(body), status=status, content_type="application/json", headers=headers
    )

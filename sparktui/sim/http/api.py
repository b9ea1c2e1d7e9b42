"""The HTTP surface: the routes of vLLM that clients use, and the stand-in's own /sim/…"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from dataclasses import dataclass, field
from http import HTTPStatus

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from sparktui.sim.boot.logfile import Log
from sparktui.sim.counts import httpcounts
from sparktui.sim.counts.families import CONTENT_TYPE
from sparktui.sim.http import faults, state
from sparktui.sim.http.clock import Clock, ClockedRunner
from sparktui.sim.http.completions import Completions
from sparktui.sim.http.disturb import Disturbances
from sparktui.sim.http.intake import Limits, token_ids, tokenize_request
from sparktui.sim.http.ownmetrics import Told
from sparktui.sim.http.payloads import models_body
from sparktui.sim.http.replies import errors, json_reply, only_json
from sparktui.sim.model.tokens import Vocabulary, pieces
from sparktui.sim.model.truth import Truth
from sparktui.sim.service import EngineService

ROUTES = (  # in the order of vLLM's log
    ("GET", "/load"),
    ("GET", "/version"),
    ("GET", "/health"),
    ("GET", "/metrics"),
    ("POST", "/tokenize"),
    ("POST", "/detokenize"),
    ("GET", "/v1/models"),
    ("GET", "/ping"),
    ("POST", "/ping"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/completions"),
)
_DEV_ROUTES = (("GET", "/server_info"), ("POST", "/reset_prefix_cache"))  # with VLLM_SERVER_DEV_MODE=1
_SIM_ROUTES = (("POST", "/sim/fault"), ("DELETE", "/sim/fault"), ("GET", "/sim/state"))
_MAX_BODY_BYTES = 64 * 2**20
_NONSENSE = (
    "<!DOCTYPE html><html><body>upstream says: 12 apples {le=}\nvllm:generation_tokens_total NaNsense\n"
)
_GUARDED = (("0.32.0", ("/v1", "/v2", "/inference", "/cohere")), ("0.0", ("/v1",)))  # since which release


@dataclass(slots=True)
class ApiConfig:
    """What the server serves. ``fail``: one of arguments.FAILURES; ``info``: what /server_info shows."""

    limits: Limits
    root: str  # the model as given, before --served-model-name
    api_keys: tuple[str, ...] = ()
    access_log: bool = True
    fail: str = "none"
    truth: Truth = field(default_factory=Truth)
    tracks_load: bool = False  # --enable-server-load-tracking
    info: str = ""
    told: Told = field(default_factory=Told)
    clock: Clock | None = None


class Api:
    """Handlers around one engine service."""

    def __init__(
        self,
        config: ApiConfig,
        service: EngineService,
        disturbances: Disturbances,
        log: Log,
        rng: random.Random,
    ) -> None:
        self._config = config
        self._service = service
        self._log = log
        self._disturbances = disturbances
        self._completions = Completions(
            config.limits, config.truth, service, disturbances, rng, config.told, config.clock
        )
        self._vocabulary = Vocabulary()
        self._created = int(time.time())
        self._guarded = next(paths for since, paths in _GUARDED if config.limits.release.since(since))

    def runner(self) -> web.AppRunner:
        """The application, ready for sites."""
        more = {"access_log": None, "handler_cancellation": True, "shutdown_timeout": 0.1}
        return ClockedRunner(self.app(), self._config.clock, **more)

    def app(self) -> web.Application:
        """The application with its routes. Those of the stand-in's own are not in ROUTES, nor in the log."""
        handlers: dict[tuple[str, str], Handler] = {
            ("GET", "/health"): self._health,
            ("GET", "/ping"): self._health,
            ("POST", "/ping"): self._health,
            ("GET", "/version"): self._version,
            ("GET", "/load"): self._load,
            ("GET", "/metrics"): self._page,
            ("GET", "/v1/models"): self._models,
            ("GET", "/server_info"): self._server_info,
            ("POST", "/reset_prefix_cache"): self._reset_prefix_cache,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/detokenize"): self._detokenize,
            ("POST", "/v1/chat/completions"): self._chat,
            ("POST", "/v1/completions"): self._plain,
            ("POST", "/sim/fault"): self._set_fault,
            ("DELETE", "/sim/fault"): self._clear_faults,
            ("GET", "/sim/state"): self._state,
        }
        middlewares = (self._counted, self._authorised, errors, only_json)
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=middlewares)
        dev = _DEV_ROUTES if os.environ.get("VLLM_SERVER_DEV_MODE") == "1" else ()
        for method, path in (*ROUTES, *dev, *_SIM_ROUTES):
            app.router.add_route(method, path, handlers[method, path])
        app.on_response_prepare.append(self._on_prepare)
        return app

    async def _on_prepare(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = "uvicorn"
        if response.status != HTTPStatus.UNAUTHORIZED:
            response.headers["Vary"] = "Origin"
        if not self._config.access_log:
            return
        peer = request.transport.get_extra_info("peername") if request.transport else None
        client = f"{peer[0]}:{peer[1]}" if peer else "-"
        with contextlib.suppress(ValueError):
            status = f"{response.status} {HTTPStatus(response.status).phrase}"
            self._log.api_raw(f'INFO:     {client} - "{request.method} {request.path_qs} HTTP/1.1" {status}')

    @web.middleware
    async def _counted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        begun = time.monotonic()
        response = await handler(request)
        resource = request.match_info.route.resource
        route = resource.canonical if resource is not None else httpcounts.UNKNOWN_ROUTE
        if not route.startswith("/sim/"):
            seconds, size = time.monotonic() - begun, response.content_length or 0
            asked = request.content_length or 0
            self._service.metrics.http.observe(request.method, route, response.status, seconds, asked, size)
        return response

    @web.middleware
    async def _authorised(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        keys = self._config.api_keys
        if keys and request.method != "OPTIONS" and request.path.startswith(self._guarded):
            kind, _, key = request.headers.get("Authorization", "").partition(" ")
            if kind.lower() != "bearer" or key not in keys:
                return json_reply({"error": "Unauthorized"}, 401)
        return await handler(request)

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(status=503 if self._service.dead else 200)

    async def _version(self, request: web.Request) -> web.Response:
        return json_reply({"version": self._config.limits.release.version})

    async def _load(self, request: web.Request) -> web.Response:
        busy = self._service.running + self._service.waiting if self._config.tracks_load else 0
        return json_reply({"server_load": busy})

    async def _models(self, request: web.Request) -> web.Response:
        limits = self._config.limits
        return json_reply(models_body(limits.names, self._config.root, limits.max_model_len, self._created))

    async def _page(self, request: web.Request) -> web.Response:
        if self._disturbances.find(faults.HangingMetrics) is not None:
            await asyncio.Event().wait()
        if (slow := self._disturbances.find(faults.SlowMetrics)) is not None:
            await asyncio.sleep(slow.seconds)
        nonsense = self._disturbances.find(faults.NonsenseMetrics) is not None
        body = _NONSENSE.encode() if nonsense else self._service.metrics.page()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def _server_info(self, request: web.Request) -> web.Response:
        return json_reply({"vllm_config": self._config.info, "vllm_env": {}, "system_env": {}})

    async def _reset_prefix_cache(self, request: web.Request) -> web.Response:
        self._log.api("api_router.py:37", "Resetting prefix cache...")
        return json_reply({"success": self._service.reset_prefix_cache()})

    async def _tokenize(self, request: web.Request) -> web.Response:
        text, with_pieces = tokenize_request(await request.read(), self._config.limits)
        tokens = self._vocabulary.encode(text)
        head = {"count": len(tokens), "max_model_len": self._config.limits.max_model_len}
        return json_reply(head | {"tokens": tokens, "token_strs": pieces(text) if with_pieces else None})

    async def _detokenize(self, request: web.Request) -> web.Response:
        tokens = token_ids(await request.read(), self._config.limits)
        return json_reply({"prompt": self._vocabulary.decode(tokens)})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=True)

    async def _plain(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=False)

    async def _complete(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        if self._config.fail == "hang-requests":
            await asyncio.Event().wait()
        return await self._completions.answer(request, chat=chat)

    async def _set_fault(self, request: web.Request) -> web.Response:
        try:
            fault, for_s = faults.parse(orjson.loads(await request.read()))
        except orjson.JSONDecodeError:
            return json_reply({"error": "the body must be one JSON object"}, 400)
        except faults.BadFault as error:
            return json_reply({"error": str(error)}, 400)
        self._disturbances.set(fault, for_s)
        return json_reply({"faults": self._disturbances.shown()})

    async def _clear_faults(self, request: web.Request) -> web.Response:
        self._disturbances.clear()
        return json_reply({"faults": []})

    async def _state(self, request: web.Request) -> web.Response:
        return json_reply(state.shown(self._service, self._disturbances))

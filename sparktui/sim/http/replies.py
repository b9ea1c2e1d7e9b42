"""JSON answers, and the errors that become one."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from sparktui.sim.http.payloads import ENGINE_DEAD, error_body
from sparktui.sim.http.refusals import Refused, not_json
from sparktui.sim.service import EngineDead

_JSON_ROUTES = ("/tokenize", "/detokenize", "/v1/chat/completions", "/v1/completions")


def json_reply(
    body: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """An answer with a JSON body."""
    return web.Response(
        body=orjson.dumps(body), status=status, content_type="application/json", headers=headers
    )


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn refusals and aiohttp's own errors into vLLM's JSON."""
    try:
        return await handler(request)
    except Refused as refused:
        return json_reply(refused.body, refused.status, refused.headers)
    except EngineDead:
        return json_reply(error_body(ENGINE_DEAD, "InternalServerError", 500), 500)
    except web.HTTPException as error:
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return json_reply({"detail": error.reason}, error.status, headers)


@web.middleware
async def only_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Raises Refused for a body that does not say it is JSON, on the routes that read one."""
    if (
        request.path in _JSON_ROUTES
        and request.method == "POST"
        and request.content_type != "application/json"
    ):
        raise not_json()
    return await handler(request)

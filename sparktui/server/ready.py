"""Asking a server whether it serves (httpx): /health, then /v1/models and /version."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import httpx

from sparktui.schema.launch import LaunchSpec
from sparktui.server.local import LaunchError, environment

_POLL_S = 0.25
_ANSWER_S = 5.0


class NotReady(Exception):
    """The server will not serve what was asked for; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    version: str | None
    models: tuple[str, ...]


def client() -> httpx.AsyncClient:
    """The client for every control request: no proxies from the environment for a server of this machine."""
    return httpx.AsyncClient(trust_env=False, timeout=_ANSWER_S)


def api_key(spec: LaunchSpec) -> str | None:
    """VLLM_API_KEY as the server itself gets it: from ``env_file`` or the environment."""
    try:
        return environment(spec, os.environ).get("VLLM_API_KEY") or None
    except LaunchError:  # the launch has told
        return os.environ.get("VLLM_API_KEY") or None


def auth(key: str | None = None) -> dict[str, str]:
    """Authorization with ``key``, else with VLLM_API_KEY of the environment, where it is set."""
    key = key or os.environ.get("VLLM_API_KEY")
    return {"Authorization": f"Bearer {key}"} if key else {}


async def healthy(http: httpx.AsyncClient, url: str) -> bool:
    """Whether /health says 200. It keeps saying so while a GPU hangs: readiness, not liveness."""
    try:
        return (await http.get(f"{url}/health")).status_code == 200
    except httpx.HTTPError:
        return False


async def wait_ready(http: httpx.AsyncClient, spec: LaunchSpec, gone: Callable[[], bool]) -> Answer:
    """Poll until the server answers for its model. Raises NotReady when the time is up, when ``gone`` says
    that the process ended, or when it serves something else."""
    until = monotonic() + spec.ready_timeout_s
    while not await healthy(http, spec.url):
        if gone():
            raise NotReady("the server ended before it was ready")
        if monotonic() >= until:
            raise NotReady(f"not ready after {spec.ready_timeout_s:g} s (ready_timeout_s in the profile)")
        await asyncio.sleep(_POLL_S)
    answer = await identify(http, spec)
    if gone():  # somebody else answers on this port
        raise NotReady("the server ended before it was ready")
    return answer


async def identify(http: httpx.AsyncClient, spec: LaunchSpec) -> Answer:
    """Version and served models. Raises NotReady on 401 or when our model is not among them."""
    models = await served_models(http, spec.url, api_key(spec))
    if spec.model not in models:
        raise NotReady(f"serves {', '.join(models) or 'no model'}, not {spec.model}")
    return Answer(await _version(http, spec.url), models)


async def served_models(http: httpx.AsyncClient, url: str, key: str | None = None) -> tuple[str, ...]:
    """What /v1/models names. Raises NotReady on 401, and when it doesn't answer as it should."""
    try:
        response = await http.get(f"{url}/v1/models", headers=auth(key))
    except httpx.HTTPError as exc:
        raise NotReady(f"/v1/models: {exc or type(exc).__name__}") from None
    if response.status_code == 401:
        raise NotReady("HTTP 401: the server wants an API key; set VLLM_API_KEY in the environment")
    if response.status_code != 200:
        raise NotReady(f"/v1/models: HTTP {response.status_code}")
    try:
        return tuple(str(model["id"]) for model in response.json()["data"])
    except (ValueError, KeyError, TypeError):
        raise NotReady("/v1/models does not answer as an OpenAI server does") from None


async def _version(http: httpx.AsyncClient, url: str) -> str | None:
    try:
        value = (await http.get(f"{url}/version")).json()["version"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None
    return str(value)

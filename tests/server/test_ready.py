"""Readiness, against a small server that answers as told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from sparktui.schema.launch import LaunchSpec
from sparktui.server import ready
from sparktui.server.ready import Answer, NotReady, client, healthy, wait_ready

MODELS = '{"object":"list","data":[{"id":"served","object":"model"},{"id":"alias"}]}'


class Vllm:
    """/health goes through ``health``, then stays at its last; the others answer as they are set."""

    def __init__(self) -> None:
        self.health = [200]
        self.models = (200, MODELS)
        self.version = (200, '{"version":"0.32.0"}')
        self.asked: list[str] = []
        self.authorization: list[str | None] = []
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self.server = TestServer(app)

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if request.path == "/health":
            status = self.health.pop(0) if len(self.health) > 1 else self.health[0]
            return web.Response(status=status)
        if request.path == "/v1/models":
            self.authorization.append(request.headers.get("Authorization"))
        status, text = self.models if request.path == "/v1/models" else self.version
        return web.Response(status=status, text=text)

    def spec(self, **values: Any) -> LaunchSpec:
        fields: dict[str, Any] = {"model": "served", "port": self.server.port or 0} | values
        fixed: dict[str, Any] = {"profile": "p", "variant": "off", "runner": "local", "host": "0.0.0.0"}
        return LaunchSpec(argv=("vllm",), speculating=False, **(fixed | fields))


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "_POLL_S", 0.005)
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # a proxy of the user's must not be asked


@pytest.fixture
async def vllm() -> AsyncIterator[Vllm]:
    made = Vllm()
    await made.server.start_server()
    yield made
    await made.server.close()


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with client() as made:
        yield made


def stays() -> bool:
    return False


async def refusal(http: httpx.AsyncClient, spec: LaunchSpec) -> str:
    async with asyncio.timeout(10):
        with pytest.raises(NotReady) as caught:
            await wait_ready(http, spec, stays)
    return str(caught.value)


async def test_it_is_ready_when_it_says_so(http: httpx.AsyncClient, vllm: Vllm) -> None:
    vllm.health = [503, 503, 404, 200]
    async with asyncio.timeout(10):
        answer = await wait_ready(http, vllm.spec(), stays)
    assert answer == Answer("0.32.0", ("served", "alias"))
    assert vllm.asked == ["/health"] * 4 + ["/v1/models", "/version"]


async def test_it_may_not_even_listen_yet(http: httpx.AsyncClient, vllm: Vllm, free: int) -> None:
    asks = 0

    def gone() -> bool:
        nonlocal asks
        asks += 1
        return asks == 4

    async with asyncio.timeout(10):
        with pytest.raises(NotReady, match=r"^the server ended before it was ready$"):
            await wait_ready(http, vllm.spec(port=free), gone)
    assert asks == 4
    assert vllm.asked == []


async def test_time_runs_out(http: httpx.AsyncClient, vllm: Vllm) -> None:
    vllm.health = [503]
    text = await refusal(http, vllm.spec(ready_timeout_s=0.1))
    assert text == "not ready after 0.1 s (ready_timeout_s in the profile)"
    assert "/v1/models" not in vllm.asked


async def test_any_name_of_the_model_will_do(http: httpx.AsyncClient, vllm: Vllm) -> None:
    assert (await wait_ready(http, vllm.spec(model="alias"), stays)).models == ("served", "alias")


@pytest.mark.parametrize(
    ("models", "says"),
    [
        ((401, '{"error":"Unauthorized"}'),
         "HTTP 401: the server wants an API key; set VLLM_API_KEY in the environment"),
        ((500, ""), "/v1/models: HTTP 500"),
        ((404, MODELS), "/v1/models: HTTP 404"),
        ((200, '{"data":[{"id":"other"},{"id":"another"}]}'), "serves other, another, not served"),
        ((200, '{"data":[]}'), "serves no model, not served"),
        ((200, "<html>hello</html>"), "/v1/models does not answer as an OpenAI server does"),
        ((200, ""), "/v1/models does not answer as an OpenAI server does"),
        ((200, "[]"), "/v1/models does not answer as an OpenAI server does"),
        ((200, '{"data":3}'), "/v1/models does not answer as an OpenAI server does"),
        ((200, '{"data":["served"]}'), "/v1/models does not answer as an OpenAI server does"),
        ((200, '{"data":[{"name":"served"}]}'), "/v1/models does not answer as an OpenAI server does"),
    ],
)  # fmt: skip
async def test_what_serves_something_else_is_told(
    http: httpx.AsyncClient, vllm: Vllm, models: tuple[int, str], says: str
) -> None:
    vllm.models = models
    assert await refusal(http, vllm.spec()) == says


@pytest.mark.parametrize("version", [(404, ""), (200, "<html>"), (200, "[]"), (200, "{}")])
async def test_a_version_that_is_not_told_is_not_known(
    http: httpx.AsyncClient, vllm: Vllm, version: tuple[int, str]
) -> None:
    vllm.version = version
    assert (await wait_ready(http, vllm.spec(), stays)).version is None


async def test_the_key_of_the_environment_goes_along(
    http: httpx.AsyncClient, vllm: Vllm, monkeypatch: pytest.MonkeyPatch
) -> None:
    await wait_ready(http, vllm.spec(), stays)
    monkeypatch.setenv("VLLM_API_KEY", "s3cret")
    await wait_ready(http, vllm.spec(), stays)
    assert vllm.authorization == [None, "Bearer s3cret"]


async def test_health_is_200_and_nothing_else(http: httpx.AsyncClient, vllm: Vllm, free: int) -> None:
    url = vllm.spec().url
    assert await healthy(http, url)
    for status in (503, 500, 302, 204):
        vllm.health = [status]
        assert not await healthy(http, url)
    assert not await healthy(http, f"http://127.0.0.1:{free}")


async def test_a_health_that_never_comes_is_none() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, httpx.AsyncClient(trust_env=False, timeout=0.1) as http:
        assert not await healthy(http, f"http://127.0.0.1:{port}")

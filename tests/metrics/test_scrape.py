"""Scraping a small server that answers well, badly, or not at all."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from sparktui.metrics.page import Page, parse
from sparktui.metrics.scrape import ScrapeError, scrape
from tests.metrics.pages import text_of

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PAGE = text_of("0.32.0-cpu/on_midload.txt")


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[str]]]:
    servers: list[TestServer] = []

    async def start(handler: Handler) -> str:
        app = web.Application()
        app.router.add_get("/metrics", handler)
        server = TestServer(app)
        servers.append(server)
        await server.start_server()
        return str(server.make_url("")).rstrip("/")

    yield start
    for server in servers:
        await server.close()


Serve = Callable[[Handler], Awaitable[str]]


def answering(text: str, status: int = 200, kind: str = "text/plain") -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(text=text, status=status, content_type=kind)

    return handler


async def test_a_page_is_dated_within_its_request(http: httpx.AsyncClient, serve: Serve) -> None:
    url = await serve(answering(PAGE))
    before = monotonic()
    page = await scrape(http, url)
    assert before < page.t < monotonic()
    assert page.running == 8.0
    assert page.counters["generation_tokens_total"] == 4664.0


@pytest.mark.parametrize("status", [401, 404, 500, 503, 302])
async def test_another_status_is_said(http: httpx.AsyncClient, serve: Serve, status: int) -> None:
    url = await serve(answering(PAGE, status))
    with pytest.raises(ScrapeError) as caught:
        await scrape(http, url)
    assert str(caught.value) == f"/metrics: HTTP {status}"


async def test_html_is_no_page(http: httpx.AsyncClient, serve: Serve) -> None:
    url = await serve(answering("<html><script>alert(1)</script></html>", kind="text/html"))
    with pytest.raises(ScrapeError) as caught:
        await scrape(http, url)
    assert str(caught.value) == "/metrics: no vLLM metric on the page"


async def test_nonsense_is_said_in_plain_text(http: httpx.AsyncClient, serve: Serve) -> None:
    url = await serve(answering("vllm:generation_tokens_total \x1b[31mred\x07\n"))
    with pytest.raises(ScrapeError) as caught:
        await scrape(http, url)
    assert str(caught.value).startswith("/metrics: not a Prometheus page")
    assert str(caught.value).isprintable()


async def test_a_server_that_never_answers_is_given_up(http: httpx.AsyncClient, serve: Serve) -> None:
    asked, end = asyncio.Event(), asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.set()
        await end.wait()
        return web.Response(text=PAGE)

    url = await serve(handler)
    with pytest.raises(ScrapeError) as caught:
        await scrape(http, url, timeout_s=0.2)
    assert asked.is_set()
    assert str(caught.value) == "/metrics did not answer within 0.2 s"
    end.set()


async def test_a_server_that_drips_is_given_up_too(http: httpx.AsyncClient, serve: Serve) -> None:
    end = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while not end.is_set():
            await response.write(b"# drip\n")
            await asyncio.sleep(0.02)
        return response

    url = await serve(handler)
    async with asyncio.timeout(5):
        with pytest.raises(ScrapeError, match=r"did not answer within 0\.3 s"):
            await scrape(http, url, timeout_s=0.3)
    end.set()


async def test_a_page_that_breaks_off_is_said(http: httpx.AsyncClient, serve: Serve) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "99999"})
        await response.prepare(request)
        await response.write(PAGE[:1000].encode())
        assert request.transport is not None
        request.transport.abort()
        return response

    url = await serve(handler)
    with pytest.raises(ScrapeError, match=r"^/metrics: ."):
        await scrape(http, url)


async def test_a_slow_page_is_dated_at_the_middle_of_its_request(
    http: httpx.AsyncClient, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four seconds under load, by a clock of its own."""
    clock = [100.0]

    async def handler(request: web.Request) -> web.StreamResponse:
        clock[0] += 4.0
        return web.Response(text=PAGE)

    monkeypatch.setattr("sparktui.metrics.scrape.monotonic", lambda: clock[0])
    page = await scrape(http, await serve(handler))
    assert page.t == 102.0


async def test_a_page_without_end_is_given_up_while_it_comes(http: httpx.AsyncClient, serve: Serve) -> None:
    sent = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:  # until the client hangs up
            await response.write(b"# nothing\n" * 20_000)
            sent += 200_000

    url = await serve(handler)
    with pytest.raises(ScrapeError) as caught:
        await scrape(http, url, timeout_s=60.0)
    assert str(caught.value) == "/metrics: the page is larger than 16 MiB"
    assert 16 << 20 <= sent + 200_000 < 40e6  # the rest lay in sockets' buffers


async def test_a_packed_page_is_measured_unpacked(http: httpx.AsyncClient, serve: Serve) -> None:
    packed = gzip.compress(b"# nothing\n" * 4_000_000)
    assert len(packed) < 200_000

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    url = await serve(handler)
    with pytest.raises(ScrapeError, match="larger than 16 MiB"):
        await scrape(http, url)


@pytest.mark.parametrize("size", ["small", "large"])
async def test_a_large_page_is_parsed_beside_the_loop(
    http: httpx.AsyncClient, serve: Serve, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    threads: list[threading.Thread] = []

    def noted(text: str, t: float) -> Page:
        threads.append(threading.current_thread())
        return parse(text, t)

    monkeypatch.setattr("sparktui.metrics.scrape.parse", noted)
    text = PAGE if size == "small" else "# a comment of another exporter\n" * 160_000 + PAGE
    page = await scrape(http, await serve(answering(text)))
    assert page.running == 8.0
    assert (threads == [threading.main_thread()]) == (size == "small")


async def test_a_large_page_that_is_none_is_said_too(http: httpx.AsyncClient, serve: Serve) -> None:
    url = await serve(answering("<p>" * 200_000, kind="text/html"))
    with pytest.raises(ScrapeError, match="no vLLM metric on the page"):
        await scrape(http, url)


@pytest.mark.parametrize("tail", ["", "/", "/metrics", "/metrics/"])
async def test_the_address_may_name_the_page(http: httpx.AsyncClient, serve: Serve, tail: str) -> None:
    assert (await scrape(http, await serve(answering(PAGE)) + tail)).running == 8.0


async def test_an_address_that_is_none_is_said(http: httpx.AsyncClient) -> None:
    with pytest.raises(ScrapeError, match=r"^/metrics: ."):
        await scrape(http, "http://localhost:port")


async def test_nobody_there_is_said(http: httpx.AsyncClient) -> None:
    with socket.socket() as unused:  # bound and not listening: refuses
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ScrapeError) as caught:
            await scrape(http, f"http://127.0.0.1:{unused.getsockname()[1]}")
    text = str(caught.value)
    assert text.startswith("/metrics: ")
    assert len(text) > len("/metrics: ")
    assert text.isprintable()
    assert "Traceback" not in text

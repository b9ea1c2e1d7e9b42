"""The prefix-cache probe on the stand-in: caching on, off, without /metrics, and with others about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from sparktui.host import probe as probe_module
from sparktui.host.asker import Asker
from sparktui.host.probe import OUTPUT_TOKENS, probe, useless_cache
from sparktui.schema.records import PrefixProbe, ProbeAnswer
from sparktui.server import ready
from tests.contract.server import Server
from tests.standin import MODEL, fault, no_faults, page, stand_in
from tests.support import free_port, kill, until

KEY = "sk-not-for-your-eyes"


@pytest.fixture(autouse=True)
def _alone(server: Server) -> Iterator[None]:
    yield
    no_faults(server)


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with ready.client() as client:
        yield client


async def test_a_cache_that_works(server: Server, http: httpx.AsyncClient) -> None:
    before = page(server).counters
    found = await probe(http, server.url, MODEL)
    assert found.call == "works", found.text
    first, *again = found.answers
    assert (first.hits, first.queries, first.prompt_tokens) == (0, 2000, 2000)
    assert [answer.hits for answer in again] == [1984, 1984], "whole blocks of 16, never the last token"
    assert all((answer.ttft_ms or 0) < (first.ttft_ms or 0) for answer in again)
    after = page(server).counters
    assert after["prefix_cache_hits_total"] - before["prefix_cache_hits_total"] == 2 * 1984
    assert after["request_success_total"] - before["request_success_total"] == 3


async def test_each_probe_asks_what_was_never_asked(server: Server, http: httpx.AsyncClient) -> None:
    """A second probe of one server must not find the first one's prompt."""
    for _ in range(2):
        found = await probe(http, server.url, MODEL, input_tokens=256)
        assert found.call == "works", found.text
        assert found.answers[0].hits == 0


async def test_metrics_of_another_server_prove_nothing(
    server: Server, tmp_path: Path, http: httpx.AsyncClient
) -> None:
    with stand_in(tmp_path, "--sim-model", "tiny-h200") as other:
        found = await probe(http, server.url, MODEL, other.url)
    assert found.call == "not known"
    assert found.text.endswith("/metrics is another server's")


async def test_a_cache_that_is_off(tmp_path: Path, http: httpx.AsyncClient) -> None:
    flags = ("--sim-model", "tiny-h200", "--no-enable-prefix-caching")
    with stand_in(tmp_path, *flags) as server:
        found = await probe(http, server.url, MODEL)
    assert found.call == "off", found.text
    assert [(answer.hits, answer.queries) for answer in found.answers] == [(0, 0)] * 3
    assert found.text.endswith("prefix caching is off")


@pytest.mark.parametrize("name", ["nonsense_metrics", "no page"])
async def test_without_metrics_it_is_not_known(server: Server, http: httpx.AsyncClient, name: str) -> None:
    """TTFT falls here as well, and proves nothing."""
    elsewhere = f"http://127.0.0.1:{free_port()}" if name == "no page" else None
    if elsewhere is None:
        fault(server, fault=name)
    found = await probe(http, server.url, MODEL, elsewhere)
    assert found.call == "not known"
    assert "the answers do not say cached_tokens (--enable-prompt-tokens-details)" in found.text
    assert [(answer.hits, answer.queries) for answer in found.answers] == [(None, None)] * 3
    assert all(answer.ttft_ms is not None for answer in found.answers)


async def test_others_on_the_server(server: Server, http: httpx.AsyncClient) -> None:
    fault(server, fault="foreign_traffic", streams=2, prompt_tokens=64, max_tokens=4000)
    until(lambda: page(server).running, what="their requests")
    found = await probe(http, server.url, MODEL)
    assert found.call == "not known"
    assert "requests of others are on the server" in found.text
    assert found.answers == ()


async def test_a_request_that_fails(server: Server, http: httpx.AsyncClient) -> None:
    fault(server, fault="server_errors", status=503)
    found = await probe(http, server.url, MODEL)
    assert found.call == "not known"
    assert "a request failed: HTTP 503" in found.text


async def test_a_prompt_that_the_model_has_room_for(tmp_path: Path, http: httpx.AsyncClient) -> None:
    with stand_in(tmp_path, "--sim-model", "tiny-h200", "--max-model-len", "600") as server:
        found = await probe(http, server.url, MODEL)
    assert found.call == "works", found.text
    assert [answer.prompt_tokens for answer in found.answers] == [600 - 2 * OUTPUT_TOKENS] * 3


async def test_key_of_the_server(tmp_path: Path, http: httpx.AsyncClient) -> None:
    with stand_in(tmp_path, "--sim-model", "tiny-h200", "--api-key", KEY, key=KEY) as server:
        refused = await probe(http, server.url, MODEL, input_tokens=64)
        found = await probe(http, server.url, MODEL, key=KEY, input_tokens=64)
    assert refused.call == "not known"
    assert "HTTP 401" in refused.text
    assert found.call == "works", found.text
    assert [answer.prompt_tokens for answer in found.answers] == [64] * 3, "/tokenize got the key, too"
    assert KEY not in refused.text + found.text


async def test_requests_that_cannot_be_told_apart(
    server: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers so short that the next request leaves before the stream can be told to end."""
    monkeypatch.setattr(probe_module, "OUTPUT_TOKENS", 1)
    monkeypatch.setattr(probe_module, "_INTERVAL_S", 1.0)
    found = await probe(http, server.url, MODEL, input_tokens=64)
    assert found.call == "not known"
    assert found.text.endswith("the server answers too fast for one request at a time")


async def test_the_load_process_is_gone_afterwards(server: Server, http: httpx.AsyncClient) -> None:
    asker = Asker()
    asking = asyncio.create_task(probe(http, server.url, MODEL, input_tokens=64, asker=asker))
    while asker.pid is None:
        await asyncio.sleep(0.01)
    assert "sparktui.load" in psutil.Process(asker.pid).cmdline()
    assert (await asking).call == "works"
    assert asker.pid is None


async def test_a_load_process_that_is_killed(server: Server, http: httpx.AsyncClient) -> None:
    asker = Asker()
    asking = asyncio.create_task(probe(http, server.url, MODEL, input_tokens=64, asker=asker))
    while asker.pid is None:
        await asyncio.sleep(0.01)
    kill(asker.pid)
    found = await asking
    assert found.call == "not known"
    assert found.text.endswith("the load process ended")


def test_the_finding_says_what_was_measured() -> None:
    answers = (ProbeAnswer(210.0, 1008, None, 0.0, 1008.0),) * 3
    found = PrefixProbe("useless", "0 of 3,024 queried tokens hit", answers)
    assert useless_cache(found).text == found.text
    assert useless_cache(found).flag == "--no-enable-prefix-caching"

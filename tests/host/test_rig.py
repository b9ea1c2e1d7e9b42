"""The rig on the stand-in: streams that end in time, keys that go where they belong."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from sparktui.host import rig as rig_module
from sparktui.host.keys import load_keys, same_origin
from sparktui.schema.launch import LaunchSpec, LoadSpec
from tests.contract.server import Server
from tests.host.rigs import LONG, SHORT, bench, eventually
from tests.proxy import NAME, proxy_before
from tests.standin import MODEL, page, stand_in
from tests.support import kill

OWN, PROXYS = "sk-of-the-server", "sk-of-the-proxy"


async def test_drain_cuts_what_does_not_end(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig_module, "_DRAIN_S", 0.5)
    async with bench(tmp_path, server.port, LONG, monkeypatch) as b:
        await b.rig.boot(0)
        await b.streams(3)
        assert await b.rig.drain()
        assert b.in_flight == 0
        await eventually(lambda: not page(server).running, "the server has seen that they were closed")
        rows = b.rig.live.rows
        assert [row.cancelled for row in rows] == [True] * 3


async def test_drain_does_not_wait_for_ever(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load process that says nothing any more."""
    monkeypatch.setattr(rig_module, "_DRAIN_S", 0.3)
    monkeypatch.setattr(rig_module, "_CUT_S", 0.3)
    async with bench(tmp_path, server.port, LONG, monkeypatch) as b:
        await b.rig.boot(0)
        await b.streams(1)
        pid = b.rig.loader.pid
        assert pid is not None
        kill(pid, signal.SIGSTOP)
        assert not await b.rig.drain()
        kill(pid, signal.SIGCONT)
        assert await b.rig.drain()


async def test_drain_of_a_load_process_that_is_gone(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(tmp_path, server.port, LONG, monkeypatch) as b:
        await b.rig.boot(0)
        await b.streams(1)
        pid = b.rig.loader.pid
        assert pid is not None
        kill(pid)
        await eventually(lambda: b.rig.loader.pid is None, "its end")
        assert await b.rig.drain()


@pytest.mark.parametrize("proxys", [PROXYS, ""])
async def test_the_servers_key_never_reaches_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxys: str
) -> None:
    """Prompts are counted by the server itself, under its own model name and with its own key."""
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    monkeypatch.setenv("SPARKTUI_LOAD_API_KEY", proxys)
    secrets = tmp_path / "server.env"
    secrets.write_text(f"VLLM_API_KEY={OWN}\n", "utf-8")
    secrets.chmod(0o600)
    with stand_in(tmp_path, "--sim-model", "tiny-h200", "--api-key", OWN, key=OWN) as server:
        async with proxy_before(server.url, wants=proxys, key=OWN) as proxy:
            load = LoadSpec("chat", 200, 16, url=proxy.url, model=NAME)
            async with bench(tmp_path, server.port, load, monkeypatch, env_file=secrets) as b:
                await b.rig.boot(0)
                await b.rig.drive(1)
                await eventually(lambda: len(b.rig.live.rows) > 2, "answers through the proxy")
                rows = list(b.rig.live.rows)
                assert await b.rig.drain()
    assert proxy.keys == {proxys}
    assert proxy.models == {NAME}
    assert proxy.paths == {"/v1/chat/completions"}
    assert [(row.ok, row.prompt_tokens) for row in rows] == [(True, 200)] * len(rows)
    assert b.rig.loader.totals is not None
    assert b.rig.loader.totals.note == ""


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (None, (OWN, OWN)),
        ("http://127.0.0.1:8000", (OWN, OWN)),
        ("http://127.0.0.1:8000/v2", (OWN, OWN)),
        ("https://127.0.0.1:8000", (PROXYS, OWN)),
        ("http://127.0.0.1:4000", (PROXYS, OWN)),
        ("http://127.0.0.1", (PROXYS, OWN)),
        ("http://box:8000", (PROXYS, OWN)),
    ],
)
def test_keys(
    url: str | None, expected: tuple[str | None, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = LaunchSpec("p", "off", "attach", (), "0.0.0.0", 8000, MODEL, False)
    monkeypatch.setenv("VLLM_API_KEY", OWN)
    monkeypatch.setenv("SPARKTUI_LOAD_API_KEY", PROXYS)
    assert load_keys(spec, url) == expected
    monkeypatch.delenv("SPARKTUI_LOAD_API_KEY")
    assert load_keys(spec, url)[0] in (OWN if expected[0] == OWN else None,)


def test_ports_that_go_without_saying() -> None:
    assert same_origin("http://box", "http://BOX:80/v1")
    assert same_origin("https://box:443", "https://box")
    assert not same_origin("http://box:443", "https://box")
    assert same_origin("http://localhost:8000", "http://127.0.0.1:8000")
    assert not same_origin("http://localhost:4000", "http://127.0.0.1:8000")


async def test_workload_takes_other_requests_at_once(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(tmp_path, server.port, LONG, monkeypatch) as b:
        await b.rig.boot(0)
        await b.streams(2)
        await b.rig.set_workload(SHORT)
        await b.rig.drive(1)
        await eventually(lambda: b.rig.live.rows, "an answer of the new load")
        assert b.rig.live.rows[0].ok
        assert b.run.plan().load == SHORT

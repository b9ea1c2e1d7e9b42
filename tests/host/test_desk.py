"""Orders at the desk, carried out on the stand-in."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest

from sparktui.host import rig as rig_module
from sparktui.schema.messages import ProbePrefixCache, SetLoad, SetWorkload
from sparktui.schema.records import PrefixProbe
from tests.contract.server import Server
from tests.host.rigs import LONG, SHORT, bench, eventually
from tests.standin import stand_in
from tests.support import free_port, kill


async def test_probe_under_a_load_of_long_answers(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own streams are not "others", and come back afterwards."""
    monkeypatch.setattr(rig_module, "_DRAIN_S", 0.5)
    async with bench(tmp_path, server.port, LONG, monkeypatch) as b:
        await b.rig.boot(0)
        await b.desk.take(1, SetLoad(3))
        await eventually(lambda: b.in_flight == 3, "the load")
        await b.desk.take(1, ProbePrefixCache())
        with pytest.raises(ValueError, match="something else is being measured"):
            await b.desk.take(1, ProbePrefixCache())
        with pytest.raises(ValueError, match="the load is locked"):
            await b.desk.take(1, SetLoad(1))
        await eventually(b.probes, "its answer")
        (found,) = b.probes()
        assert found.call == "works", found.text
        await eventually(lambda: b.in_flight == 3, "the load again")


async def test_probe_says_when_our_own_streams_do_not_end(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig_module, "_DRAIN_S", 0.3)
    monkeypatch.setattr(rig_module, "_CUT_S", 0.3)
    async with bench(tmp_path, server.port, LONG, monkeypatch) as b:
        await b.rig.boot(0)
        await b.streams(1)
        pid = b.rig.loader.pid
        assert pid is not None
        kill(pid, signal.SIGSTOP)
        await b.desk.take(1, ProbePrefixCache())
        await eventually(b.probes, "its answer")
        kill(pid, signal.SIGCONT)
    (found,) = b.probes()
    assert found.call == "not known"
    assert found.text.endswith("our own requests did not end")


async def test_a_probe_that_breaks_is_told(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(tmp_path, server.port, SHORT, monkeypatch) as b:
        await b.rig.boot(0)

        async def broken() -> PrefixProbe:
            raise httpx.ReadError("connection lost")

        monkeypatch.setattr(b.rig, "probe_prefix_cache", broken)
        await b.desk.take(1, ProbePrefixCache())
        await eventually(b.probes, "its answer")
        assert b.probes()[0].text.endswith("is not known: connection lost")
        await b.desk.take(1, SetLoad(1))  # nothing is locked any more
        await eventually(lambda: b.rig.live.rows, "an answer")


async def test_a_stop_ends_a_probe(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, server.port, SHORT, monkeypatch) as b:
        await b.rig.boot(0)
        await b.desk.take(1, ProbePrefixCache())
        helpers = b.rig.owner.helpers
        await eventually(lambda: len(helpers()) == 2, "a load process of its own")
        await b.rig.stop()
        await eventually(b.probes, "its answer")
        assert helpers() == ()
        assert b.probes()[0].call == "not known"


async def test_workload_during_a_boot_waits_for_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    async with bench(tmp_path, port, SHORT, monkeypatch) as b:
        await b.rig.owner.launch(b.run.plan().arms[0], 0)
        assert b.rig.owner.view.state == "booting"
        await b.desk.take(1, SetWorkload("code"))
        assert b.rig.loader.pid is None
        assert b.run.plan().load.workload == "code"
        with pytest.raises(ValueError, match="the server is booting"):
            await b.desk.take(1, ProbePrefixCache())
        with pytest.raises(ValueError, match="no workload sonnets"):
            await b.desk.take(1, SetWorkload("sonnets"))


async def test_workload_of_a_boot_is_what_the_server_gets(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(tmp_path, server.port, SHORT, monkeypatch) as b:
        await b.desk.take(1, SetWorkload("code"))
        await b.rig.boot(0)
        await b.desk.take(1, SetLoad(1))
        await eventually(lambda: b.rig.live.rows, "an answer")
        assert b.rig.live.rows[0].prompt_tokens == 160


async def test_probe_of_a_cache_that_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stand_in(tmp_path, "--sim-model", "tiny-h200", "--no-enable-prefix-caching") as server:
        async with bench(tmp_path, server.port, SHORT, monkeypatch) as b:
            await b.rig.boot(0)
            await b.desk.take(1, ProbePrefixCache())
            await eventually(b.probes, "its answer")
            assert b.probes()[0].call == "off"

"""Faults set through /sim/fault: what each does, that it ends, and what is refused."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sparktui.sim.http import faults
from tests.sim.conftest import TIMEOUT_S, Launch
from tests.sim.inside import SPEC, Inside, chat, fetch, inside
from tests.sim.wire import counters

CHAT = "/v1/chat/completions"
SIM_FLAGS = ("--sim-noise", "0")
HOST_SIDE = ("http_", "process_", "python_")


async def generated(server: Inside) -> float:
    """generation_tokens_total."""
    _, page = await server.call("GET", "/metrics")
    families = {family.name: family for family in text_string_to_metric_families(page)}
    return float(families["vllm:generation_tokens"].samples[0].value)


async def seconds_of(server: Inside, tokens: int = 20) -> float:
    """How long an answer of so many tokens takes."""
    begun = time.monotonic()
    status, _ = await server.call("POST", CHAT, json=chat(max_tokens=tokens))
    assert status == 200
    return time.monotonic() - begun


def test_every_fault_is_documented_with_its_fields_and_defaults() -> None:
    page = (
        (Path(__file__).parents[2] / "docs/sim.md").read_text("utf-8").split("## Make something go wrong")[1]
    )
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    table = {name.strip(" `"): fields for name, fields in rows}
    assert set(table) == set(faults.FAULTS)
    for name, kind in faults.FAULTS.items():
        for field in dataclasses.fields(kind):
            if field.name != "kernel":  # a name for the log
                assert f"{field.name} ({field.default:g})" in table[name]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"fault": "nope"}, "fault must be one of: slow_metrics, hanging_metrics, nonsense_metrics,"),
        ([], "fault must be one of: "),
        ({"fault": "slow_metrics", "secs": 1}, "unknown: secs; fields: seconds, for_s"),
        ({"fault": "slow_metrics", "seconds": "1"}, "seconds must be a number from 0 to 3600, got '1'"),
        ({"fault": "slow_metrics", "seconds": -1}, "seconds must be a number from 0 to 3600, got -1"),
        ({"fault": "server_errors", "status": 200}, "status must be a whole number from 500 to 599, got 200"),
        ({"fault": "dropped_streams", "after_chunks": 1.5}, "after_chunks must be a whole number from 0"),
        ({"fault": "hang", "for_s": True}, "for_s must be a number from 0 to 86400, got True"),
        ({"fault": "counter_reset", "for_s": 1}, "it happens once and takes no for_s"),
        ({"fault": "jit_pause", "kernel": "a b\n"}, "kernel must be a name, got 'a b\\n'"),
    ],
)
async def test_what_is_no_fault_is_refused(body: Any, message: str) -> None:
    async with inside() as server:
        status, answer = await server.call("POST", "/sim/fault", json=body)
        assert (await server.call("POST", "/sim/fault", data=b"{"))[0] == 400
        _, state = await server.call("GET", "/sim/state")
    assert status == 400
    assert answer["error"].startswith(message)
    assert state["faults"] == []


async def test_state_and_the_log_tell_of_faults_but_not_of_the_truth() -> None:
    async with inside("-dp", "2") as server:
        await server.fault("throttle", slowdown=2, for_s=50)
        await server.fault("hang")
        _, state = await server.call("GET", "/sim/state")
        (throttle, hang) = state["faults"]
        assert 40 < throttle.pop("left_s") <= 50
        assert throttle == {"fault": "throttle", "slowdown": 2}
        assert hang == {"fault": "hang", "left_s": None}
        assert set(state) == {"dead", "hung", "faults", "engines"}
        assert state["hung"]
        assert len(state["engines"]) == 2
        assert set(state["engines"][0]) == {"running", "waiting", "kv_usage", "gpu"}
        assert {"power_w", "sm_clock_mhz", "utilization", "energy_j"} <= set(state["engines"][0]["gpu"])
        assert await server.call("DELETE", "/sim/fault") == (200, {"faults": []})
        assert not (await server.call("GET", "/sim/state"))[1]["hung"]
    log = server.log.getvalue()
    assert "Stand-in: throttle {'slowdown': 2} for 50 s" in log
    assert log.count("ended") == 2


async def test_a_fault_ends_by_itself() -> None:
    async with inside() as server:
        await server.fault("server_errors", status=503, for_s=1)
        status, answer = await server.call("POST", CHAT, json=chat())
        assert (status, answer["error"]["code"]) == (503, 503)
        async with asyncio.timeout(10):
            while (await server.call("POST", CHAT, json=chat(max_tokens=1)))[0] != 200:
                pass


async def test_a_share_of_requests_fails() -> None:
    async with inside() as server:
        await server.fault("server_errors", probability=0.5)
        calls = [server.call("POST", CHAT, json=chat(max_tokens=1)) for _ in range(60)]
        codes = [status for status, _ in await asyncio.gather(*calls)]
    assert set(codes) == {200, 500}
    assert 12 <= codes.count(500) <= 48


async def test_metrics_slow_hanging_and_nonsense() -> None:
    async with inside() as server:
        await server.fault("slow_metrics", seconds=0.3)
        begun = time.monotonic()
        await generated(server)
        assert time.monotonic() - begun >= 0.3
        await server.call("DELETE", "/sim/fault")
        await server.fault("nonsense_metrics")
        status, page = await server.call("GET", "/metrics")
        assert status == 200
        with pytest.raises(ValueError, match=r".+"):
            list(text_string_to_metric_families(page))
        await server.fault("hanging_metrics")
        scrape = asyncio.ensure_future(server.call("GET", "/metrics"))
        for _ in range(20):
            assert (await server.call("GET", "/health"))[0] == 200
        assert not scrape.done()
        scrape.cancel()


async def test_the_boot_flag_for_nonsense_is_the_same_fault() -> None:
    async with inside("--sim-fail", "metrics-nonsense") as server:
        _, page = await server.call("GET", "/metrics")
        _, state = await server.call("GET", "/sim/state")
    assert page.startswith("<!DOCTYPE html>")
    assert state["faults"] == [{"fault": "nonsense_metrics", "left_s": None}]


async def test_streams_are_cut_after_so_many_events() -> None:
    async with inside() as server:
        await server.fault("dropped_streams", after_chunks=4)
        body = chat(stream=True, max_tokens=500)
        async with server.session.post(server.url + CHAT, json=body) as response:
            lines = [await response.content.readline() for _ in range(8)]
            with pytest.raises(aiohttp.ClientError):
                await response.content.readline()
        assert all(line.startswith(b"data: ") for line in lines[::2])
        async with asyncio.timeout(10):
            while server.service.running:
                await server.call("GET", "/health")


async def test_a_hang_keeps_requests_and_health_and_goes_on_afterwards() -> None:
    async with inside() as server:
        await server.fault("hang")
        request = asyncio.ensure_future(server.call("POST", CHAT, json=chat(max_tokens=3)))
        for _ in range(20):
            assert (await server.call("GET", "/health"))[0] == 200
        assert server.service.running + server.service.waiting == 1
        assert await generated(server) == 0
        await server.call("DELETE", "/sim/fault")
        assert (await request)[0] == 200


async def test_a_hang_under_load_freezes_counters_while_requests_run() -> None:
    async with inside() as server:
        body = chat(max_tokens=30_000, stream=True)
        async with server.session.post(server.url + CHAT, json=body) as response:
            await response.content.readline()
            await server.fault("hang")
            before = await counters(server)
            for _ in range(50):
                assert (await server.call("GET", "/health"))[0] == 200
            after = await counters(server)
            still = {name: value for name, value in after.items() if not name.startswith(HOST_SIDE)}
            assert still == {name: before[name] for name in still}
            assert after["num_requests_running"] == 1
            assert after["generation_tokens_total"] > 0
            await server.call("DELETE", "/sim/fault")
            async with asyncio.timeout(10):
                while (await counters(server))["generation_tokens_total"] == after["generation_tokens_total"]:
                    pass


async def test_counters_start_again() -> None:
    async with inside() as server:
        await seconds_of(server, 7)
        assert await generated(server) == 7
        await server.fault("counter_reset")
        assert await generated(server) == 0
        await seconds_of(server, 2)
        assert await generated(server) == 2


async def test_throttling_drift_and_pauses_take_time() -> None:
    async with inside() as server:
        await server.fault("throttle", slowdown=10)
        assert await seconds_of(server) > 20 * 10 * 0.002
        assert [engine.slowdown for engine in server.service.engines] == [10]
        await server.call("DELETE", "/sim/fault")
        await server.fault("drift", per_s=0.01)
        assert [engine.drift_per_s for engine in server.service.engines] == [0.01]
        await server.call("DELETE", "/sim/fault")
        (engine,) = server.service.engines
        assert (engine.slowdown, engine.drift_per_s) == (1.0, 0.0)
        await server.fault("jit_pause", seconds=0.5, kernel="rejection_greedy_sample_kernel")
        assert await seconds_of(server, 3) > 0.5
    text = "Triton kernel JIT compilation during inference: rejection_greedy_sample_kernel. This causes"
    assert text in server.log.getvalue()


async def test_foreign_traffic_counts_as_requests_and_stops() -> None:
    async with inside() as server:
        await server.fault("foreign_traffic", streams=3, max_tokens=5)
        async with asyncio.timeout(10):
            while await generated(server) < 60:
                pass
        assert server.service.running + server.service.waiting <= 3
        await server.call("DELETE", "/sim/fault")
        async with asyncio.timeout(10):
            while server.service.running + server.service.waiting:
                await server.call("GET", "/health")


async def test_late_memory_is_told_to_the_engine_process() -> None:
    async with inside() as server:
        await server.fault("late_memory", seconds=7)
        await server.call("DELETE", "/sim/fault")
    assert server.lingers == [7, 3], "then again what --sim-linger-seconds says"


async def test_an_engine_death_that_is_due_is_shown_and_can_be_cleared() -> None:
    async with inside() as server:
        await server.fault("engine_death", after_s=0.05)
        _, state = await server.call("GET", "/sim/state")
        assert [item["fault"] for item in state["faults"]] == ["engine_death"]
        await server.call("DELETE", "/sim/fault")
        await asyncio.sleep(0.1)
        assert server.crashes == 0
        await server.fault("engine_death")
        async with asyncio.timeout(5):
            while not server.crashes:
                await server.call("GET", "/health")
        _, state = await server.call("GET", "/sim/state")
        assert state["faults"] == []


async def test_an_engine_death_ends_streams_as_vllm_does(launch: Launch) -> None:
    server = await launch(*SIM_FLAGS)
    async with (
        aiohttp.ClientSession() as session,
        session.post(server.url + CHAT, json=chat(stream=True, max_tokens=5000)) as response,
    ):
        await response.content.readline()
        assert (await fetch(server, "/sim/fault", json={"fault": "engine_death"}))[0] == 200
        async with asyncio.timeout(TIMEOUT_S):
            rest = (await response.text()).split("\n\n")
    assert rest[-3].startswith('data: {"error": {"message": "EngineCore encountered an issue.')
    assert rest[-2] == "data: [DONE]"
    assert "EngineDeadError" in await server.output()


async def test_the_first_draft_may_kill_the_engine(launch: Launch) -> None:
    server = await launch(*SIM_FLAGS, *SPEC, "--sim-fail", "illegal-access")
    status, text = await fetch(server, CHAT, json=chat())
    assert (status, "EngineCore encountered an issue" in text) == (500, True)
    assert "an illegal memory access was encountered" in await server.output()


async def test_memory_comes_back_late(launch: Launch) -> None:
    server = await launch(*SIM_FLAGS)
    engine = server.engine_pid
    assert (await fetch(server, "/sim/fault", json={"fault": "late_memory", "seconds": 30}))[0] == 200
    server.process.terminate()
    assert await server.exit_code() == 0
    os.kill(engine, 0)  # raises when it is gone


def test_names_and_kinds_are_one_to_one() -> None:
    assert len(set(faults.FAULTS.values())) == len(faults.FAULTS)
    for (one, _), (other, _) in itertools.pairwise(faults.FAULTS.items()):
        assert faults.name_of(faults.FAULTS[one]()) == one != other

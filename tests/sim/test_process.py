"""How the server starts, fails and stops: exit codes, log, the engine's process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import aiohttp
import psutil
import pytest

from tests.sim.conftest import TIMEOUT_S, Launch, SimServer
from tests.sim.inside import SPEC, chat, fetch

DOWNGRADE = "is not supported with spec-decode for attention backend FlashInferBackend"


def alive(pid: int) -> bool:
    """Whether it runs: a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kernel_name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text(encoding="ascii").rstrip()


async def gone(pid: int) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while alive(pid):
            await asyncio.sleep(0.01)


async def test_the_downgrade_is_logged_only_when_speculating_on_flashinfer(launch: Launch) -> None:
    off, on = await launch(), await launch(*SPEC)
    kept = await launch(*SPEC, "--attention-backend", "TRITON_ATTN")
    assert DOWNGRADE in await on.line("[compilation.py:1458]")
    assert DOWNGRADE not in "".join(off.lines) + "".join(kept.lines)
    assert any("(decode, FULL)" in line for line in off.lines)
    assert not any("(decode, FULL)" in line or "(FULL)" in line for line in on.lines)


async def test_the_log_says_what_this_is(launch: Launch) -> None:
    server = await launch()
    assert "stand-in" in server.lines[7]
    assert server.lines[2].endswith("version 0.27.1\r\n")
    shown = await server.line("non-default args:")
    assert "{'model_tag': 'test/model'," in shown
    assert f"(APIServer pid={server.process.pid})" in shown


async def test_the_boot_takes_the_seconds_asked_for(launch: Launch) -> None:
    loop = asyncio.get_running_loop()
    server = await launch(ready=False, boot="1.0")
    await server.line("non-default args:")
    start = loop.time()
    await server.line("Application startup complete.")
    assert 0.9 < loop.time() - start < 3.0


async def test_nobody_answers_while_it_boots(launch: Launch) -> None:
    with_port = await launch(boot="0.1")
    port = with_port.url.rpartition(":")[2]
    with_port.process.terminate()
    assert await with_port.exit_code() == 0
    server = await launch("--port", port, "--sim-fail", "never-ready", ready=False)
    await server.line("Loading safetensors")
    with pytest.raises(aiohttp.ClientConnectorError):
        async with aiohttp.ClientSession() as session:
            await session.get(f"http://127.0.0.1:{port}/health")


async def test_an_unknown_flag_exits_2(launch: Launch) -> None:
    server = await launch("--no-such-flag", "3", ready=False)
    assert await server.exit_code() == 2
    assert (await server.output()).endswith("vllm: error: unrecognized arguments: --no-such-flag 3\n")


async def test_a_taken_port_exits_1_before_the_boot(launch: Launch, taken_port: int) -> None:
    server = await launch("--port", str(taken_port), ready=False)
    assert await server.exit_code() == 1
    output = await server.output()
    assert output.endswith("OSError: [Errno 98] Address already in use\n")
    assert "Traceback (most recent call last)" in output
    assert "EngineCore" not in output


async def test_out_of_memory_ends_the_boot(launch: Launch) -> None:
    server = await launch("--sim-fail", "engine-oom", ready=False)
    assert await server.exit_code() == 1
    output = await server.output()
    assert "torch.OutOfMemoryError: CUDA out of memory" in output
    assert output.endswith(
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    )
    assert not alive(server.engine_pid)


async def test_an_engine_killed_at_boot_ends_it(launch: Launch) -> None:
    server = await launch("--sim-fail", "never-ready", ready=False)
    await server.line("Initializing a V1 LLM engine")
    os.kill(server.engine_pid, signal.SIGKILL)
    assert await server.exit_code() == 1
    assert "Engine core initialization failed." in await server.output()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_it_and_its_engine(launch: Launch, number: signal.Signals) -> None:
    server = await launch()
    assert alive(server.engine_pid)
    server.process.send_signal(number)
    assert await server.exit_code() == 0
    assert not alive(server.engine_pid)
    assert "[shutdown] API server: shutdown triggered" in await server.output()


async def test_a_signal_to_the_whole_group_is_an_orderly_stop(launch: Launch) -> None:
    server = await launch()
    os.killpg(server.process.pid, signal.SIGINT)
    assert await server.exit_code() == 0
    assert not alive(server.engine_pid)
    assert "EngineDeadError" not in await server.output()


@pytest.mark.parametrize("group", [True, False])
async def test_sigint_at_boot_kills_by_sigint(launch: Launch, group: bool) -> None:
    server = await launch("--sim-fail", "never-ready", ready=False)
    await server.line("Initializing a V1 LLM engine")
    (os.killpg if group else os.kill)(server.process.pid, signal.SIGINT)
    assert await server.exit_code() == -signal.SIGINT
    assert not alive(server.engine_pid)
    assert (await server.output()).endswith(f"(APIServer pid={server.process.pid}) KeyboardInterrupt\n")


async def test_sigterm_at_boot_is_swallowed(launch: Launch) -> None:
    server = await launch(ready=False, boot="1.0")
    await server.line("Initializing a V1 LLM engine")
    server.process.send_signal(signal.SIGTERM)
    await server.line("Application startup complete.")
    assert (await fetch(server, "/health"))[0] == 200


async def stream(server: SimServer, session: aiohttp.ClientSession) -> aiohttp.ClientResponse:
    """A response under way."""
    body = chat(max_tokens=8000) | {"stream": True}
    response = await session.post(server.url + "/v1/chat/completions", json=body)
    await response.content.readline()
    return response


async def test_a_signal_to_the_group_ends_open_streams(launch: Launch) -> None:
    server = await launch()
    async with aiohttp.ClientSession() as session, asyncio.timeout(TIMEOUT_S):
        response = await stream(server, session)
        os.killpg(server.process.pid, signal.SIGINT)
        rest = await response.text()
        assert await server.exit_code() == 0
    assert '"finish_reason":"abort"' in rest.replace(": ", ":")
    assert rest.endswith("data: [DONE]\n\n")
    assert "Waiting for connections to close" not in await server.output()


async def test_a_signal_to_the_server_alone_waits_for_open_streams(launch: Launch) -> None:
    server = await launch()
    async with aiohttp.ClientSession() as session, asyncio.timeout(TIMEOUT_S):
        response = await stream(server, session)
        server.process.send_signal(signal.SIGTERM)
        await server.line("INFO:     Waiting for connections to close. (CTRL+C to force quit)")
        await gone(server.engine_pid)
        with pytest.raises(aiohttp.ClientConnectorError):
            await fetch(server, "/health")
        server.process.send_signal(signal.SIGINT)  # which changes nothing
        assert server.process.poll() is None
        response.close()
        assert await server.exit_code() == 0
    assert "Application shutdown complete." in await server.output()


async def test_the_engine_may_outlive_the_server(launch: Launch) -> None:
    server = await launch("--sim-linger-seconds", "1")
    pid = server.engine_pid
    server.process.send_signal(signal.SIGINT)
    assert await server.exit_code() == 0
    assert alive(pid)
    await gone(pid)


async def test_an_engine_for_each_data_parallel_rank(launch: Launch) -> None:
    server = await launch("--data-parallel-size", "2")
    engines = psutil.Process(server.process.pid).children()
    titles = {" ".join(engine.cmdline()).strip() for engine in engines}
    assert titles == {"VLLM::EngineCore_DP0", "VLLM::EngineCore_DP1"}
    server.process.send_signal(signal.SIGTERM)
    assert await server.exit_code() == 0
    assert not any(alive(engine.pid) for engine in engines)


async def test_the_first_draft_may_end_the_engine(launch: Launch) -> None:
    server = await launch(*SPEC, "--sim-fail", "illegal-access")
    async with aiohttp.ClientSession() as session, asyncio.timeout(TIMEOUT_S):
        body = chat(max_tokens=50) | {"stream": True}
        response = await session.post(server.url + "/v1/chat/completions", json=body)
        assert "EngineCore encountered an issue" in await response.text()
    output = await server.output()
    assert "CUDA error: an illegal memory access was encountered" in output
    assert output.index("illegal memory access") < output.index("AsyncLLM output_handler failed.")


async def test_a_broken_model_file_exits_2(launch: Launch, tmp_path: Path) -> None:
    server = await launch("--sim-model", str(tmp_path / "none.yaml"), ready=False)
    assert await server.exit_code() == 2
    assert "none.yaml" in await server.output()


BROKEN = """
import sys
from sparktui.sim.cli import main
from sparktui.sim.service import EngineService
def broken(*args):
    raise RuntimeError("a bug of ours")
EngineService._complete = broken
sys.exit(main(sys.argv[1:]))
"""


async def test_without_statistics_it_serves_all_the_same(launch: Launch) -> None:
    server = await launch("--disable-log-stats")
    assert (await fetch(server, "/v1/chat/completions", json=chat()))[0] == 200
    server.process.send_signal(signal.SIGTERM)
    assert await server.exit_code() == 0
    assert "EngineDeadError" not in await server.output()


async def test_strangers_requests_do_not_keep_it_from_ending(launch: Launch) -> None:
    server = await launch()
    fault = {"fault": "foreign_traffic", "streams": 2, "max_tokens": 100_000}
    assert (await fetch(server, "/sim/fault", json=fault))[0] == 200
    server.process.send_signal(signal.SIGTERM)
    assert await server.exit_code() == 0


async def test_a_bug_in_pacing_ends_the_server_instead_of_hanging_it(launch: Launch) -> None:
    server = await launch(program=("-c", BROKEN))
    async with aiohttp.ClientSession() as session, asyncio.timeout(TIMEOUT_S):
        with contextlib.suppress(aiohttp.ClientError):
            await session.post(server.url + "/v1/chat/completions", json=chat())
    assert await server.exit_code() == 1
    assert "a bug of ours" in await server.output()


async def test_the_engine_survives_its_killed_server(launch: Launch) -> None:
    server = await launch()
    pid = server.engine_pid
    assert kernel_name(pid) == "VLLM::EngineCor"  # the kernel keeps 15 bytes
    assert os.getpgid(pid) == os.getpgid(server.process.pid)
    server.process.kill()
    assert await server.exit_code() == -signal.SIGKILL
    assert alive(pid)
    os.kill(pid, signal.SIGTERM)
    await gone(pid)


async def test_an_engine_killed_midstream_ends_the_stream_with_an_error(launch: Launch) -> None:
    server = await launch()
    async with aiohttp.ClientSession() as session:
        body = chat(max_tokens=8000) | {"stream": True}
        response = await session.post(server.url + "/v1/chat/completions", json=body)
        await response.content.readline()
        os.kill(server.engine_pid, signal.SIGKILL)
        rest = (await response.text()).split("\n\n")
    assert len(rest) < 60, "a dead engine says no more: at 13 ms a step its last second would be 77 events"
    assert response.status == 200
    assert rest[-3:] == [
        'data: {"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root '
        'cause.", "type": "InternalServerError", "param": null, "code": 500}}',
        "data: [DONE]",
        "",
    ]
    assert (await fetch(server, "/health"))[0] == 503
    assert (await fetch(server, "/v1/chat/completions", json=chat()))[0] == 500
    assert await server.exit_code() == 0  # as the real one's
    assert "EngineDeadError: EngineCore encountered an issue." in await server.output()

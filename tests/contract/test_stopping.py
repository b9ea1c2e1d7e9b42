"""How a server ends, or never begins: signals, exit codes, what is left."""

from __future__ import annotations

import os
import re
import signal

import httpx
import psutil
import pytest

from tests.contract.launcher import OFF, SPEC, Config, Launcher, Pool
from tests.contract.server import Server, alive, timed
from tests.contract.wire import CHAT, chat, client, streaming
from tests.support import until

STOP_S = 30.0  # a real idle one takes about a second; a busy machine many
ORPHAN_S = 2.0
ERROR = (
    'data: {"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root '
    'cause.", "type": "InternalServerError", "param": null, "code": 500}}'
)


def refuses(server: Server) -> bool:
    try:
        httpx.get(server.url + "/health", timeout=5, trust_env=False)
    except httpx.ConnectError:
        return True
    except httpx.TransportError:
        pass
    return False


@pytest.mark.parametrize(
    ("config", "number"), [(OFF, signal.SIGTERM), (SPEC, signal.SIGINT)], ids=["SIGTERM", "SIGINT"]
)
def test_an_idle_server_stops_at_once_with_exit_code_0(
    pool: Pool, config: Config, number: signal.Signals
) -> None:
    with pool.take(config) as server:
        engine = server.child("VLLM::EngineCore")
        os.kill(server.process.pid, number)
        assert timed(server.exit_code) < STOP_S
        assert server.process.returncode == 0
        until(lambda: not alive(engine), STOP_S, "the engine's end")
        assert refuses(server)
        output = server.output()
        assert "[shutdown] API server: shutdown triggered" in output
        assert output.index("Shutting down") < output.index("Application shutdown complete.")


def test_the_engine_outlives_its_killed_server(pool: Pool) -> None:
    with pool.take(OFF) as server:
        engine = server.child("VLLM::EngineCore")
        assert os.getpgid(engine.pid) == os.getpgid(server.process.pid) == server.process.pid
        server.process.kill()
        assert server.exit_code() == -signal.SIGKILL
        until(lambda: refuses(server), STOP_S, "a closed port")
        with pytest.raises(psutil.TimeoutExpired, match=str(engine.pid)):
            engine.wait(ORPHAN_S)
        assert engine.status() != psutil.STATUS_ZOMBIE
        engine.kill()
        until(lambda: not alive(engine), STOP_S, "the engine's end")


def health(server: Server) -> int:
    """Its status; 0 when nobody answers."""
    try:
        return httpx.get(server.url + "/health", timeout=server.limits.answer, trust_env=False).status_code
    except httpx.TransportError:
        return 0


def test_an_engine_killed_midstream(pool: Pool) -> None:
    with pool.take(OFF) as server:
        engine = server.child("VLLM::EngineCore")
        with (
            client(server) as made,
            made.stream("POST", CHAT, json=streaming(chat(max_tokens=4000))) as answer,
        ):
            lines = answer.iter_lines()
            assert next(lines).startswith('data: {"id":')
            engine.kill()
            rest = list(lines)
        assert answer.status_code == 200
        assert [line for line in rest if line][-2:] == [ERROR, "data: [DONE]"]
        seen = [200]

        def closed() -> bool:
            seen.append(health(server))
            return seen[-1] == 0

        until(closed, STOP_S, "a closed port")
        assert [code for code in dict.fromkeys(seen) if code != 503] == [200, 0]
        assert server.exit_code() == 0
        assert "EngineDeadError: EngineCore encountered an issue." in server.raw.decode()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--no-such-flag", "3"], r"vllm: error: unrecognized arguments: --no-such-flag 3"),
        (
            ["--dtype", "bogus"],
            r"vllm serve: error: argument --dtype: invalid choice: 'bogus' \(choose from 'auto', 'bfloat16', "
            r"'float', 'float16', 'float32', 'half'\)",
        ),
    ],
    ids=["unknown", "choice"],
)
def test_wrong_usage_exits_2(launcher: Launcher, flags: list[str], message: str) -> None:
    with launcher.started(OFF, *flags) as server:
        assert server.exit_code(launcher.limits.boot) == 2
        output = server.output()
    assert re.search(r"^usage: vllm", output, re.MULTILINE)
    assert re.fullmatch(message, output.splitlines()[-1])
    assert "Traceback" not in output


def test_a_taken_port_exits_1_before_an_engine_starts(
    launcher: Launcher, release: str, taken_port: int
) -> None:
    with launcher.started(OFF, port=taken_port) as server:
        assert server.exit_code(launcher.limits.boot) == 1
        output = server.output()
        last = server.lines[-1]
    assert last.message == "OSError: [Errno 98] Address already in use"
    assert last.process == ("APIServer" if release == "0.27.1" else None)
    assert "Traceback (most recent call last):" in output
    assert "EngineCore" not in output

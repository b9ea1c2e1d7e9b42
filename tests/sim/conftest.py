"""Stand-in servers as real processes; whatever a test leaves behind is killed by pid."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest

TIMEOUT_S = 20.0
READY = "Application startup complete."


@dataclass(slots=True)
class SimServer:
    """One server process; its output is read as it comes."""

    process: subprocess.Popen[bytes]
    lines: list[str] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _closed: bool = False

    async def read(self) -> None:
        """Collect stdout and stderr until both are closed."""
        stream = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(stream)
        transport, _ = await loop.connect_read_pipe(lambda: protocol, self.process.stdout)
        with contextlib.closing(transport):
            while data := await stream.readline():
                async with self._changed:
                    self.lines.append(data.decode())
                    self._changed.notify_all()
        async with self._changed:
            self._closed = True
            self._changed.notify_all()

    async def line(self, text: str) -> str:
        """The first line with ``text``, waiting for it. AssertionError when the output ends before."""
        async with asyncio.timeout(TIMEOUT_S), self._changed:
            await self._changed.wait_for(lambda: self._closed or self._find(text) is not None)
        found = self._find(text)
        assert found is not None, "".join(self.lines)
        return found

    async def exit_code(self) -> int:
        return await asyncio.to_thread(self.process.wait, TIMEOUT_S)

    async def output(self) -> str:
        """Everything it wrote, once every holder of the pipe is gone."""
        async with asyncio.timeout(TIMEOUT_S), self._changed:
            await self._changed.wait_for(lambda: self._closed)
        return "".join(self.lines)

    @property
    def engine_pid(self) -> int:
        line = self._find("(EngineCore pid=")
        match = re.search(r"EngineCore pid=(\d+)", line or "")
        assert match is not None, "no line of the engine yet"
        return int(match[1])

    @property
    def url(self) -> str:
        match = re.search(r"Starting vLLM server on (http://\S+)", self._find("Starting vLLM server") or "")
        assert match is not None, "not serving yet"
        return match[1]

    def kill_leftovers(self) -> None:
        pids = [self.process.pid] if self.process.poll() is None else []
        with contextlib.suppress(AssertionError):
            pids.append(self.engine_pid)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _find(self, text: str) -> str | None:
        return next((line for line in self.lines if text in line), None)


def spawn(argv: list[str]) -> subprocess.Popen[bytes]:
    """In a session of its own, as sparktui starts servers; both outputs in one pipe."""
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)


Launch = Callable[..., Awaitable[SimServer]]


@pytest.fixture
async def launch() -> AsyncIterator[Launch]:
    """Start ``sparktui.sim serve`` with the given flags on a free port; ``ready`` waits for it."""
    servers: list[tuple[SimServer, asyncio.Task[None]]] = []

    async def start(
        *args: str, ready: bool = True, boot: str = "0.2", program: Sequence[str] = ("-m", "sparktui.sim")
    ) -> SimServer:
        port = () if "--port" in args else ("--port", "0")
        argv = [sys.executable, *program, "serve", "test/model", "--host", "127.0.0.1"]
        argv += [*port, "--sim-boot-seconds", boot, *args]
        server = SimServer(spawn(argv))
        servers.append((server, asyncio.create_task(server.read())))
        if ready:
            await server.line(READY)
        return server

    yield start
    for server, reader in servers:
        server.kill_leftovers()
        await server.exit_code()
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)

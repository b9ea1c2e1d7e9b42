"""One server process from bound port to exit code: boot, serve, and end as vLLM ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from aiohttp import web

from sparktui.sim import failures, stats
from sparktui.sim.api import ROUTES
from sparktui.sim.arguments import ServeArguments
from sparktui.sim.assemble import assemble
from sparktui.sim.bootfacts import boot_facts
from sparktui.sim.bootlog import banner, moments
from sparktui.sim.engine_process import EngineProcess, spawn
from sparktui.sim.logfile import Log
from sparktui.sim.service import EngineService
from sparktui.sim.truth import Truth

_DEAD_S = 1.0  # /health answers 503 for this long before the server exits
_SETTLE_S = 0.1  # a signal to the whole group may reach the engine first
_BOOT_FAILS_AT = 0.35  # share of the boot after which the failing boots fail


class Server:
    """Runs one stand-in. ``run`` returns the exit code; the port is bound before the boot, as vLLM does."""

    def __init__(self, arguments: ServeArguments) -> None:
        self._arguments = arguments
        self._truth = Truth()
        self._facts = boot_facts(arguments, self._truth)
        self._log = Log(sys.stdout, os.getpid())
        self._stop = asyncio.Event()
        self._engine_gone = asyncio.Event()
        self._signal = 0

    def run(self) -> int:
        """Print the banner, bind, fork the engine, boot, serve."""
        banner(self._log, self._facts)
        try:
            sock = _bind(str(self._arguments.get("host", "")), int(self._arguments.get("port", 8000)))
        except OSError as error:
            sys.stderr.write(failures.port_stack(error) + "\n")
            return 1
        engine = spawn(close_fds=(sock.fileno(),))
        self._log.engine_pid = engine.pid
        try:
            return asyncio.run(self._live(sock, engine))
        finally:
            engine.kill()
            sock.close()

    async def _live(self, sock: socket.socket, engine: EngineProcess) -> int:
        self._watch(engine)
        boot = asyncio.ensure_future(self._boot())
        await self._first(boot)
        if self._stop.is_set():
            return await self._interrupted(boot)
        if self._engine_gone.is_set():
            boot.cancel()
            await asyncio.sleep(_SETTLE_S)
            failures.engine_lost_at_boot(self._log, -signal.SIGKILL)
            return 1
        if not await boot:
            failures.out_of_memory(self._log)
            return 1
        try:
            return await self._serve(sock, engine)
        except OSError as error:  # two servers may bind before either listens
            sys.stderr.write(failures.port_stack(error) + "\n")
            return 1

    def _watch(self, engine: EngineProcess) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                loop.add_signal_handler(number, self._signalled, number)

        def gone() -> None:
            loop.remove_reader(engine.death_fd)
            self._engine_gone.set()

        loop.add_reader(engine.death_fd, gone)

    def _signalled(self, number: int) -> None:
        self._signal = number
        self._stop.set()

    async def _first(self, *others: asyncio.Future[Any]) -> None:
        """Wait for a signal, the engine's death, or one of ``others``; they are left as they are."""
        events = [asyncio.ensure_future(event.wait()) for event in (self._stop, self._engine_gone)]
        await asyncio.wait([*events, *others], return_when=asyncio.FIRST_COMPLETED)
        for event in events:
            event.cancel()

    async def _interrupted(self, boot: asyncio.Future[bool]) -> int:
        boot.cancel()
        self._log.engine("core.py:1332", "[shutdown] EngineCore: trigger received signal=SIGTERM")
        self._log.api_raw("Traceback (most recent call last):\nKeyboardInterrupt")
        return 128 + self._signal

    async def _boot(self) -> bool:
        """Print the boot over its seconds; False: the engine failed."""
        seconds, fail = self._facts.seconds, self._arguments.sim.fail
        start, share = time.monotonic(), 0.0
        for moment in moments(self._facts):
            share += moment.share
            if share > _BOOT_FAILS_AT and fail == "engine-oom":
                return False
            if share > _BOOT_FAILS_AT and fail == "never-ready":
                await asyncio.Event().wait()
            await asyncio.sleep(max(0.0, start + share * seconds - time.monotonic()))
            moment.emit(self._log)
        await asyncio.sleep(max(0.0, start + seconds - time.monotonic()))
        return True

    async def _serve(self, sock: socket.socket, engine: EngineProcess) -> int:
        service, api = assemble(self._arguments, self._facts, self._truth, self._log)
        runner = web.AppRunner(api.app(), access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await self._listen(runner, sock)
            period = stats.interval_s()
            async with _background(service.run(), stats.report(service, self._log, period)):
                await self._first()
                if self._engine_gone.is_set() and not self._stop.is_set():
                    await asyncio.sleep(_SETTLE_S)
                if self._stop.is_set():
                    failures.shutdown(self._log)
                    return 0
                await self._die(service)
                return 1
        finally:
            engine.kill()
            await runner.cleanup()
            failures.shutdown_done(self._log)

    async def _die(self, service: EngineService) -> None:
        failures.engine_lost(self._log)
        service.die()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), _DEAD_S)

    async def _listen(self, runner: web.AppRunner, sock: socket.socket) -> None:
        host = str(self._arguments.get("host", "0.0.0.0"))
        port = sock.getsockname()[1]
        self._log.api("api_server.py:682", f"Starting vLLM server on http://{host}:{port}")
        self._log.api("launcher.py:37", "Available routes are:")
        for method, path in ROUTES:
            self._log.api("launcher.py:46", f"Route: {path}, Methods: {method}")
        self._log.api_raw(f"INFO:     Started server process [{os.getpid()}]")
        self._log.api_raw("INFO:     Waiting for application startup.")
        await web.SockSite(runner, sock, backlog=2048).start()
        self._log.api_raw("INFO:     Application startup complete.")


@contextlib.asynccontextmanager
async def _background(*jobs: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock

"""One server process from bound port to exit code: boot, serve, and end as vLLM ends.

Ends as recorded from 0.32.0 and 0.27.1. In boot: SIGINT kills by SIGINT, SIGTERM is swallowed, a lost engine
exits 1. Serving: a signal to the group, or to an idle server, exits 0; one to the parent alone waits for
responses under way, whatever signals follow; a lost engine exits 0 after some seconds of 503.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

from aiohttp import web

from sparktui.sim import failures
from sparktui.sim.arguments import ServeArguments
from sparktui.sim.assemble import assemble
from sparktui.sim.boot import failing
from sparktui.sim.boot.facts import boot_facts, boot_wait_s
from sparktui.sim.boot.logfile import Log
from sparktui.sim.boot.script import banner, moments
from sparktui.sim.counts import stats
from sparktui.sim.engine_process import EngineProcess, spawn
from sparktui.sim.http.api import ROUTES
from sparktui.sim.http.disturb import EngineSwitches
from sparktui.sim.http.faults import ForeignTraffic
from sparktui.sim.model.truth import Truth
from sparktui.sim.service import EngineService

_NOTICE_S = 1.0  # until the server notices that its engine is gone: /health still answers 200
_DEAD_S = 2.5  # /health answers 503 for this long before the server exits: vLLM looks every 5 s
_SETTLE_S = 0.1  # a signal to the whole group may reach the engine first
_ABORT_S = 0.2  # for the last events of aborted streams
_HANGS_AT = "weights"  # where a boot that never gets ready stays


class Server:
    """Runs one stand-in. ``run`` returns the exit code; the port is bound before the boot, as vLLM does."""

    def __init__(self, arguments: ServeArguments, truth: Truth) -> None:
        self._arguments = arguments
        self._truth = truth
        self._facts = boot_facts(arguments, truth)
        release, engines = arguments.release, arguments.engines
        self._log = Log(sys.stdout, os.getpid(), release=release, engines=engines)
        self._engines: list[EngineProcess] = []
        self._booting = True
        self._stop = asyncio.Event()
        self._engine_gone = asyncio.Event()
        self._signal = 0

    def run(self) -> int:
        """Print the banner, bind, fork the engines, boot, serve. May end the process by SIGINT instead."""
        banner(self._log, self._facts)
        try:
            if self._arguments.sim.fail == "port-in-use":
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            sock = _bind(str(self._arguments.get("host", "")), int(self._arguments.get("port", 8000)))
        except OSError as error:
            failing.port_taken(self._log, error)
            return 1
        self._engines = spawn(self._log.names, close_fds=(sock.fileno(),))
        self._log.engine_pids = [engine.pid for engine in self._engines]
        self._linger(self._arguments.sim.linger_seconds)
        try:
            return asyncio.run(self._live(sock))
        finally:
            self._stop_engines()
            sock.close()
            if self._booting and self._signal == signal.SIGINT:
                _die_by_sigint()

    async def _live(self, sock: socket.socket) -> int:
        self._watch()
        boot = asyncio.ensure_future(self._boot())
        await self._first(boot)
        if self._engine_gone.is_set():
            await asyncio.sleep(_SETTLE_S)  # whoever signalled the group signalled the server too
        if self._stop.is_set() or self._engine_gone.is_set():
            boot.cancel()
            return self._boot_ended()
        failure = await boot
        if failure is not None:
            failing.tell(self._log, failure)
            return 1
        self._booting = False
        try:
            return await self._serve(sock)
        except OSError as error:  # two servers may bind before either listens
            failing.port_taken(self._log, error)
            return 1

    def _boot_ended(self) -> int:
        """By SIGINT, or because an engine is gone."""
        if self._stop.is_set():
            failing.interrupted(self._log)
            return 128 + signal.SIGINT
        failing.tell_engine_lost(self._log, "{}")
        return 1

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                loop.add_signal_handler(number, self._signalled, number)
        for engine in self._engines:
            loop.add_reader(engine.death_fd, self._lost, engine.death_fd)

    def _lost(self, death_fd: int) -> None:
        asyncio.get_running_loop().remove_reader(death_fd)
        self._engine_gone.set()

    def _signalled(self, number: int) -> None:
        if self._booting and number == signal.SIGTERM:
            return
        self._signal = self._signal or number
        self._stop.set()

    async def _first(self, *others: asyncio.Future[Any]) -> None:
        """Wait for a signal, the engine's death, or one of ``others``; they are left as they are."""
        events = [asyncio.ensure_future(event.wait()) for event in (self._stop, self._engine_gone)]
        await asyncio.wait([*events, *others], return_when=asyncio.FIRST_COMPLETED)
        for event in events:
            event.cancel()

    async def _boot(self) -> failing.BootFailure | None:
        """Print the boot over its seconds; what ended it, or None."""
        seconds = boot_wait_s(self._arguments, self._facts)
        failure = failing.boot_failure(self._arguments, self._facts)
        start, share = time.monotonic(), 0.0
        for moment in moments(self._facts):
            if failure is not None and moment.mark == failure.mark:
                return failure
            if moment.mark == _HANGS_AT and self._arguments.sim.fail == "never-ready":
                await asyncio.Event().wait()
            share += moment.share
            await asyncio.sleep(max(0.0, start + share * seconds - time.monotonic()))
            moment.emit(self._log)
        await asyncio.sleep(max(0.0, start + seconds - time.monotonic()))
        return None

    async def _serve(self, sock: socket.socket) -> int:
        switches = EngineSwitches(self._crash, self._linger, self._arguments.sim.linger_seconds)
        service, api, disturbances = assemble(self._arguments, self._facts, self._truth, self._log, switches)
        runner = api.runner()
        await runner.setup()
        try:
            site = await self._listen(runner, sock)
            async with _background(service.run(), self._statistics(service)) as jobs:
                await self._until_the_end(jobs)
                disturbances.end(ForeignTraffic)  # or their requests would keep it
                service.hung = self._engine_gone.is_set()  # what is gone says nothing more
                await asyncio.sleep(_SETTLE_S)
                if not self._stop.is_set():
                    await self._die(service)
                elif self._engine_gone.is_set():
                    await self._abort(service)
            if self._stop.is_set() and not self._engine_gone.is_set():
                await self._drain(service, site)
        finally:
            self._stop_engines()
            await runner.cleanup()
        failures.http_done(self._log, None if self._stop.is_set() else os.getpid())
        return 0

    async def _until_the_end(self, jobs: Sequence[asyncio.Future[None]]) -> None:
        """Wait for a signal or the engine's death. Raises what breaks a job."""
        while not (self._stop.is_set() or self._engine_gone.is_set()):
            await self._first(*[job for job in jobs if not job.done()])
            for job in jobs:
                if job.done():
                    job.result()

    def _statistics(self, service: EngineService) -> Coroutine[Any, Any, None]:
        plan = self._facts.plan
        table = bool(self._arguments.get("cudagraph_metrics", False)) and plan.runner == "V1"
        return stats.report(service, self._log, stats.interval_s(), table, plan.wanted)

    async def _abort(self, service: EngineService) -> None:
        """A signal to the group: the engine ends what is under way, with finish reason ``abort``."""
        failures.shutdown(self._log, (signal.Signals(self._signal).name,))
        busy = service.running + service.waiting > 0
        service.abort_all()
        await asyncio.sleep(_ABORT_S if busy else 0)
        failures.http_shutdown(self._log)

    async def _drain(self, service: EngineService, site: web.SockSite) -> None:
        """A signal to the server alone: its engine is gone at once, its open responses stall until closed."""
        failures.shutdown(self._log, ())
        self._stop_engines()
        await site.stop()
        failures.http_shutdown(self._log)
        if service.running + service.waiting:
            failures.http_waits(self._log)
        while service.running + service.waiting:
            await asyncio.sleep(_SETTLE_S)

    async def _die(self, service: EngineService) -> None:
        """The engine is gone."""
        if service.drafted:
            failures.illegal_access(self._log)
        else:
            await self._unless_stopped(_NOTICE_S)
        failures.engine_lost(self._log)
        service.die()
        await self._unless_stopped(_DEAD_S)
        failures.http_shutdown(self._log)

    async def _unless_stopped(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    async def _listen(self, runner: web.AppRunner, sock: socket.socket) -> web.SockSite:
        log, release = self._log, self._log.release
        host = str(self._arguments.get("host", "0.0.0.0"))
        name = "vLLM server" if release.since("0.19.0") else "vLLM API server 0"
        log.api("api_server.py:682", f"Starting {name} on http://{host}:{sock.getsockname()[1]}")
        log.api("launcher.py:37", "Available routes are:")
        for method, path in ROUTES:
            log.api("launcher.py:46", f"Route: {path}, Methods: {method}")
        waits = release.since("0.27.0") and not release.since("0.30.0")
        if waits:
            log.api("launcher.py:99", "API server: waiting for HTTP server to start")
        log.api_raw(f"INFO:     Started server process [{os.getpid()}]")
        log.api_raw("INFO:     Waiting for application startup.")
        site = web.SockSite(runner, sock, backlog=2048)
        await site.start()
        log.api_raw("INFO:     Application startup complete.")
        if waits:
            log.api("launcher.py:105", "API server: HTTP server started")
        return site

    def _crash(self) -> None:
        """The first engine's process dies; the server notices by itself."""
        self._engines[0].kill()

    def _linger(self, seconds: float) -> None:
        for engine in self._engines:
            engine.linger(seconds)

    def _stop_engines(self) -> None:
        for engine in self._engines:
            engine.stop()


@contextlib.asynccontextmanager
async def _background(*jobs: Coroutine[Any, Any, None]) -> AsyncIterator[Sequence[asyncio.Future[None]]]:
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _die_by_sigint() -> None:
    """What Python does after an unhandled KeyboardInterrupt: the parent sees a death by signal."""
    sys.stdout.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


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

"""One server process from bound port to exit code: boot, serve, and end as vLLM ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from aiohttp import web

from sparktui.sim import failures, stats
from sparktui.sim.api import ROUTES, Api, ApiConfig
from sparktui.sim.arguments import ServeArguments
from sparktui.sim.bootlog import BootFacts, banner, moments
from sparktui.sim.engine import Engine, EngineConfig
from sparktui.sim.engine_process import EngineProcess, spawn
from sparktui.sim.intake import Limits
from sparktui.sim.logfile import Log
from sparktui.sim.metrics import Metrics
from sparktui.sim.prefix import BLOCK_TOKENS
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
        self._facts = _boot_facts(arguments, self._truth)
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
        service, api = self._build()
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

    def _build(self) -> tuple[EngineService, Api]:
        given, sim = self._arguments, self._arguments.sim
        seed = sim.seed if sim.seed is not None else time.time_ns() ^ os.getpid()
        config = EngineConfig(
            k=given.k,
            max_num_seqs=self._facts.max_num_seqs,
            max_num_batched_tokens=self._facts.max_num_batched_tokens,
            full_graphs=given.k > 0 and not self._facts.downgraded and not self._facts.eager,
            noise=sim.noise,
            restart_noise=sim.restart_noise,
            truth=self._truth,
        )
        engine = Engine(config, random.Random(seed))
        metrics = Metrics(given.served_names[0], given.k, _cache_config(self._facts, given))
        service = EngineService(engine, metrics)
        limits = Limits(given.served_names, self._facts.max_model_len)
        access_log = not given.get("disable_uvicorn_access_log", False)
        api_config = ApiConfig(limits, given.model, given.api_keys, access_log, sim.fail, self._truth)
        api = Api(api_config, service, metrics, self._log, random.Random(seed + 1))
        return service, api if self._facts.prefix_caching else api.without_prefix_cache()


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


def _boot_facts(given: ServeArguments, truth: Truth) -> BootFacts:
    backend = str(given.get("attention_backend", "FLASHINFER")).upper()
    hidden = {"api_key": "***"} if "api_key" in given.given else {}
    names = ("moe_backend", "mamba_backend", "kv_cache_dtype")
    return BootFacts(
        model=given.model,
        shown_args=given.given | hidden,
        seconds=max(given.sim.boot_seconds, 0.0),
        max_model_len=int(given.get("max_model_len", 32768)),
        max_num_batched_tokens=int(given.get("max_num_batched_tokens", 8192)),
        max_num_seqs=int(given.get("max_num_seqs", 256)),
        kv_tokens=truth.kv_cache_tokens,
        backend=backend,
        speculative=given.speculative,
        downgraded=given.k > 0 and backend == "FLASHINFER",
        eager=bool(given.get("enforce_eager", False)),
        prefix_caching=bool(given.get("enable_prefix_caching", True)),
        extra={name: given.given[name] for name in names if name in given.given},
    )


def _cache_config(facts: BootFacts, given: ServeArguments) -> dict[str, str]:
    """The labels of cache_config_info that tools read."""
    return {
        "block_size": str(BLOCK_TOKENS),
        "cache_dtype": str(given.get("kv_cache_dtype", "auto")),
        "enable_prefix_caching": str(facts.prefix_caching),
        "gpu_memory_utilization": str(given.get("gpu_memory_utilization", 0.92)),
        "kv_cache_max_concurrency": f"{facts.kv_tokens / facts.max_model_len:.2f}",
        "kv_cache_size_tokens": str(facts.kv_tokens),
        "num_gpu_blocks": str(facts.kv_tokens // BLOCK_TOKENS),
        "sliding_window": "None",
    }

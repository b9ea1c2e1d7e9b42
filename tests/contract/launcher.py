"""How a server is started: which program, which release, which configuration."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.contract.server import Limits, Server, start
from tests.support import free_port

RELEASES = ("0.27.1", "0.32.0")  # what tests/real/setup.sh installs
K = 3
MAX_MODEL_LEN = 4096
MAX_NUM_SEQS = 8
MAX_NUM_BATCHED_TOKENS = 2048
KEY = "a-key-of-the-contract"


@dataclass(frozen=True, slots=True)
class Config:
    """What a test asks of a server. The speculating one is also the one with an API key."""

    name: str
    speculative: bool = False
    key: str | None = None


OFF = Config("off")
SPEC = Config("spec", speculative=True, key=KEY)
CONFIGS = (OFF, SPEC)


@dataclass(frozen=True)
class Launcher:
    """One program of one release. ``models``: a folder with tinyw and its drafter, or just a name of one."""

    release: str
    program: tuple[str, ...]  # up to and including "serve"
    models: Path
    limits: Limits
    cwd: Path
    extra: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def argv(self, config: Config, port: int, *more: str) -> list[str]:
        argv = [*self.program, str(self.models / "tinyw"), "--host", "127.0.0.1", "--port", str(port)]
        argv += ["--served-model-name", "tiny", "--dtype", "bfloat16", "--enforce-eager"]
        argv += ["--max-model-len", str(MAX_MODEL_LEN), "--max-num-seqs", str(MAX_NUM_SEQS)]
        argv += ["--max-num-batched-tokens", str(MAX_NUM_BATCHED_TOKENS)]  # a CPU's default, not a GPU's
        if config.speculative:
            draft = {"model": str(self.models / "draftw"), "num_speculative_tokens": K}
            argv += ["--speculative-config", json.dumps(draft)]
        if config.key:
            argv += ["--api-key", config.key]
        return [*argv, *self.extra, *more]

    def start(self, config: Config, *more: str, port: int | None = None) -> Server:
        """Start one without waiting for it."""
        port = port or free_port()
        argv = self.argv(config, port, *more)
        return start(argv, port, self.limits, env=self.env, key=config.key, cwd=self.cwd)

    @contextmanager
    def started(self, config: Config, *more: str, port: int | None = None) -> Iterator[Server]:
        """The same, with nothing left of it afterwards."""
        server = self.start(config, *more, port=port)
        try:
            yield server
        finally:
            server.end()


class Pool:
    """Servers that tests share: one a configuration, booted when first asked for."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self._ready: dict[str, Server] = {}
        self._failed: set[str] = set()

    def get(self, config: Config) -> Server:
        """The shared one. A test leaves it idle."""
        assert config.name not in self._failed, "its boot failed before: not tried again"
        if config.name not in self._ready:
            self._ready[config.name] = self._boot(config)
        return self._ready[config.name]

    def _boot(self, config: Config) -> Server:
        server = self.launcher.start(config)
        try:
            server.wait_until_ready()
        except BaseException:
            self._failed.add(config.name)
            server.end()
            raise
        return server

    @contextmanager
    def take(self, config: Config) -> Iterator[Server]:
        """One to be stopped or killed: the shared one if there is one, which nobody gets again."""
        server = self.get(config)
        del self._ready[config.name]
        try:
            yield server
        finally:
            server.end()

    def end(self) -> None:
        while self._ready:
            self._ready.popitem()[1].end()


def stand_in(release: str, cwd: Path) -> Launcher:
    """The stand-in, speaking like ``release``, quick to boot and to answer."""
    program = (sys.executable, "-m", "sparktui.sim", "serve")
    sim = ("--sim-vllm", release, "--sim-boot-seconds", "0.3", "--sim-model", "tiny-h200")
    limits = Limits(boot=30, stop=30, answer=30)
    return Launcher(
        release, program, Path("/srv/models"), limits, cwd, sim, {"VLLM_LOG_STATS_INTERVAL": "0.5"}
    )

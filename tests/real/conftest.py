"""Real vLLM 0.32.0 and 0.27.1 on the CPU. Where they are missing the tests fail: they only run on purpose."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.contract.fixtures import off, pool, release, server, spec, telling
from tests.contract.launcher import RELEASES, Launcher
from tests.contract.server import Limits

__all__ = ["launcher", "off", "pool", "release", "server", "spec", "telling", "vllm_cpu"]

PROGRAMS = {"0.27.1": "vllm-0.27.1", "0.32.0": "vllm"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


@pytest.fixture(scope="session")
def vllm_cpu() -> Path:
    """The folder that setup.sh fills."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "sparktui" / "vllm-cpu"
    if not all((folder / mark).exists() for mark in (".models", ".release-0.27.1")):
        pytest.fail(f"no vLLM in {folder}: run tests/real/setup.sh (make vllm-cpu)", pytrace=False)
    return folder


@pytest.fixture(scope="session", params=RELEASES)
def launcher(
    request: pytest.FixtureRequest, vllm_cpu: Path, tmp_path_factory: pytest.TempPathFactory
) -> Launcher:
    """The contract's servers: real ones, one release after the other."""
    version: str = request.param
    program = (str(vllm_cpu / "bin" / PROGRAMS[version]), "serve")
    env = OFFLINE | {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOG_STATS_INTERVAL": "1"}
    limits = Limits(boot=900, stop=120, answer=120)
    return Launcher(version, program, vllm_cpu / "models", limits, tmp_path_factory.mktemp("real"), env=env)

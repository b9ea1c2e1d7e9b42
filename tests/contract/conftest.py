"""The contract against the stand-in, speaking like each release that the real servers run."""

from __future__ import annotations

import pytest

from tests.contract.fixtures import off, pool, release, server, spec, telling
from tests.contract.launcher import RELEASES, Launcher, stand_in

__all__ = ["launcher", "off", "pool", "release", "server", "spec", "telling"]


@pytest.fixture(scope="session", params=RELEASES)
def launcher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Launcher:
    version: str = request.param
    return stand_in(version, tmp_path_factory.mktemp("stand-in"))

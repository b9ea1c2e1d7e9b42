"""Fixtures that the contract's tests use; the folder that collects them gives ``launcher``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.launcher import CONFIGS, OFF, SPEC, Config, Launcher, Pool
from tests.contract.server import Server


@pytest.fixture(scope="session")
def pool(launcher: Launcher) -> Iterator[Pool]:
    """Servers that tests share."""
    made = Pool(launcher)
    yield made
    made.end()


@pytest.fixture(scope="session")
def release(launcher: Launcher) -> str:
    return launcher.release


@pytest.fixture
def off(pool: Pool) -> Server:
    """A server without speculation and without an API key."""
    return pool.get(OFF)


@pytest.fixture
def spec(pool: Pool) -> Server:
    """A server that speculates with a draft model and wants a key."""
    return pool.get(SPEC)


@pytest.fixture(params=CONFIGS, ids=lambda config: config.name)
def server(request: pytest.FixtureRequest, pool: Pool) -> Server:
    """One after the other."""
    config: Config = request.param
    return pool.get(config)


@pytest.fixture(scope="module")
def telling(launcher: Launcher) -> Iterator[Server]:
    """A speculating server that tells of each request all that its release can."""
    more = ["--enable-per-request-metrics"]
    if launcher.release != "0.27.1":  # from 0.30 on
        more += ["--per-request-spec-decode-metrics", "summary"]
    with launcher.started(SPEC, *more) as made:
        made.wait_until_ready()
        yield made

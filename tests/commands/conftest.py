"""What tests of commands share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.server import Server
from tests.standin import fast_server
from tests.support import Home


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A fast stand-in: its steps are short against a window of two seconds."""
    with fast_server(tmp_path_factory.mktemp("server")) as made:
        yield made


@pytest.fixture
def nothing_left(home: Home) -> Iterator[None]:
    """Fails a test that leaves a process behind."""
    yield
    assert not home.processes()

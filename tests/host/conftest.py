"""What tests of the host share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.server import Server
from tests.standin import fast_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A fast stand-in: its steps are short against a window of two seconds."""
    with fast_server(tmp_path_factory.mktemp("server")) as made:
        yield made

"""Fixtures of this room."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.server.processes import Nursery


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def held() -> Iterator[socket.socket]:
    """A socket that listens on a port of 127.0.0.1."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as vLLM's own
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock


@pytest.fixture
def free() -> int:
    """A port on which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])

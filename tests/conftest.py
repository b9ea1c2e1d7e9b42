"""Fixtures shared by the rooms' tests."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import Home, home_in

# a shell's background job ignores SIGINT, and every process that a test starts would inherit that
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A user's surroundings, made anew for each test; processes started there end with it."""
    with home_in(tmp_path) as made:
        yield made


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]

"""Who has a port, by real sockets."""

from __future__ import annotations

import os
import socket

import psutil
import pytest

from sparktui.server.port import holder, is_free


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "", "localhost"])
def test_a_port_is_free_until_somebody_listens(host: str, free: int) -> None:
    assert is_free(host, free)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", free))
        sock.listen()
        assert not is_free(host, free)
    assert is_free(host, free)


def test_one_who_listens_everywhere_has_it_everywhere() -> None:
    with socket.socket() as sock:
        sock.bind(("0.0.0.0", 0))
        sock.listen()
        assert not is_free("127.0.0.1", sock.getsockname()[1])


def test_a_connection_that_lingers_does_not_count(held: socket.socket) -> None:
    """A server just stopped leaves its connections in TIME_WAIT for a minute."""
    port = held.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)) as client:
        served, _ = held.accept()
        served.close()  # the server closes first: its side lingers
        assert client.recv(1) == b""
    held.close()
    lingering = [c for c in psutil.net_connections("tcp") if c.laddr and c.laddr.port == port]
    assert [c.status for c in lingering] == [psutil.CONN_TIME_WAIT]
    assert is_free("127.0.0.1", port)


def test_a_host_that_is_not_ours_is_not_free(free: int) -> None:
    assert not is_free("192.0.2.1", free)


def test_the_holder_is_named(held: socket.socket, free: int) -> None:
    name = psutil.Process().name()
    assert holder(held.getsockname()[1]) == f"{name} (pid {os.getpid()})"
    assert holder(free) == ""


def test_where_it_may_not_be_known_nobody_is_named(
    held: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(kind: str) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", denied)
    assert holder(held.getsockname()[1]) == ""

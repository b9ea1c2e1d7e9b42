"""Who has a TCP port."""

from __future__ import annotations

import socket
from typing import Any

import psutil


def is_free(host: str, port: int) -> bool:
    """Whether a server could bind here now (as vLLM does: SO_REUSEADDR, so TIME_WAIT doesn't count)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def listens(port: int, pids: set[int]) -> bool:
    """Whether one of these processes has the port. A user's own sockets are always told; True where the
    system tells nothing at all."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.Error:
        return True
    found = [c.pid for c in connections if c.status == psutil.CONN_LISTEN and tuple(c.laddr)[1:2] == (port,)]
    return not found or any(pid in pids for pid in found)


def holder(port: int) -> str:
    """Name and pid of the process that listens, as far as this user may know; else an empty text."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.Error:
        return ""
    for connection in connections:
        local: tuple[Any, ...] = tuple(connection.laddr)
        if connection.status == psutil.CONN_LISTEN and local[1:2] == (port,) and connection.pid:
            try:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
            except psutil.Error:
                return f"pid {connection.pid}"
    return ""

"""The app's connection to one run: messages in, intents out, reconnecting when a host is replaced."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

from textual.message import Message

from sparktui.client.link import HostGone, Link, follow
from sparktui.rundir import RunDir, RunError
from sparktui.schema.codec import SchemaError
from sparktui.schema.messages import (
    Drive,
    EventMessage,
    Finished,
    LogLines,
    Problem,
    SnapshotMessage,
    Subscribe,
)
from sparktui.ui.messages import (
    EventsArrived,
    LinkLost,
    LogArrived,
    Refused,
    RunFinished,
    SnapshotArrived,
)


def terminal_label() -> str:
    """What the others are told about this terminal: ``pts/3``."""
    try:
        return os.ttyname(sys.__stdin__.fileno()).removeprefix("/dev/") if sys.__stdin__ else "?"
    except (OSError, ValueError):
        return f"pid {os.getpid()}"


class Follower:
    """``await run()`` until the run has finished; ``post`` gets Textual messages."""

    def __init__(self, run: RunDir, post: Callable[[Message], object]) -> None:
        self._run = run
        self._post = post
        self._link: Link | None = None
        self._asked_to_drive = False

    @property
    def number(self) -> int | None:
        """By which the host knows this terminal."""
        return self._link.number if self._link else None

    async def run(self) -> None:
        try:
            async for link, message in follow(self._run, Subscribe(log_from=0)):
                if link is not self._link:
                    self._link, self._asked_to_drive = link, False
                await self._take(message)
        except (HostGone, SchemaError, RunError) as exc:
            self._post(LinkLost(str(exc)))
        finally:
            self._link = None

    async def send(self, intent: Any) -> None:
        """An intent; without a connection it is refused."""
        try:
            if self._link is None:
                raise HostGone("no connection to the run")
            await self._link.send(intent)
        except HostGone as exc:
            self._post(Refused(str(exc)))

    async def take_over(self) -> None:
        await self.send(Drive(terminal_label()))

    async def _take(self, message: Any) -> None:
        if isinstance(message, SnapshotMessage):
            if message.snapshot.driver is None and not self._asked_to_drive:
                self._asked_to_drive = True
                await self.take_over()
            self._post(SnapshotArrived(message.snapshot))
        elif isinstance(message, EventMessage):
            self._post(EventsArrived((message.event,)))
        elif isinstance(message, LogLines):
            self._post(LogArrived(message.first, message.lines))
        elif isinstance(message, Problem):
            self._post(Refused(message.error))
        elif isinstance(message, Finished):
            self._post(RunFinished(message))
        await asyncio.sleep(0)

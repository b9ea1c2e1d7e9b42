"""Messages from the connection to the screens."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from sparktui.schema.live import Event, Snapshot
from sparktui.schema.messages import Finished


@dataclass
class SnapshotArrived(Message):
    """A newer state; an older one not yet handled is dropped."""

    snapshot: Snapshot

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, SnapshotArrived)


@dataclass
class EventsArrived(Message):
    """What happened, in order."""

    events: tuple[Event, ...]


@dataclass
class LogArrived(Message):
    """More of server.log; ``first`` counts from 1."""

    first: int
    lines: tuple[str, ...]


@dataclass
class RunFinished(Message):
    """The run is over; its host is gone."""

    finished: Finished


@dataclass
class LinkLost(Message):
    """No connection; the text says why. The next snapshot says that it is back."""

    why: str


@dataclass
class Refused(Message):
    """The host would not do what this terminal asked."""

    why: str

"""What the app asks of the rest, as a protocol: the app itself does no work and reads no profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from sparktui.rundir import RunDir
from sparktui.schema.launch import After


class CannotDo(Exception):
    """What was asked for can't be done; the text is for the user."""


@dataclass(frozen=True, slots=True)
class Card:
    """One row of the picker."""

    kind: Literal["run", "server", "container", "script", "profile", "broken"]
    key: str  # run id, URL, path or profile name
    title: str
    state: str = ""
    about: str = ""
    variants: tuple[str, ...] = ()
    command: str = ""
    last: str = ""  # last verdict
    boot: str = ""  # boot time, last seen


@dataclass(frozen=True, slots=True)
class SheetFacts:
    """What the sheet before an A/B says beside what the screen knows."""

    minutes: float | None
    after: After = "original"


class Backend(Protocol):
    """Calls may block for a second or two: the app makes them in a thread."""

    def cards(self) -> tuple[Card, ...]:
        """What runs here, then the profiles."""

    def open(self, card: Card, variant: str | None) -> RunDir:
        """Attach to what runs, or launch a profile's variant. Raises CannotDo."""

    def relaunch(self, run: RunDir) -> RunDir:
        """A new run of the same plan. Raises CannotDo."""

    def past(self, run: RunDir) -> str:
        """What earlier runs of the same profile have shown, as text. Raises CannotDo."""

    def boot_phases(self, run: RunDir) -> dict[str, dict[str, float]]:
        """Seconds of each phase in the last good boot of the same profile, by variant; in boot order."""

    def sheet(self, run: RunDir, arms: tuple[int, int], loads: tuple[int, ...]) -> SheetFacts:
        """Expected minutes from earlier boots."""

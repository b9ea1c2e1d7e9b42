"""What is wrong with a file: problems with line and column, collected so that one run reports them all."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from sparktui.schema.text import printable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the nearest of ``known``, or an empty string when none is near."""
    spellings = {name.lower().replace("-", "_"): name for name in known}
    near = difflib.get_close_matches(word[:100].lower().replace("-", "_"), spellings, n=1)
    return f"; did you mean {spellings[near[0]]!r}?" if near else ""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong. ``line`` and ``column`` count from 1; 0 is the file as a whole."""

    path: str  # empty: no file is at fault
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}: " if self.line else f"{self.path}: " if self.path else ""
        return printable(place + self.message)


class FileError(ValueError):
    """A file, or what was asked of one, is wrong. Its text has one ``file:line: message`` a line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(map(str, self.problems)))


class Place(Protocol):
    """Anything that knows where it stands in a file."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


class Report:
    """Collects the problems of one file while it is read. ``error``: what ``raise_if_any`` raises."""

    def __init__(self, path: str, error: type[FileError] = FileError) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self._error = error
        self._settled: set[tuple[int, int]] = set()

    def add(self, place: Place, message: str) -> None:
        self.at(place.line, place.column, message)

    def at(self, line: int, column: int, message: str) -> None:
        if (line, column) not in self._settled:
            self.problems.append(Problem(self.path, line, column, message))

    def settle(self, line: int, column: int, message: str) -> None:
        """Report a value that can't be read; what a reader makes of its place-holder is not reported."""
        self.at(line, column, message)
        self._settled.add((line, column))

    def raise_if_any(self) -> None:
        """Raise the error with everything found, in the order of the file."""
        if self.problems:
            raise self._error(sorted(self.problems, key=lambda p: (p.line, p.column)))

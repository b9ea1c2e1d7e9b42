"""Texts that a profile expects in the boot log (``expect:``)."""

from __future__ import annotations

from collections.abc import Iterable

from sparktui.bootlog.lines import Line
from sparktui.schema.live import Expectation


class Expectations:
    """Looks for each text, literally, in the lines' messages; the first line that has it counts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(dict.fromkeys(texts))
        self._found: dict[str, int] = {}
        self._missing = [text for text in self._texts if text]

    def read(self, line: Line) -> None:
        met = [text for text in self._missing if text in line.message]
        for text in met:
            self._found[text] = line.number
            self._missing.remove(text)

    def state(self, settled: bool) -> tuple[Expectation, ...]:
        """In the profile's order. What wasn't seen is unmet once ``settled``: the boot has ended."""
        return tuple(self._expectation(text, settled) for text in self._texts)

    def _expectation(self, text: str, settled: bool) -> Expectation:
        if text in self._found:
            return Expectation(text, True, self._found[text])
        return Expectation(text, False if settled else None)

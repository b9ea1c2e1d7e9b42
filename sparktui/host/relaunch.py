"""Whether a variant may boot again: two identical failures in a row stop it.

A boot that failed the same way twice fails a third time, and where GPU and host share their memory a loop of
failing boots can take the host down. Pure: no clock, no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_ENOUGH = 2
_SHOWN = 200  # characters of a cause in a sentence
_SAME = (  # what differs between two tellings of the same failure
    (re.compile(r"\b[a-z][a-z0-9+.-]*://\S+"), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.I), "<id>"),
    (re.compile(r"(?<![\w/])~?(?:/[\w.@+~:-]+){2,}/?"), "<path>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.I), "#"),
    (re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{12,64}\b"), "<id>"),
    (re.compile(r"\d+(?:[.,:_-]?\d+)*"), "#"),
)


def fingerprint(variant: str, cause: str) -> tuple[str, str]:
    """The same for two failures that differ only in numbers, paths, addresses and ids."""
    told = " ".join(cause.split())
    for pattern, instead in _SAME:
        told = pattern.sub(instead, told)
    return variant, told.lower()


@dataclass(frozen=True, slots=True)
class _Failed:
    mark: tuple[str, str]
    cause: str
    remedy: str
    times: int


class Relaunch:
    """One a run, or one a profile. ``earlier``: causes of failed boots by variant since its last good one,
    newest first, as earlier runs told them.
    """

    def __init__(self, earlier: Mapping[str, Iterable[str]] | None = None) -> None:
        self._last: dict[str, _Failed] = {}
        for variant, causes in (earlier or {}).items():
            for cause in reversed(tuple(causes)):
                self.failed(variant, cause)

    def failed(self, variant: str, cause: str, remedy: str = "") -> None:
        """A boot of ``variant`` failed. ``remedy``: what the rule that matches the cause advises."""
        mark, last = fingerprint(variant, cause), self._last.get(variant)
        times = last.times + 1 if last and last.mark == mark else 1
        self._last[variant] = _Failed(mark, cause, remedy, times)

    def ready(self, variant: str) -> None:
        """A boot of ``variant`` succeeded."""
        self._last.pop(variant, None)

    def blocked(self, variant: str) -> str | None:
        """Why ``variant`` must not boot now, in a sentence; None when it may."""
        last = self._last.get(variant)
        if last is None or last.times < _ENOUGH:
            return None
        times = "twice" if last.times == 2 else f"{last.times} times"
        cause = last.cause if len(last.cause) <= _SHOWN else f"{last.cause[: _SHOWN - 1].rstrip()}…"
        change = (
            last.remedy or "Change its flags or what the error names; a third try would end the same way."
        )
        return f"{variant} failed {times} in a row in the same way: {cause.rstrip('.')}. {change}"

"""The engine's periodic lines: throughput, and what speculation drafted and accepted.

``Engine 000: Avg prompt throughput: …`` is of 0.8 to 0.33, with ``N Engines Aggregated:`` for all at once;
0.5 to 0.7 name no engine and say ``Pending`` for waiting. ``SpecDecoding metrics:`` is of 0.8 to 0.33.
"""

from __future__ import annotations

import math
import re

from sparktui.bootlog.lines import Line
from sparktui.schema.bootlog import EngineStats, SpecStats

_NUMBER = r"(-?[\d.]+|nan|inf)"
_ENGINE = re.compile(
    r"^(?:Engine (?P<engine>\d+): |\d+ Engines Aggregated: )?"
    rf"Avg prompt throughput: {_NUMBER} tokens/s, Avg generation throughput: {_NUMBER} tokens/s, "
    r"Running: (\d+) reqs, (?:Swapped: \d+ reqs, )?(?:Waiting|Pending): (\d+) reqs"
)
_KV = re.compile(rf"\b\w+ KV cache usage: {_NUMBER}%")
_PREFIX = re.compile(rf", Prefix cache hit rate: {_NUMBER}%")
_PREEMPTIONS = re.compile(r"\bPreemptions: (\d+)")
_LENGTH = re.compile(rf"\bMean acceptance length: {_NUMBER}")
_ACCEPTED = re.compile(r"\bAccepted: (\d+) tokens")
_DRAFTED = re.compile(r"\bDrafted: (\d+) tokens")
_POSITIONS = re.compile(r"\bPer-position acceptance rate: ((?:-?[\d.]+|nan|inf)(?:, (?:-?[\d.]+|nan|inf))*)")
_RATE = re.compile(rf"\b[Dd]raft acceptance rate: {_NUMBER}(%?)")


def read_stats(line: Line) -> EngineStats | SpecStats | None:
    """The figures of a periodic line; None for any other. What a line leaves out or prints as nan is None.

    ``waiting`` includes deferred requests since 0.21. The ``Speculative metrics:`` line of 0.5 to 0.7 counts
    since the start, not over an interval: only its rate is read.
    """
    message = line.message
    if "Avg prompt throughput: " in message:
        return _engine(message)
    if message.startswith("SpecDecoding metrics: "):
        return _spec(message)
    if message.startswith("Speculative metrics: "):
        return SpecStats(None, 0, 0, (), _rate(message))
    return None


def _engine(message: str) -> EngineStats | None:
    found = _ENGINE.match(message)
    if found is None:
        return None
    prompt, generation = _finite(found[2]), _finite(found[3])
    if prompt is None or generation is None:
        return None
    preemptions = _PREEMPTIONS.search(message)
    return EngineStats(
        prompt_tok_s=prompt,
        generation_tok_s=generation,
        running=int(found[4]),
        waiting=int(found[5]),
        kv_usage=_share(_KV, message),
        prefix_hit_rate=_share(_PREFIX, message),
        preemptions=int(preemptions[1]) if preemptions else None,
        engine=str(int(found["engine"])) if found["engine"] else "",
    )


def _spec(message: str) -> SpecStats | None:
    accepted, drafted = _ACCEPTED.search(message), _DRAFTED.search(message)
    if accepted is None or drafted is None:
        return None
    length, positions = _LENGTH.search(message), _POSITIONS.search(message)
    return SpecStats(
        mean_acceptance_length=_finite(length[1]) if length else None,
        accepted=int(accepted[1]),
        drafted=int(drafted[1]),
        acceptance_by_position=_known(positions[1]) if positions else (),
        acceptance_rate=_rate(message),
    )


def _known(text: str) -> tuple[float, ...]:
    """Rates by position; none at all when any is not a number."""
    rates = [_finite(part) for part in text.split(", ")]
    known = tuple(rate for rate in rates if rate is not None)
    return known if len(known) == len(rates) else ()


def _rate(message: str) -> float | None:
    """0..1; 0.5 to 0.7 print it without the percent sign."""
    found = _RATE.search(message)
    value = _finite(found[1]) if found else None
    return _hundredth(value) if found is not None and found[2] else value


def _share(pattern: re.Pattern[str], message: str) -> float | None:
    found = pattern.search(message)
    return _hundredth(_finite(found[1])) if found else None


def _hundredth(percent: float | None) -> float | None:
    """0..1, with the digits that were printed."""
    return None if percent is None else round(percent / 100, 6)


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:  # such as 1.2.3
        return None
    return value if math.isfinite(value) else None

"""The Prometheus text format (0.0.4) as vLLM's prometheus_client writes it, ``_created`` gauges included."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from prometheus_client.utils import floatToGoString

_to_text: Callable[[float], str] = floatToGoString  # its module has no types
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})

_MARK = "\x00"


class Histogram:
    """Observations sorted into buckets. ``bounds``: inclusive upper ends, ascending; the rest is +Inf."""

    __slots__ = ("_counts", "bounds", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.sum = 0.0
        self._counts = [0] * (len(bounds) + 1)

    def observe(self, value: float, times: int = 1) -> None:
        """Count ``value``, ``times`` times."""
        self._counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def observe_all(self, values: Sequence[float]) -> None:
        """Count each of ``values``."""
        counts, bounds = self._counts, self.bounds
        for value in values:
            counts[bisect_left(bounds, value)] += 1
        self.sum += sum(values)

    def cumulative(self) -> list[int]:
        """Observations at or under each bound, then all of them."""
        return list(accumulate(self._counts))


@lru_cache(maxsize=4096)
def _number(value: float) -> str:
    return _to_text(value)


def label_text(labels: Mapping[str, str], **more: str) -> str:
    """``{a="1",b="2"}``, sorted by name; empty without labels."""
    pairs = sorted((dict(labels) | more).items())
    inner = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs)
    return f"{{{inner}}}" if inner else ""


def simple(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> list[str]:
    """A family of plain samples: label text and value."""
    return [*_head(name, kind, text), *(f"{name}{at} {_number(value)}" for at, value in samples)]


def created(name: str, text: str, samples: Iterable[tuple[str, float]]) -> list[str]:
    """The family that says since when each sample counts; none without samples."""
    found = list(samples)
    return simple(f"{name}_created", "gauge", text, found) if found else []


def counter(name: str, text: str, samples: list[tuple[str, float]], since: float) -> list[str]:
    """A counter's two families. ``since``: unix seconds."""
    when = ((at, since) for at, _ in samples)
    return [*simple(f"{name}_total", "counter", text, samples), *created(name, text, when)]


def histogram(
    name: str, text: str, series: Sequence[tuple[Mapping[str, str], Histogram]], since: float
) -> list[str]:
    """A histogram's two families."""
    lines = _head(name, "histogram", text)
    for labels, data in series:
        counts = data.cumulative()
        before, after = label_text(labels, le=_MARK).split(_MARK)
        for bound, count in zip((*data.bounds, float("inf")), counts, strict=True):
            lines.append(f"{name}_bucket{before}{_number(bound)}{after} {_number(count)}")
        lines += _ends(name, label_text(labels), counts[-1], data.sum)
    return lines + created(name, text, ((label_text(labels), since) for labels, _ in series))


def summary(name: str, text: str, series: list[tuple[str, int, float]], since: float) -> list[str]:
    """A summary without quantiles: label text, count and sum of each sample."""
    lines = _head(name, "summary", text)
    for at, count, total in series:
        lines += _ends(name, at, count, total)
    return lines + created(name, text, ((at, since) for at, _, _ in series))


def _ends(name: str, at: str, count: int, total: float) -> list[str]:
    return [f"{name}_count{at} {_number(count)}", f"{name}_sum{at} {_number(total)}"]


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text.translate(_HELP_ESCAPES)}", f"# TYPE {name} {kind}"]

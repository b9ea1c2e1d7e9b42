"""The HTTP families that vLLM's page ends with: prometheus-fastapi-instrumentator's, by route.

Recorded from 0.24.0, 0.27.1 and 0.32.0, which agree; taken to be the same in the other releases. Streamed
answers have no Content-Length, so their size counts as 0.
"""

from __future__ import annotations

import time

from sparktui.sim.counts.exposition import Histogram, counter, histogram, label_text, summary

# The instrumentator leaves these out.
EXCLUDED = frozenset(("/metrics", "/health", "/load", "/ping", "/version", "/server_info"))
UNKNOWN_ROUTE = "none"

_FEW = (0.1, 0.5, 1.0)
_MANY = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5),
    *(5.0, 7.5, 10.0, 30.0, 60.0),
)
_REQUESTS = "Total number of requests by method, status and handler."
_SIZE = (
    "Content length of {} requests by handler. Only value of header is respected. Otherwise ignored. "
    "No percentile calculated. "
)
_RESPONSE_SIZE = _SIZE.replace("requests", "responses")
_HIGHR = (
    "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. "
)
_DURATION = (
    "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. "
)


class HttpCounts:
    """Requests answered so far."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start afresh."""
        self._created = time.time()
        self._requests: dict[str, float] = {}
        self._sizes: dict[str, tuple[int, float]] = {}
        self._answers: dict[str, tuple[int, float]] = {}
        self._all = Histogram(_MANY)
        self._durations: dict[tuple[str, str], Histogram] = {}

    def observe(
        self, method: str, handler: str, status: int, seconds: float, asked: int = 0, answered: int = 0
    ) -> None:
        """Count one answer. ``handler``: the route, UNKNOWN_ROUTE for none; ``asked``, ``answered``: the
        Content-Length of the request and of the answer in bytes, 0 without one."""
        if handler in EXCLUDED:
            return
        at = label_text({"handler": handler, "method": method, "status": f"{status // 100}xx"})
        self._requests[at] = self._requests.get(at, 0.0) + 1
        for sizes, size in ((self._sizes, asked), (self._answers, answered)):
            route = label_text({"handler": handler})
            count, total = sizes.get(route, (0, 0.0))
            sizes[route] = (count + 1, total + size)
        self._all.observe(seconds)
        self._durations.setdefault((handler, method), Histogram(_FEW)).observe(seconds)

    def lines(self) -> list[str]:
        """The families' text."""
        since = self._created
        by_route = [({"handler": h, "method": m}, data) for (h, m), data in self._durations.items()]
        return [
            *counter("http_requests", _REQUESTS, list(self._requests.items()), since),
            *summary("http_request_size_bytes", _SIZE.format("incoming"), _rows(self._sizes), since),
            *summary(
                "http_response_size_bytes", _RESPONSE_SIZE.format("outgoing"), _rows(self._answers), since
            ),
            *histogram("http_request_duration_highr_seconds", _HIGHR, [({}, self._all)], since),
            *histogram("http_request_duration_seconds", _DURATION, by_route, since),
        ]


def _rows(sizes: dict[str, tuple[int, float]]) -> list[tuple[str, int, float]]:
    return [(route, count, total) for route, (count, total) in sizes.items()]

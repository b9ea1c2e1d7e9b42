"""Whether a server moves: from its counters while requests run, never from /health (200 during a hang)."""

from __future__ import annotations

from sparktui.metrics.page import Page

_ALL = ""  # of a page with one engine, or without engines' names


class Liveness:
    """Looks at each page of one server, oldest first.

    Every counter counts, and the KV usage: a long prompt's prefill moves no counter until its first token,
    but takes blocks with every step. Each of several engines is looked at by itself: the others may go on.
    """

    def __init__(self) -> None:
        self._states: dict[str, frozenset[object]] = {}
        self._since: dict[str, float] = {}  # by engine with running requests: when it last moved

    def read(self, page: Page) -> float | None:
        """Seconds since the counters last moved while requests run, of the engine that has stood longest;
        0.0: all move. None: nothing runs, or there are no counters. A new life begins at 0.0."""
        states, since = _states(page), {}
        for engine, state in states.items():
            if _running(page, engine):
                stands = engine in self._since and self._states[engine] == state
                since[engine] = self._since[engine] if stands else page.t
        self._states, self._since = states, since
        return page.t - min(since.values()) if since else None


def _states(page: Page) -> dict[str, frozenset[object]]:
    """What differs between two pages of an engine that moves."""
    several = len(page.running_each) > 1
    found: dict[str, list[object]] = {}
    for key, value in (*page.each().items(), *page.births.items()):
        found.setdefault(key[1] if several else _ALL, []).append((key, value))
    usage = page.kv_usage_each if len(page.kv_usage_each) == len(page.running_each) else ()
    for i, engine in enumerate(page.running_each if several else (_ALL,)):
        if engine in found:
            found[engine].append(usage[i] if usage else page.kv_usage)
    return {engine: frozenset(parts) for engine, parts in found.items()} if page.counters else {}


def _running(page: Page, engine: str) -> float:
    return (page.running or 0.0) if engine == _ALL else page.running_each.get(engine, 0.0)

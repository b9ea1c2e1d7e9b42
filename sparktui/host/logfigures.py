"""The engine's own periodic log lines as figures, for a server whose /metrics is out of reach."""

from __future__ import annotations

from typing import Any

from sparktui.schema.bootlog import EngineStats, SpecStats

FRESH_S = 30.0  # three of vLLM's intervals; an idle engine says nothing at all


class LogFigures:
    """The newest line of each engine, and the newest on speculation. Times are CLOCK_MONOTONIC."""

    def __init__(self) -> None:
        self._engines: dict[str, tuple[float, EngineStats]] = {}
        self._spec: tuple[float, SpecStats] | None = None

    def take(self, stats: EngineStats | SpecStats, t: float) -> None:
        """A line that was read at ``t``."""
        if isinstance(stats, EngineStats):
            self._engines[stats.engine] = (t, stats)
        else:
            self._spec = (t, stats)

    def figures(self, now: float) -> dict[str, Any]:
        """Fields of Figures; empty when the log has said nothing lately. KV usage is the fullest engine's."""
        fresh = [stats for t, stats in self._engines.values() if now - t < FRESH_S]
        if not fresh:
            return {}
        kv = [stats.kv_usage for stats in fresh if stats.kv_usage is not None]
        told: dict[str, Any] = {
            "output_tok_s": sum(stats.generation_tok_s for stats in fresh),
            "running": sum(stats.running for stats in fresh),
            "waiting": sum(stats.waiting for stats in fresh),
            "kv_usage": max(kv) if kv else None,
            "server_source": "log",
        }
        if self._spec is not None and now - self._spec[0] < FRESH_S:
            spec = self._spec[1]
            told |= {
                "drafted": spec.drafted > 0,
                "acceptance_rate": spec.acceptance_rate,
                "acceptance_by_position": spec.acceptance_by_position,
                "mean_acceptance_length": spec.mean_acceptance_length,
            }
        return told

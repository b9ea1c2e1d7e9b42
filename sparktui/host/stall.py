"""Tells when a server stalls while requests run, and when it moves again."""

from __future__ import annotations

from collections.abc import Callable

from sparktui.host.journal import Level

TOLD_FROM_S = 10.0


class StallWatch:
    """``tell`` gets a sentence and its level: once a stall, once its end."""

    def __init__(self, tell: Callable[[str, Level], object]) -> None:
        self._tell = tell
        self._longest = 0.0

    def look(self, stalled_s: float | None, running: int | None) -> None:
        """The newest state: for how long nothing has moved, None when the server lives or idles; how many
        run, None when nothing is known of it (any more)."""
        if stalled_s is None:
            if self._longest and running is not None:
                self._tell(f"moves again after {self._longest:.0f} s", "info")
            self._longest = 0.0
            return
        if stalled_s < TOLD_FROM_S:
            return
        if not self._longest:
            who = f"{running} requests run" if running else "requests run"
            self._tell(
                f"stalled for {stalled_s:.0f} s: {who} and no counter moves; /metrics answers", "error"
            )
        self._longest = stalled_s

"""The time of a log that is read from disk: seconds since its first time stamp.

vLLM writes ``MM-DD HH:MM:SS`` without a year, in the local time of its process; all processes of a server
share it, to about a second.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sparktui.bootlog.lines import Line

_COMMON_YEAR, _LEAP_YEAR = 2023, 2024
_HALF_YEAR = timedelta(days=180)
_SLACK_S = 60.0  # by more than that a clock was set back, and no line came late


class LogClock:
    """Feed it the lines in order. Its time never goes back, also when lines are slightly out of order.

    Midnight and new year count as what they are. After a clock that was set back it goes on from where it
    was. A day that doesn't exist (02-30) is passed over.
    """

    def __init__(self) -> None:
        self._last = ""  # the newest stamp
        self._at = 0.0  # when that was; may lie a little before ``_now``
        self._now = 0.0

    def read(self, line: Line) -> float:
        """Seconds since the first time stamp; a line without one has the time of the last that had."""
        if line.time is None or line.time == self._last:
            return self._now
        seconds = _between(self._last or line.time, line.time)
        if seconds is None:
            return self._now
        self._last = line.time
        self._at += seconds
        if self._at < self._now - _SLACK_S:
            self._at = self._now
        self._now = max(self._now, self._at)
        return self._now


def _between(earlier: str, later: str) -> float | None:
    """Seconds from one stamp to the other, negative when it lies before; None where one is no time.

    29 February makes both stamps a leap year's; without it the year is taken for a common one.
    """
    year = _LEAP_YEAR if "02-29" in (earlier[:5], later[:5]) else _COMMON_YEAR
    try:
        a, b = (datetime.strptime(f"{year}-{stamp}", "%Y-%m-%d %H:%M:%S") for stamp in (earlier, later))
        if a - b > _HALF_YEAR:
            b = b.replace(year=year + 1)
        elif b - a > _HALF_YEAR:
            b = b.replace(year=year - 1)
    except ValueError:
        return None
    return (b - a).total_seconds()

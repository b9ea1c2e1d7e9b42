"""Users' traffic apart from ours. Pure."""

from __future__ import annotations

from collections import deque

from sparktui.metrics.page import Page

SCRAPES = 3  # in a row


class Others:
    """Counts requests on the server that are not ours, page after page of one server.

    A request of ours that has just ended may still be counted there, and one that has just begun is there
    before we tell: one page proves nothing, three in a row do.
    """

    def __init__(self) -> None:
        self._above: deque[float] = deque(maxlen=SCRAPES)

    def look(self, page: Page, ours: int) -> int | None:
        """Requests of others, running and waiting; of the last three pages the middle number. 0 until three
        in a row have more than ours, None where the page doesn't tell. ``ours``: the most that we had in
        flight around this page."""
        if page.running is None:
            self._above.clear()
            return None
        above = page.running + (page.waiting or 0.0) - ours
        if above <= 0:
            self._above.clear()
            return 0
        self._above.append(above)
        return int(sorted(self._above)[SCRAPES // 2]) if len(self._above) == SCRAPES else 0

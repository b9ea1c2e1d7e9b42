"""A figure measured at a few loads, read at any load."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Curve:
    """Anchors (load, value), both above 0, loads ascending. Log-log between them and beyond the last.

    A single anchor is a constant: what was never measured under load does not move with load.
    """

    anchors: tuple[tuple[float, float], ...]

    def at(self, load: float) -> float:
        """The value at ``load``; below the first anchor, the first one's."""
        anchors = self.anchors
        if load <= anchors[0][0] or len(anchors) == 1:
            return anchors[0][1]
        after = bisect_left(anchors, (load,))
        after = min(max(after, 1), len(anchors) - 1)
        (left, low), (right, high) = anchors[after - 1], anchors[after]
        slope = math.log(high / low) / math.log(right / left)
        return low * math.exp(slope * math.log(load / left))

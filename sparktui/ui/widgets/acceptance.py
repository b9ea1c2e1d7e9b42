"""How often the drafted token at each position was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sparktui.ui.widgets.braille import is_known
from sparktui.ui.widgets.chart import figure
from sparktui.ui.widgets.rows import NOT_KNOWN, Row, RowWidget, plain

_TITLE = "Accept by position"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL = "█"
_PERCENT = 6  # cells of "100.0%"
_LEAST_BAR = 3


class AcceptanceBars(RowWidget):
    """A bar a draft position, from the first drafted token on."""

    PREFIX = "acceptance"
    ALLOW_MAXIMIZE = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {"acceptance--bar", "acceptance--position", "acceptance--note"}
    DEFAULT_CSS = """
    AcceptanceBars {
        width: 1fr;
        height: 1fr;
        min-height: 3;
        border: round $border-blurred;
        border-title-color: $foreground;
        border-subtitle-color: $text-muted;
        & > .acceptance--bar { color: $accent; }
        & > .acceptance--position { color: $text-muted; }
        & > .acceptance--note { color: $text-muted; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._shares: tuple[float, ...] = ()
        self._state = ""
        self._graphs = ""
        self._notes: tuple[str, ...] = ()
        self.title(_TITLE)

    def show(
        self,
        shares: Sequence[float],
        *,
        mean_length: float | None,
        k: int | None,
        state: str = "",
        graphs: str = "",
        source: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        """``shares`` 0..1 by draft position; ``mean_length`` tokens a step of at most ``k`` + 1.

        A ``state`` ("speculation off", "nothing drafted") stands in place of bars; ``graphs``, on the last
        row, says which CUDA graphs the steps ran in; ``source`` where the figures come from, if that is
        not /metrics.
        """
        state = plain(state)
        length = "" if state else mean_length_text(mean_length, k)
        if length and source:
            length = f"{length.removeprefix('mean ')} · {plain(source)}"
        self.title(_TITLE, length)
        new = (tuple(shares), state, plain(graphs), tuple(plain(note) for note in notes))
        if new != (self._shares, self._state, self._graphs, self._notes):
            self._shares, self._state, self._graphs, self._notes = new
            self.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        last: list[Row] = [[(self._graphs, "note")]] if self._graphs and height > 1 else []
        room = height - len(last)
        if self._state or not self._shares:
            rows: list[Row] = [[(self._state or "not enough data", "note")]]
        else:
            rows = acceptance_rows(self._shares, width, room)
        below: list[Row] = [[(note, "note")] for note in self._notes[: max(0, room - len(rows))]]
        return rows + [[]] * (room - len(rows) - len(below)) + below + last


def mean_length_text(mean_length: float | None, k: int | None) -> str:
    """``mean length 2.61 of 4``: a step yields its k drafted tokens at most, and one of the model's own."""
    if not is_known(mean_length):
        return ""
    return f"mean length {figure(mean_length)}" + ("" if k is None else f" of {k + 1}")


def acceptance_rows(shares: Sequence[float], width: int, height: int) -> list[Row]:
    """``1 ████████▌   83.0%`` for each position; what has no row is counted on the last one."""
    if len(shares) > height > 1:
        left_out = len(shares) - (height - 1)
        return [*acceptance_rows(shares[: height - 1], width, height), [(f"… {left_out} more", "note")]]
    digits = len(str(len(shares)))
    room = width - digits - _PERCENT - 2
    return [
        [
            (f"{position:>{digits}} ", "position"),
            *([(bar(share, room) + " ", "bar")] if room >= _LEAST_BAR else []),
            (_percent(share), ""),
        ]
        for position, share in enumerate(shares[:height], 1)
    ]


def bar(share: float, width: int) -> str:
    """``share`` of ``width`` cells, to an eighth of a cell, padded to ``width``."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8) if is_known(share) else 0
    full, rest = divmod(eighths, 8)
    return (_FULL * full + _EIGHTHS[rest] * (rest > 0)).ljust(width)


def _percent(share: float) -> str:
    return (f"{share:.1%}" if is_known(share) else NOT_KNOWN).rjust(_PERCENT)

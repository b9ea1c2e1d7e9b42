"""How many streams the load asks for: one row with stops, the user's wish beside what is so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from sparktui.ui.widgets.rows import plain

TOP = 256  # the last stop, unless the server runs more sequences at once
LABEL = " Load "
_LEAST_TRACK = 15  # cells; below that the words beside the track get shorter
_PARTS = {"━": "filled", "●": "knob", "○": "asked", "╌": "queues", "─": "rest", "├": "rest", "┤": "rest"}


@dataclass(frozen=True, slots=True)
class Load:
    """What is so: streams asked for, requests in flight, sequences the server runs, why keys are off, and
    what a request is like."""

    asked: int = 0
    in_flight: int = 0
    running: int | None = None  # None: not known
    locked: str = ""
    workload: str = ""  # chat 512→256


def stops_for(max_num_seqs: int | None) -> tuple[int, ...]:
    """0, the powers of two up to 256, or up to ``max_num_seqs`` where that is more, and itself."""
    limit = max_num_seqs or TOP
    stops, stop = {0, limit}, 1
    while stop <= max(TOP, limit):
        stops.add(stop)
        stop *= 2
    return tuple(sorted(stops))


def nearest(stops: Sequence[int], concurrency: int) -> int:
    """Index of the highest stop that is not above ``concurrency``."""
    return max((index for index, stop in enumerate(stops) if stop <= concurrency), default=0)


def neighbour(stops: Sequence[int], concurrency: int, step: int) -> int:
    """The next stop above or below; ``concurrency`` need not be a stop."""
    if step > 0:
        return next((stop for stop in stops if stop > concurrency), stops[-1])
    return next((stop for stop in reversed(stops) if stop < concurrency), stops[0])


def track(
    width: int, stops: Sequence[int], index: int, limit: int | None = None, asked: int | None = None
) -> str:
    """``├━━●──╌╌┤``: the knob at stop ``index``; dashed beyond the value ``limit``, where requests queue.

    ``asked``: index of the stop that is in force, drawn as ○ where the knob isn't.
    """
    inner = max(1, width - 2)
    last = max(1, len(stops) - 1)
    at = [round(i * (inner - 1) / last) for i in range(len(stops))]
    edge = at[nearest(stops, limit)] if limit is not None else inner
    knob = at[index]
    cells = ["━" if x < knob else "─" if x <= edge else "╌" for x in range(inner)]
    if asked is not None:
        cells[at[asked]] = "○"
    cells[knob] = "●"
    return f"├{''.join(cells)}┤"


def stop_at(x: int, width: int, stops: Sequence[int]) -> int:
    """The stop nearest to cell ``x`` of a track of ``width`` cells; beyond its ends the end."""
    share = (x - 1) / max(1, width - 3)
    return stops[round(min(1.0, max(0.0, share)) * (len(stops) - 1))]


def words(width: int, now: Load, wish: int, top: int) -> str:
    """What stands right of the track: as much as leaves the track room, padded so that it keeps its place.

    ``top`` is the highest concurrency there can be.
    """
    room = width - len(LABEL) - _LEAST_TRACK - 2
    texts = _sayings(now, wish)
    most = _sayings(Load(top, top, top, now.locked, now.workload), top if now.locked else top - 1)
    level = next((i for i, text in enumerate(most) if cell_len(text) <= room), len(most) - 1)
    return texts[level] + " " * max(0, cell_len(most[level]) - cell_len(texts[level]))


def _sayings(now: Load, wish: int) -> list[str]:
    """From all of it to the least."""
    change = f"{now.asked} → {wish} asked" if wish != now.asked else f"{now.asked} asked"
    flight = f"{now.in_flight} in flight"
    runs = f"{'—' if now.running is None else now.running} running"
    shut = [f"■ {now.locked}"] if now.locked else []
    kind = [now.workload] if now.workload else []
    choices = (
        [change, flight, runs, *kind, *shut],
        [change, flight, *(kind or [runs]), *shut],
        [change, flight, *shut],
        [change, *shut],
        [change],
    )
    return [" · ".join(choice) for choice in choices]


def _key(key: str, action: str, label: str, name: str, tooltip: str, show: bool = False) -> Binding:
    return Binding(key, action, label, show=show, id=f"load.{name}", tooltip=tooltip)


class LoadSlider(Widget, can_focus=True):
    """Picks a concurrency by key, wheel or drag; tells each change at once, its owner may wait for more."""

    BINDINGS: ClassVar[list[BindingType]] = [
        _key("h,left", "step(-1)", "Less load", "less", "One stop less", show=True),
        _key("l,right", "step(1)", "More load", "more", "One stop more", show=True),
        _key("0,home", "set_idle", "Idle", "idle", "No load: what runs is finished"),
        _key("end", "full", "Full load", "full", "max_num_seqs: the most the server runs at once"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"load-slider--{name}" for name in ("text", "filled", "knob", "asked", "rest", "queues", "locked")),
    }
    DEFAULT_CSS = """
    LoadSlider {
        height: 1; color: $foreground;
        & .load-slider--text { color: $foreground; }
        & .load-slider--filled { color: $accent; }
        & .load-slider--knob { color: $accent; text-style: bold; }
        & .load-slider--asked { color: $foreground; }
        & .load-slider--rest { color: $text-muted; }
        & .load-slider--queues { color: $text-disabled; }
        & .load-slider--locked { color: $text-warning; }
        &:focus { background: $boost; }
        &:focus .load-slider--knob { text-style: bold reverse; }
    }
    """

    @dataclass
    class Changed(Message):
        """The user wishes another load; follows every stop at once, the last one counts.

        Attributes:
            concurrency: streams wanted; 0 is idle.
        """

        concurrency: int

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, LoadSlider.Changed)

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._stops = stops_for(None)
        self._limit: int | None = None
        self._shown = Load()
        self._wish: int | None = None
        self._dragging = False
        self._row: tuple[int, Strip] | None = None  # width it was made for

    @property
    def stops(self) -> tuple[int, ...]:
        """The concurrencies that can be picked."""
        return self._stops

    @property
    def concurrency(self) -> int:
        """What the user wishes, or else what is asked for."""
        return self._shown.asked if self._wish is None else self._wish

    @property
    def locked(self) -> bool:
        """Whether keys and mouse are off."""
        return bool(self._shown.locked)

    def configure(self, max_num_seqs: int | None) -> None:
        """The server's ``max_num_seqs``; None: not known, nothing is drawn as queueing."""
        if max_num_seqs != self._limit:
            self._limit = max_num_seqs
            self._stops = stops_for(max_num_seqs)
            self._redraw()

    def show(
        self, asked: int, in_flight: int, running: int | None, *, locked: str = "", workload: str = ""
    ) -> None:
        """What is so: streams asked for, requests in flight, sequences the server runs (None: not known).

        ``locked``: why the load can't be changed now, as in "locked while measuring"; ``workload``: what is
        sent, with its lengths.
        """
        shown = Load(asked, in_flight, running, locked, plain(workload))
        wish = None if locked or self._wish == asked else self._wish
        if (shown, wish) != (self._shown, self._wish):
            self._shown, self._wish = shown, wish
            self._redraw()
        if locked and self._dragging:
            self._let_go()

    def step(self, step: int) -> None:
        """One stop more (1) or less (-1)."""
        self._ask(neighbour(self._stops, self.concurrency, step))

    def set_idle(self) -> None:
        """No load."""
        self._ask(0)

    def action_step(self, step: int) -> None:
        """A stop to either side."""
        self.step(step)

    def action_set_idle(self) -> None:
        """No load."""
        self.set_idle()

    def action_full(self) -> None:
        """As much as the server runs at once, or the last stop where that isn't known."""
        self._ask(self._limit or self._stops[-1])

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y:
            return Strip.blank(width, self.rich_style)
        if self._row is None or self._row[0] != width:
            self._row = width, self._drawn(width)
        return self._row[1]

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._row = None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        start, width = len(LABEL), self._track_width()
        if start <= event.x < start + width and not self.locked:
            self._dragging = True
            self.capture_mouse()
            self._pick(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            self._pick(event.x)

    def on_mouse_up(self) -> None:
        if self._dragging:
            self._let_go()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.step(1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.step(-1)

    def _let_go(self) -> None:
        self._dragging = False
        self.release_mouse()

    def _pick(self, x: int) -> None:
        self._ask(stop_at(x - len(LABEL), self._track_width(), self._stops))

    def _ask(self, concurrency: int) -> None:
        if self.locked or concurrency == self.concurrency:
            return
        self._wish = concurrency if concurrency != self._shown.asked else None
        self._redraw()
        self.post_message(self.Changed(concurrency))

    def _redraw(self) -> None:
        self._row = None
        self.refresh()

    def _words(self, width: int) -> str:
        return words(width, self._shown, self.concurrency, self._stops[-1])

    def _track_width(self) -> int:
        width = self.size.width
        return max(3, width - len(LABEL) - cell_len(self._words(width)) - 2)

    def _drawn(self, width: int) -> Strip:
        text, asked = self._words(width), None
        if self._wish is not None:
            asked = nearest(self._stops, self._shown.asked)
        line = track(
            self._track_width(), self._stops, nearest(self._stops, self.concurrency), self._limit, asked
        )
        parts = [(LABEL, "text")]
        parts += [("".join(run), part) for part, run in groupby(line, lambda cell: _PARTS[cell])]
        before, shut, after = text.partition("■")
        parts += [(f" {before}", "text"), (f"{shut}{after} ", "locked")]
        style = self.get_component_rich_style
        strip = Strip([Segment(part, style(f"load-slider--{name}")) for part, name in parts])
        return strip.adjust_cell_length(width, self.rich_style)

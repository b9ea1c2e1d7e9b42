"""The boot in one line: what is done, where it is, what is still to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.geometry import Size

from sparktui.schema.live import BootPhase, Silence
from sparktui.ui.widgets.rows import Row, RowWidget, plain

_JOIN = " ─ "
_CUT = "…"
_MOST_ROWS = 2
_DONE_KEPT = 2  # phases before the current one that outlast the ones to come when room is short
_OVER = ("failed", "lost", "stopped", "stopping")

Item = tuple[str, str]
"""Text and part ("done", "current", "failed", "todo") of one phase."""

Quiet = tuple[str, str, str]
"""A silence: how long, why, compared with before."""


class Phases(RowWidget):
    """Boot phases on one row, or two; a row more while the server is silent."""

    PREFIX = "phases"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "phases--done",
        "phases--current",
        "phases--failed",
        "phases--todo",
        "phases--quiet",
        "phases--join",
    }
    DEFAULT_CSS = """
    Phases {
        width: 1fr;
        height: auto;
        max-height: 3;
        & > .phases--done { color: $success; }
        & > .phases--current { color: $accent; text-style: bold; }
        & > .phases--failed { color: $error; text-style: bold; }
        & > .phases--todo { color: $text-muted; }
        & > .phases--quiet { color: $warning; }
        & > .phases--join { color: $text-muted; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._items: list[Item] = []
        self._current = 0
        self._quiet: Quiet | None = None

    def show(
        self,
        phases: Sequence[BootPhase],
        *,
        state: str,
        now_s: float | None = None,
        expected: Mapping[str, float] | None = None,
        silence: Silence | None = None,
    ) -> None:
        """``phases`` so far, ``state`` of the server, ``now_s`` seconds since its start.

        ``expected`` maps phase names to seconds in an earlier boot, in its order. ``silence`` is explained
        while the server boots.
        """
        items, current = phase_items(phases, state, now_s, expected or {})
        quiet = quiet_parts(silence) if silence is not None and state == "booting" else None
        if (items, current, quiet) == (self._items, self._current, self._quiet):
            return
        before = self._height(self.size.width)
        self._items, self._current, self._quiet = items, current, quiet
        if self._height(self.size.width) != before:
            self.refresh(layout=True)
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._height(width)

    def rows(self, width: int, height: int) -> list[Row]:
        last: list[Row] = [[(quiet_line(*self._quiet, width), "quiet")]] if self._quiet and height > 1 else []
        return wrap(self._items, self._current, width, min(height - len(last), _MOST_ROWS)) + last

    def _height(self, width: int) -> int:
        return len(wrap(self._items, self._current, width, _MOST_ROWS)) + bool(self._quiet)


def quiet_parts(silence: Silence) -> Quiet:
    """How long, why, and the comparison with earlier boots: a silence is never called a fault."""
    before = silence.before_s
    longer = "up to" if before is None or silence.seconds <= before else "longer than the"
    return (
        f"… quiet for {silence.seconds:.0f} s",
        plain(silence.reason).rstrip("."),
        "" if before is None else f"{longer} {before:.0f} s before",
    )


def quiet_line(how_long: str, why: str, compared: str, width: int) -> str:
    """``… quiet for 38 s: why; up to 95 s before``; where room is short the reason is cut."""
    room = width - cell_len(how_long) - 2 - (cell_len(compared) + 2) * bool(compared)
    why = _cut(why, room) if room > 1 else ""
    told = f"{how_long}: {why}" if why else how_long
    return _cut(f"{told}; {compared}" if compared else told, width)


def phases_line(
    phases: Sequence[BootPhase],
    state: str,
    now_s: float | None,
    expected: Mapping[str, float],
    width: int,
    rows: int = _MOST_ROWS,
) -> list[Row]:
    """``✔ launch 5.1 ─ ▸ weights 41 s of about 55 (62 %) ─ · compile ~18`` on at most ``rows`` rows."""
    items, current = phase_items(phases, state, now_s, expected)
    return wrap(items, current, width, rows)


def phase_items(
    phases: Sequence[BootPhase], state: str, now_s: float | None, expected: Mapping[str, float]
) -> tuple[list[Item], int]:
    """An item a phase, those to come last, and the index of the last one entered."""
    items = [
        _done(phase) if phase.seconds is not None else _unfinished(phase, state, now_s, expected)
        for phase in phases
    ]
    current = max(0, len(items) - 1)
    if state not in _OVER and state != "ready":
        items += [_coming(name, expected[name]) for name in _to_come(phases, expected)]
    return items, current


def wrap(items: Sequence[Item], current: int, width: int, rows: int) -> list[Row]:
    """The items on at most ``rows`` rows, the current one always among them.

    Room is made by leaving out, with ``…`` in place, the oldest, then those to come, then the last done.
    """
    if width <= 0 or rows <= 0 or not items:
        return []
    items = [(_cut(text, width), part) for text, part in items]
    kept = max(0, current - _DONE_KEPT)
    last = len(items) - 1
    spans = [
        *((start, last) for start in range(kept + 1)),
        *((kept, end) for end in range(last - 1, current - 1, -1)),
        *((start, current) for start in range(kept + 1, current + 1)),
    ]
    for start, end in spans:
        before, after = [(_CUT, "join")] * (start > 0), [(_CUT, "join")] * (end < last)
        found = _fill([*before, *items[start : end + 1], *after], width)
        if len(found) <= rows:
            return found
    return [[items[current]]]


def _done(phase: BootPhase) -> Item:
    if phase.name == "ready":  # an instant: its start is the duration of the boot
        return f"✔ ready in {phase.start_s:.1f} s", "done"
    return f"✔ {plain(phase.name)} {phase.seconds:.1f}", "done"


def _unfinished(phase: BootPhase, state: str, now_s: float | None, expected: Mapping[str, float]) -> Item:
    name = plain(phase.name)
    elapsed = "" if now_s is None else f"{max(0.0, now_s - phase.start_s):.0f} s"
    if state in _OVER:
        word = "stopped" if state == "stopping" else state
        return f"✖ {name} {word}" + (f" after {elapsed}" if elapsed else ""), "failed"
    about = f"of about {expected[phase.name]:.0f}" if phase.name in expected else ""
    progress = "" if phase.progress is None else f"({phase.progress * 100:.0f} %)"
    if about and not elapsed:
        about += " s"
    return " ".join(part for part in ("▸", name, elapsed, about, progress) if part), "current"


def _coming(name: str, seconds: float) -> Item:
    return ("· ready" if name == "ready" else f"· {plain(name)} ~{seconds:.0f}"), "todo"


def _to_come(phases: Sequence[BootPhase], expected: Mapping[str, float]) -> list[str]:
    """Expected phases after the last one entered; earlier ones that are missing were skipped."""
    names = list(expected)
    entered = {phase.name for phase in phases}
    reached = max((index for index, name in enumerate(names) if name in entered), default=-1)
    return names[reached + 1 :]


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + _CUT


def _fill(items: Sequence[Item], width: int) -> list[Row]:
    """Rows filled from the left, broken between items."""
    rows: list[Row] = []
    used = width
    for item in items:
        size = cell_len(item[0])
        if used + len(_JOIN) + size > width:
            rows.append([item])
            used = size
        else:
            rows[-1] += [(_JOIN, "join"), item]
            used += len(_JOIN) + size
    return rows

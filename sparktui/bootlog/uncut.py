"""Lines that come in pieces: states of a progress bar, and what docker and containerd cut."""

from __future__ import annotations

from sparktui.bootlog.text import strip_controls

LINE_LIMIT = 64 * 1024  # bytes kept of one line; the rest is counted and dropped


class Rewritten:
    """One line of a byte stream. Of what carriage returns rewrote, the first and the last state are kept.

    A state that is blank is none. Each keeps ``LINE_LIMIT`` bytes.
    """

    __slots__ = ("_cut", "_kept", "_last", "_last_cut", "first", "length", "returned", "returns")

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = 0
        self._last = ""
        self._last_cut = 0
        self.first = ""
        self.length = 0  # bytes
        self.returned = False
        self.returns = 0  # at the end

    def add(self, data: bytes) -> None:
        """More bytes, without a line end."""
        if not data:
            return
        self.length += len(data)
        first, *rest = data.split(b"\r")
        self._append(first)
        for state in rest:
            self._end_state()
            self._append(state)

    @property
    def state(self) -> str:
        """What the line shows now, without control characters."""
        text = strip_controls(self._kept.decode("utf-8", "replace"))
        return with_dropped(text, self._cut) if text.strip() else with_dropped(self._last, self._last_cut)

    def end(self) -> tuple[str, str, int]:
        """The first and the last state, and how many bytes the last one had more than were kept."""
        text = strip_controls(self._kept.decode("utf-8", "replace"))
        if text.strip() or not self._last:
            return self.first or text, text, self._cut
        return self.first, self._last, self._last_cut

    def _append(self, data: bytes) -> None:
        if data:
            room = LINE_LIMIT - len(self._kept)
            self._kept += data[:room]
            self._cut += max(0, len(data) - room)
            self.returns = 0

    def _end_state(self) -> None:
        text = strip_controls(self._kept.decode("utf-8", "replace"))
        if text.strip():
            self.first = self.first or text
            self._last, self._last_cut = text, self._cut
        self._kept.clear()
        self._cut = 0
        self.returned = True
        self.returns += 1


class Pieces:
    """A line put together again. ``LINE_LIMIT`` characters of it are kept."""

    __slots__ = ("dropped", "text")

    def __init__(self) -> None:
        self.text = ""
        self.dropped = 0

    def add(self, text: str, dropped: int = 0) -> None:
        whole = self.text + text
        if len(whole) > LINE_LIMIT and "\r" in whole:
            first, last, _ = collapsed(whole)
            whole = f"{first}\r{last}"
        self.text = whole[:LINE_LIMIT]
        self.dropped += dropped + len(whole) - len(self.text)


def collapsed(text: str) -> tuple[str, str, int]:
    """First and last state of a line that has come whole, and how many carriage returns it ends in."""
    states = [strip_controls(state) for state in text.split("\r")]
    shown = [state for state in states if state.strip()] or states[-1:]
    return shown[0], shown[-1], len(text) - len(text.rstrip("\r"))


def with_dropped(text: str, dropped: int) -> str:
    """A text that says how many of its bytes were dropped."""
    return f"{text} … [{dropped} bytes dropped]" if dropped else text

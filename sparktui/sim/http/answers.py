"""What an answer says. The text depends on its seed alone, so that greedy answers to one prompt agree."""

from __future__ import annotations

import itertools
import zlib
from dataclasses import dataclass, field

_TEXT = (
    "the a model token step batch cache draft of and in to is for with runs reads keeps each every one two "
    "new old fast slow small large graph kernel layer head block page queue time rate answer text, line."
)
_WORDS = tuple(f" {word}" for word in _TEXT.split())
_THOUGHT_TOKENS = (96, 64)  # at least, and how much the seed may add; nobody published theirs


@dataclass(frozen=True, slots=True)
class StopStrings:
    """Strings that end an answer. ``after``: tokens before which none counts (min_tokens)."""

    strings: tuple[str, ...] = ()
    after: int = 0
    shown: bool = False  # include_stop_str_in_output


@dataclass(frozen=True, slots=True)
class Script:
    """One answer's words. ``thought``: leading tokens of reasoning; the last of them closes it, wordless."""

    seed: int
    thought: int = 0
    stop_at: int | None = None  # tokens when a stop string is complete
    stop_reason: str | None = None
    _text: str = ""  # only with stop strings: everything up to where it stops
    _ends: tuple[int, ...] = field(default=(), repr=False)  # length of the text after each token
    _held: int = 0  # characters held back while a stop string might still begin in them

    def say(self, start: int, end: int, *, ended: bool) -> tuple[str, str]:
        """Reasoning and content of tokens ``start`` to ``end``. ``ended``: no token follows."""
        if end <= self.thought:
            return self._between(start, end, ended), ""
        if start >= self.thought:
            return "", self._between(start, end, ended)
        return self._between(start, self.thought, False), self._between(self.thought, end, ended)

    def _between(self, start: int, end: int, ended: bool) -> str:
        if self._ends:
            return self._text[self._shown(start, False) : self._shown(end, ended)]
        return "".join([word(self.seed, i) for i in range(start, end) if i + 1 != self.thought])

    def _shown(self, tokens: int, ended: bool) -> int:
        """Characters told once ``tokens`` are out."""
        length = self._ends[min(tokens, len(self._ends) - 1)]
        return min(len(self._text), length if ended else max(0, length - self._held))


def word(seed: int, index: int) -> str:
    """The text of one token."""
    return _WORDS[zlib.crc32(b"%d %d" % (seed, index)) % len(_WORDS)]


def thought_tokens(seed: int) -> int:
    """How many tokens an answer thinks, its closing marker included."""
    least, more = _THOUGHT_TOKENS
    return least + seed % more


def script(seed: int, thought: int, max_tokens: int, stop: StopStrings) -> Script:
    """The words of an answer of at most ``max_tokens``."""
    if not stop.strings:
        return Script(seed, thought)
    words = ["" if i + 1 == thought else word(seed, i) for i in range(max_tokens)]
    text, ends = "".join(words), (0, *itertools.accumulate(map(len, words)))
    found = [_first(text, ends, string, stop.after) for string in stop.strings]
    held = max(map(len, stop.strings)) - 1
    first = min((item for item in found if item is not None), default=None)
    if first is None:
        return Script(seed, thought, None, None, text, ends, held)
    at, begin, string = first
    cut = begin + len(string) if stop.shown else begin
    return Script(seed, thought, at, string, text[:cut], ends[: at + 1], held)


def _first(text: str, ends: tuple[int, ...], string: str, after: int) -> tuple[int, int, str] | None:
    """Tokens when ``string`` is first complete, where it begins, and itself."""
    begin = text.find(string, max(0, ends[min(after, len(ends) - 1)] - len(string) + 1) if after else 0)
    if begin < 0:
        return None
    at = next(i for i, end in enumerate(ends) if end >= begin + len(string))
    return at, begin, string

"""What an answer says. The text depends on its seed alone, so that greedy answers to one prompt agree."""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import itemgetter

_TEXT = (
    "the a model token step batch cache draft of and in to is for with runs reads keeps each every one two "
    "new old fast slow small large graph kernel layer head block page queue time rate answer text, line."
)
_WORDS = tuple(f" {word}" for word in _TEXT.split())
_THOUGHT_TOKENS = (96, 64)  # at least, and how much the seed may add; nobody published theirs
AHEAD_TOKENS = 256  # how far beyond what is out stop strings are looked for: more than one step gives


@dataclass(frozen=True, slots=True)
class StopStrings:
    """Strings that end an answer. ``after``: tokens before which none counts (min_tokens)."""

    strings: tuple[str, ...] = ()
    after: int = 0
    shown: bool = False  # include_stop_str_in_output


@dataclass(slots=True, eq=False)
class Script:
    """One answer's words. ``thought``: leading tokens of reasoning; the last of them closes it, wordless.

    With stop strings the text is put together as it is needed, a little ahead: who reads on calls ``look``.
    """

    seed: int
    thought: int = 0
    stop: StopStrings = field(default_factory=StopStrings)
    most: int = 0  # tokens that the answer may have; only with stop strings
    stop_at: int | None = None  # tokens when a stop string is complete, as far as looked
    stop_reason: str | None = None
    _text: str = ""
    _ends: array[int] = field(default_factory=lambda: array("I", (0,)), repr=False)  # of each token's text
    _cut: int = 0  # characters told of an answer that a stop string ended

    def look(self, tokens: int) -> int | None:
        """Search what follows ``tokens``; ``stop_at`` when it is found by now."""
        if self.stop.strings:
            while self.stop_at is None and len(self._ends) <= min(tokens + AHEAD_TOKENS // 2, self.most):
                self._search(self._extend())
        return self.stop_at

    def say(self, start: int, end: int, *, ended: bool) -> tuple[str, str]:
        """Reasoning and content of tokens ``start`` to ``end``. ``ended``: no token follows."""
        if end <= self.thought:
            return self._between(start, end, ended), ""
        if start >= self.thought:
            return "", self._between(start, end, ended)
        return self._between(start, self.thought, False), self._between(self.thought, end, ended)

    def _between(self, start: int, end: int, ended: bool) -> str:
        if not self.stop.strings:
            return "".join(self._words(start, end))
        self.look(end)
        return self._text[self._shown(start, False) : self._shown(end, ended)]

    def _words(self, start: int, end: int) -> list[str]:
        closing = self.thought - 1
        return ["" if i == closing else word(self.seed, i) for i in range(start, end)]

    def _shown(self, tokens: int, ended: bool) -> int:
        """Characters told once ``tokens`` are out: those in which a stop string may begin are held back."""
        if self.stop_at is not None and tokens >= self.stop_at:
            return self._cut
        length = self._ends[min(tokens, len(self._ends) - 1)]
        return length if ended else max(0, length - max(map(len, self.stop.strings)) + 1)

    def _extend(self) -> int:
        """Put the next tokens' text together; how long the text was before."""
        known, before = len(self._ends) - 1, len(self._text)
        words = self._words(known, min(known + AHEAD_TOKENS, self.most))
        for piece in words:
            self._ends.append(self._ends[-1] + len(piece))
        self._text += "".join(words)
        return before

    def _search(self, searched: int) -> None:
        """Find the first stop string that is complete beyond ``searched`` characters."""
        after = self.stop.after
        if after >= len(self._ends):
            return
        bound = max(searched, self._ends[after])
        found = [(self._text.find(s, max(0, bound - len(s) + 1)), s) for s in self.stop.strings]
        complete = [(begin + len(string), string) for begin, string in found if begin >= 0]
        if complete:
            end, self.stop_reason = min(complete, key=itemgetter(0))  # of two, the one that is named first
            self.stop_at = bisect_left(self._ends, end)
            self._cut = end if self.stop.shown else end - len(self.stop_reason)


def word(seed: int, index: int) -> str:
    """The text of one token."""
    return _WORDS[zlib.crc32(b"%d %d" % (seed, index)) % len(_WORDS)]


def thought_tokens(seed: int) -> int:
    """How many tokens an answer thinks, its closing marker included."""
    least, more = _THOUGHT_TOKENS
    return least + seed % more


def script(seed: int, thought: int, max_tokens: int, stop: StopStrings) -> Script:
    """The words of an answer of at most ``max_tokens``; stop strings are looked for in its beginning."""
    if not stop.strings:
        return Script(seed, thought)
    made = Script(seed, thought, stop, max_tokens)
    made.look(0)
    return made

"""The texts that prompts are made of: real prose and real code, shipped with the package."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain
from typing import Literal

Kind = Literal["prose", "code", "system"]

# Each asks for more than any max_tokens here, so that answers hardly ever end by themselves.
_CONTINUE = (
    "Continue the following text in the same voice, in full paragraphs and at length: at least three "
    "thousand words. Do not sum it up, do not comment on it, and do not stop early."
)
INSTRUCTIONS = {
    "chat": _CONTINUE,
    "code": (
        "Write a complete Python module of about four hundred lines, with type hints, docstrings and all of "
        "its pytest tests, in the style of the fragment below. Answer with the whole source and nothing else."
    ),
    "long": (
        "Write an essay of at least three thousand words that sets out from the passage below. Use full "
        "paragraphs and no headings, and go into every detail."
    ),
    "coder": (
        "Below is a part of a Python package. Go on where it breaks off: write the rest of that module and "
        "then the whole of the next one, about six hundred lines with all of their pytest tests, in the same "
        "style. Answer with the whole source and nothing else."
    ),
    "shared-prefix": (
        "A member sends the letter below. Answer at length, in at least two thousand words, and take up "
        "every sentence of the letter."
    ),
    "repeat": _CONTINUE,
}

# For a first guess, and for servers that count nothing: what tokenizers with 32k to 200k entries make of
# these texts (tekken: 4.57, 3.57 and 4.55; Llama 2's: 4.31, 3.04 and 4.32).
CHARS_PER_TOKEN: dict[Kind, float] = {"prose": 4.4, "code": 3.3, "system": 4.4}

# What may follow an excerpt that is one to four tokens short: to nearly every tokenizer a word is one token,
# and none of these looks wrong at the place where a text breaks off.
_PROSE_PADS = (" the", " and the", " and all the", " and all of the")
PADS: dict[Kind, tuple[str, ...]] = {
    "prose": _PROSE_PADS,
    "code": (" not", " and not", " x and not", " if x and not"),
    "system": _PROSE_PADS,
}

MARKS = (",", ".", ")", " a")  # for the last token, where a word was more than one

_STARTS: dict[Kind, re.Pattern[str]] = {
    "prose": re.compile(r"(?:\A|\n\n|(?<=[.?!] ))(?=[A-Z])"),  # paragraphs and sentences
    "code": re.compile(r"(?:\A|\n\n)(?=\S)"),  # statements and definitions at the margin
    "system": re.compile(r"\A"),
}


@cache
def text(kind: Kind) -> str:
    """A whole text, without blank space at its ends."""
    return resources.files("sparktui.load").joinpath("texts", f"{kind}.txt").read_text("utf-8").strip()


@cache
def starts(kind: Kind) -> tuple[int, ...]:
    """Where an excerpt may begin: offsets in characters."""
    return tuple(found.end() for found in _STARTS[kind].finditer(text(kind)))


@dataclass(frozen=True, slots=True)
class Source:
    """A text from one of its starts on; at its end it begins again, so that it is never too short."""

    kind: Kind
    start: int = 0

    def take(self, chars: int) -> str:
        """The first so many characters."""
        whole = text(self.kind) + "\n\n"
        times = -(-(self.start + chars) // len(whole))
        return (whole * times)[self.start : self.start + chars] if chars > 0 else ""

    def border(self, near: int, low: int, high: int | None = None) -> int | None:
        """A length at which a word ends, above ``low`` and below ``high``: the nearest at or before ``near``,
        else the first after ``low``. None when there is none."""
        last = max(near, low) + _LONGEST if high is None else high - 1
        words = self.take(last + 1)
        nearest = range(min(near, last), low, -1)
        return next((at for at in chain(nearest, range(low + 1, last + 1)) if _ends_word(words, at)), None)


_LONGEST = 200  # characters from the end of a word to the next one's, blank lines and all


def _ends_word(words: str, at: int) -> bool:
    return words[at].isspace() and not words[at - 1].isspace()


def picked(kind: Kind, count: int, seed: str) -> tuple[Source, ...]:
    """So many sources that begin at places of their own, in an order that ``seed`` decides."""
    choice = random.Random(seed)
    places = list(starts(kind))
    choice.shuffle(places)
    return tuple(Source(kind, places[i % len(places)]) for i in range(count))

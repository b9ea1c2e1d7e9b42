"""Which of many literals a line contains: the cheap question that is asked before any regular expression.

A log is read at some 10 µs a line, and there are some two hundred literals. Most of them hold a word with
spaces on both sides. A line can contain such a literal only if that word is one of the line's words, which a
set knows at once; only the rest of the literals are looked for one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Generic, TypeVar

T = TypeVar("T")


class Literals(Generic[T]):
    """Items that are found by literals. An item may be given with several literals."""

    def __init__(self, pairs: Iterable[tuple[str, T]]) -> None:
        self._items: list[T] = []
        self._by_word: dict[str, list[tuple[str, int]]] = {}
        self._others: list[tuple[str, int]] = []
        known: dict[int, int] = {}
        for literal, item in pairs:
            index = known.setdefault(id(item), len(self._items))
            if index == len(self._items):
                self._items.append(item)
            word = _inner_word(literal)
            entries = self._by_word.setdefault(word, []) if word else self._others
            entries.append((literal, index))
        self._words = frozenset(self._by_word)

    def found(self, text: str) -> list[T]:
        """The items of which a literal is contained in ``text``, in the order given, each once."""
        hits = [index for literal, index in self._others if literal in text]
        words = text.split()
        if not self._words.isdisjoint(words):
            for word in self._words.intersection(words):
                hits += [index for literal, index in self._by_word[word] if literal in text]
        if not hits:
            return []
        return [self._items[index] for index in sorted(set(hits))]


@lru_cache(maxsize=4096)
def _inner_word(literal: str) -> str:
    """The longest word of a literal that has spaces on both sides; empty when there is none."""
    inner = [word for word in literal.split(" ")[1:-1] if word.split() == [word]]
    return max(inner, key=len, default="")

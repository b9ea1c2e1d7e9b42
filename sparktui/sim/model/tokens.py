"""The stand-in's tokenizer: a token is four characters, numbered as they come."""

from __future__ import annotations

from collections import OrderedDict

from sparktui.sim.model.prefix import CHARS_PER_TOKEN

SIZE = 131_072


class Vocabulary:
    """Numbers for pieces of text, and back: two pieces never share one.

    ``size``: pieces that are remembered; beyond, a new one takes the number of the one least recently used.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._numbers: OrderedDict[str, int] = OrderedDict()  # the least recently used first
        self._pieces: dict[int, str] = {}

    def encode(self, text: str) -> list[int]:
        """One number for each piece; as many as prefix.count_tokens says."""
        return [self._number(piece) for piece in pieces(text)]

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens; four made-up characters for one that stands for nothing."""
        return "".join(self._pieces.get(token, f" {token % 1000:03d}") for token in tokens)

    def _number(self, piece: str) -> int:
        token = self._numbers.get(piece)
        if token is None:
            full = len(self._numbers) >= self._size
            token = self._numbers.popitem(last=False)[1] if full else len(self._numbers)
            self._numbers[piece] = token
            self._pieces[token] = piece
        else:
            self._numbers.move_to_end(piece)
        return token


def pieces(text: str) -> list[str]:
    """``text`` cut into what a token stands for; at least one."""
    return [text[i : i + CHARS_PER_TOKEN] for i in range(0, len(text), CHARS_PER_TOKEN)] or [""]

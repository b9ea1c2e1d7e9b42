"""The stand-in's tokenizer: a token is four characters, its number a hash of them."""

from __future__ import annotations

import zlib
from collections import OrderedDict

from sparktui.sim.model.prefix import CHARS_PER_TOKEN

_SIZE = 131_072
_REMEMBERED = 65_536


class Vocabulary:
    """Numbers for pieces of text, and back for those seen of late."""

    def __init__(self) -> None:
        self._pieces: OrderedDict[int, str] = OrderedDict()

    def encode(self, text: str) -> list[int]:
        """One number for each piece; as many as prefix.count_tokens says."""
        return [self._remember(piece) for piece in pieces(text)]

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens; four made-up characters for one that was never encoded."""
        return "".join(self._pieces.get(token) or f" {token % 1000:03d}" for token in tokens)

    def _remember(self, piece: str) -> int:
        token = zlib.crc32(piece.encode()) % _SIZE
        self._pieces[token] = piece
        self._pieces.move_to_end(token)
        if len(self._pieces) > _REMEMBERED:
            self._pieces.popitem(last=False)
        return token


def pieces(text: str) -> list[str]:
    """``text`` cut into what a token stands for; at least one."""
    return [text[i : i + CHARS_PER_TOKEN] for i in range(0, len(text), CHARS_PER_TOKEN)] or [""]

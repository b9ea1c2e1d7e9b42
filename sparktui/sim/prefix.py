"""Prefix cache: which leading tokens of a prompt were seen before, in vLLM's blocks of 16 tokens."""

from __future__ import annotations

from collections import OrderedDict

BLOCK_TOKENS = 16
CHARS_PER_TOKEN = 4
_BLOCK_CHARS = BLOCK_TOKENS * CHARS_PER_TOKEN


def count_tokens(text: str) -> int:
    """About one token for four characters; at least 1."""
    return max(1, -(-len(text) // CHARS_PER_TOKEN))


class PrefixCache:
    """Least recently used blocks, each keyed by the whole prompt up to its end."""

    def __init__(self, capacity_tokens: int) -> None:
        self._capacity = max(1, capacity_tokens // BLOCK_TOKENS)
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def match(self, text: str) -> int:
        """Cached leading tokens of ``text``, which is cached from now on. The last token is never cached."""
        cached, leading, key = 0, True, 0
        limit = count_tokens(text) - 1
        for start in range(0, len(text) - _BLOCK_CHARS + 1, _BLOCK_CHARS):
            key = hash((key, text[start : start + _BLOCK_CHARS]))
            leading = leading and key in self._blocks
            if leading and cached + BLOCK_TOKENS <= limit:
                cached += BLOCK_TOKENS
            self._blocks[key] = None
            self._blocks.move_to_end(key)
        while len(self._blocks) > self._capacity:
            self._blocks.popitem(last=False)
        return cached

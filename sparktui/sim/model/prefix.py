"""Text to tokens, and to keys of its blocks: what the prefix cache finds a prompt's beginning by."""

from __future__ import annotations

from sparktui.sim.model.kv import BLOCK_TOKENS

__all__ = ["BLOCK_TOKENS", "block_keys", "count_tokens"]

CHARS_PER_TOKEN = 4
_BLOCK_CHARS = BLOCK_TOKENS * CHARS_PER_TOKEN


def count_tokens(text: str) -> int:
    """About one token for four characters; at least 1."""
    return max(1, -(-len(text) // CHARS_PER_TOKEN))


def block_keys(text: str) -> tuple[int, ...]:
    """A key for each full block of ``text``, made of the whole text up to the block's end."""
    keys, key = [], 0
    for start in range(0, len(text) - _BLOCK_CHARS + 1, _BLOCK_CHARS):
        key = hash((key, text[start : start + _BLOCK_CHARS]))
        keys.append(key)
    return tuple(keys)

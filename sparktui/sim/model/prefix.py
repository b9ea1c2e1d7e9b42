"""Text to tokens, and to keys of its blocks: what the prefix cache finds a prompt's beginning by."""

from __future__ import annotations

from sparktui.sim.model.kv import BLOCK_TOKENS

__all__ = ["BLOCK_TOKENS", "block_keys", "count_tokens"]

CHARS_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """About one token for four characters; at least 1."""
    return max(1, -(-len(text) // CHARS_PER_TOKEN))


def block_keys(prompt: str | tuple[int, ...]) -> tuple[int, ...]:
    """A key for each full block of a text or of token ids, made of all of it up to the block's end."""
    size = BLOCK_TOKENS * CHARS_PER_TOKEN if isinstance(prompt, str) else BLOCK_TOKENS
    keys, key = [], 0
    for start in range(0, len(prompt) - size + 1, size):
        key = hash((key, prompt[start : start + size]))
        keys.append(key)
    return tuple(keys)

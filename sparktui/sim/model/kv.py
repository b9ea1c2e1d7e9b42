"""The KV cache in vLLM's blocks: who holds how many, and which prompt blocks can be found again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

BLOCK_TOKENS = 16


class KvBlocks:
    """Counts blocks. A prompt block has a key: holders share it, and idle ones stay until room is needed."""

    def __init__(self, tokens: int) -> None:
        self.total = max(1, tokens // BLOCK_TOKENS)
        self.used = 0
        self._holders: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()  # the least recently used first

    @property
    def free(self) -> int:
        """Blocks that can be taken; idle cached ones are among them."""
        return self.total - self.used

    @property
    def usage(self) -> float:
        """Share in use, 0 to 1."""
        return min(1.0, self.used / self.total)

    def hits(self, keys: Sequence[int]) -> int:
        """How many leading keys are cached."""
        count = 0
        for key in keys:
            if key not in self._holders and key not in self._idle:
                break
            count += 1
        return count

    def idle(self, keys: Sequence[int]) -> int:
        """How many of these cached blocks nobody holds."""
        return sum(key in self._idle for key in keys)

    def take(self, count: int) -> None:
        """Use ``count`` more blocks, forgetting idle ones where there is no other room."""
        self.used += count
        while self._idle and len(self._idle) > self.total - self.used:
            self._idle.popitem(last=False)

    def give(self, count: int) -> None:
        """Return blocks that nobody can find again."""
        self.used -= count

    def hold(self, keys: Sequence[int]) -> None:
        """Share cached blocks: those found by ``hits``."""
        for key in keys:
            if key in self._idle:
                del self._idle[key]
                self._holders[key] = 1
                self.take(1)
            else:
                self._holders[key] += 1

    def publish(self, key: int) -> bool:
        """Make a computed block, already taken, findable. False: another one is in use under this key."""
        if key in self._holders:
            return False
        self._idle.pop(key, None)
        self._holders[key] = 1
        return True

    def drop(self, keys: Sequence[int]) -> None:
        """Stop holding; the prompt's end becomes idle first, so that its beginning is kept longest."""
        for key in reversed(keys):
            left = self._holders[key] - 1
            if left:
                self._holders[key] = left
                continue
            del self._holders[key]
            self._idle[key] = None
            self.used -= 1

    def forget(self) -> bool:
        """Forget every cached prompt, as vLLM does: only while nobody holds a block. False otherwise."""
        if self.used:
            return False
        self._idle.clear()
        return True

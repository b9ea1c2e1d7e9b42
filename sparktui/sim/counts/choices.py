"""Requests with several choices: vLLM counts some figures once for all of them, as the last one ends.

After ParentRequest in vllm/v1/engine/parallel_sampling.py, the same in 0.27.1 and 0.32.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparktui.sim.model.requests import Request


@dataclass(slots=True, eq=False)
class Parent:
    """What the choices of one prompt share. ``n``: how many there are; ``left``: how many have not ended."""

    n: int
    left: int
    longest: int = 0  # tokens of the longest choice that has ended

    @classmethod
    def of(cls, n: int) -> Parent:
        return cls(n, n)

    def end(self, tokens: int) -> bool:
        """One choice ended with so many tokens. Whether it was the last."""
        self.left -= 1
        self.longest = max(self.longest, tokens)
        return not self.left


@dataclass(slots=True, eq=False, kw_only=True)
class Choice(Request):
    """One of several answers to a prompt."""

    parent: Parent


def whole_requests(finished: list[Request]) -> Iterator[tuple[int, int]]:
    """``n`` and the longest choice's tokens of every request that is complete with these."""
    for request in finished:
        if not isinstance(request, Choice):
            yield 1, request.generated
        elif request.parent.end(request.generated):
            yield request.parent.n, request.parent.longest

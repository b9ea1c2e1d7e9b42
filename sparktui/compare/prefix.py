"""Whether a server's prefix cache serves: from the answers to one request sent three times. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from sparktui.schema.records import PrefixProbe, ProbeAnswer

TIMES = 3
_SERVES_FROM = 0.1  # of the prompt: under that only what all chats have in common was found
_FALLEN = 0.8  # a TTFT above this share of the first has not moved
_ON, _OFF = "prefix caching is on and of no use here", "prefix caching is off"


def judge(answers: Sequence[ProbeAnswer], problem: str = "", engines: int = 1) -> PrefixProbe:
    """The call with its sentence. ``problem``: why the answers prove nothing, whatever they say. ``engines``:
    of the server, each with a cache of its own.

    The counters decide where they are known, else ``cached_tokens``; TTFT never does, because a first
    request may wait for a kernel to be compiled.
    """
    told = tuple(answers)
    problem = problem or _incomplete(told)
    if problem:
        return PrefixProbe("not known", f"whether the prefix cache serves is not known: {problem}", told)
    first, *again = told
    share = _share(again)
    if (_share([first]) or 0.0) >= _SERVES_FROM:
        why = "a prompt that was never sent before hit the cache: others' requests are in the counters"
        return judge(told, why)
    if share is not None and share >= _SERVES_FROM:
        return PrefixProbe("works", _works(first, again), told)
    queries = [answer.queries for answer in told]
    counted = [asked for asked in queries if asked is not None]
    if len(counted) < TIMES:
        return judge(told, _untold(told))
    if sum(counted) == 0:
        text = f"no token of the same prompt three times was looked up and {_ttft(first, again)}: {_OFF}"
        return PrefixProbe("off", text, told)
    if engines > 1:
        return judge(told, f"the same prompt may have gone to another of {engines} engines each time")
    hits = sum(answer.hits or 0.0 for answer in told)
    text = f"{hits:,.0f} of {sum(counted):,.0f} queried tokens hit and {_ttft(first, again)}: {_ON}"
    return PrefixProbe("useless", f"the same prompt three times: {text}", told)


def _incomplete(answers: Sequence[ProbeAnswer]) -> str:
    if len(answers) < TIMES:
        return f"{len(answers)} of {TIMES} requests were answered"
    if any(answer.ttft_ms is None for answer in answers):
        return "an answer had no text"
    return ""


def _untold(answers: Sequence[ProbeAnswer]) -> str:
    if all(answer.cached_tokens is not None for answer in answers):
        return (
            "no token came from the cache, and without /metrics a cache that is off looks like one of no use"
        )
    return (
        "/metrics has no prefix cache counters, and the answers do not say cached_tokens "
        "(--enable-prompt-tokens-details)"
    )


def _taken(answer: ProbeAnswer) -> float | None:
    return answer.cached_tokens if answer.hits is None else answer.hits


def _asked(answer: ProbeAnswer) -> float | None:
    """Tokens that could have come from the cache."""
    return answer.queries or answer.prompt_tokens


def _share(answers: Sequence[ProbeAnswer]) -> float | None:
    taken = [_taken(answer) for answer in answers]
    asked = [_asked(answer) for answer in answers]
    if None in taken or not all(asked):
        return None
    return sum(t for t in taken if t is not None) / sum(a for a in asked if a is not None)


def _works(first: ProbeAnswer, again: Sequence[ProbeAnswer]) -> str:
    took = [f"{_taken(answer):,.0f}" for answer in again]
    of = f"of {_asked(first) or 0:,.0f} prompt tokens from the cache, {_ttft(first, again)}"
    if len(set(took)) == 1:
        return f"the prefix cache works: the 2nd and 3rd took {took[0]} {of}"
    return f"the prefix cache works: the 2nd took {took[0]} and the 3rd {took[1]} {of}"


def _ttft(first: ProbeAnswer, again: Sequence[ProbeAnswer]) -> str:
    before = first.ttft_ms or 0.0
    after = statistics.fmean(answer.ttft_ms or 0.0 for answer in again)
    if after > _FALLEN * before:
        return f"TTFT stays at {after:.0f} ms"
    return f"TTFT {before:.0f} → {after:.0f} ms"

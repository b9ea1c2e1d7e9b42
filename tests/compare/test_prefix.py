"""The prefix-cache probe's call, from tables of answers."""

from __future__ import annotations

import pytest

from sparktui.compare.prefix import judge
from sparktui.schema.records import ProbeAnswer

P = 1008


def answers(
    hits: tuple[float | None, ...],
    queries: tuple[float | None, ...] = (P, P, P),
    ttft: tuple[float | None, ...] = (210.0, 41.0, 41.0),
    cached: tuple[int | None, ...] = (None, None, None),
) -> list[ProbeAnswer]:
    rows = zip(ttft, cached, hits, queries, strict=True)
    return [ProbeAnswer(t, P, c, h, q) for t, c, h, q in rows]


SLOW = (210.0, 211.0, 209.0)
NONE = (None, None, None)


@pytest.mark.parametrize(
    ("given", "call", "text"),
    [
        (
            answers((0, 992, 992)),
            "works",
            "the prefix cache works: the 2nd and 3rd took 992 of 1,008 prompt tokens from the cache, "
            "TTFT 210 → 41 ms",
        ),
        (
            answers((16, 528, 992), ttft=SLOW),
            "works",
            "the prefix cache works: the 2nd took 528 and the 3rd 992 of 1,008 prompt tokens from the cache, "
            "TTFT stays at 210 ms",
        ),
        (
            answers(NONE, NONE, cached=(0, 992, 992)),
            "works",
            "the prefix cache works: the 2nd and 3rd took 992 of 1,008 prompt tokens from the cache, "
            "TTFT 210 → 41 ms",
        ),
        (
            answers(NONE, NONE, cached=(None, 992, 992)),  # vLLM leaves a count of 0 out
            "works",
            "the prefix cache works: the 2nd and 3rd took 992 of 1,008 prompt tokens from the cache, "
            "TTFT 210 → 41 ms",
        ),
        (
            answers((0, 0, 0), ttft=SLOW),
            "useless",
            "the same prompt three times: 0 of 3,024 queried tokens hit and TTFT stays at 210 ms: prefix "
            "caching is on and of no use here",
        ),
        (
            answers((0, 16, 16), ttft=SLOW),  # what all chats begin with
            "useless",
            "the same prompt three times: 32 of 3,024 queried tokens hit and TTFT stays at 210 ms: prefix "
            "caching is on and of no use here",
        ),
        (
            answers((0, 0, 0), (0, 0, 0), ttft=(900.0, 210.0, 210.0)),  # the first compiled something
            "off",
            "no token of the same prompt three times was looked up and TTFT 900 → 210 ms: prefix caching is "
            "off",
        ),
    ],
    ids=[
        "works", "works in part", "works by the answers", "by answers without zero", "useless",
        "useless but for the template", "off",
    ],
)  # fmt: skip
def test_call(given: list[ProbeAnswer], call: str, text: str) -> None:
    found = judge(given)
    assert (found.call, found.text) == (call, text)
    assert found.answers == tuple(given)


@pytest.mark.parametrize(
    ("given", "problem", "why"),
    [
        (answers((0, 992, 992)), "others use the server", "others use the server"),
        (answers((0, 992, 992))[:2], "", "2 of 3 requests were answered"),
        (answers((0, 992, 992), ttft=(210.0, None, 41.0)), "", "an answer had no text"),
        (answers((900, 992, 992)), "", "never sent before hit the cache: others' requests"),
        (answers(NONE, NONE), "", "the answers do not say cached_tokens (--enable-prompt-tokens-details)"),
        (answers(NONE, NONE, cached=(0, 0, 0)), "", "a cache that is off looks like one of no use"),
        (answers((0, None, 992), (P, None, P)), "", "no prefix cache counters"),
    ],
    ids=["told", "too few", "no text", "hot first", "nothing tells", "zero without counters", "one missing"],
)
def test_not_known(given: list[ProbeAnswer], problem: str, why: str) -> None:
    found = judge(given, problem)
    assert found.call == "not known"
    assert found.text.startswith("whether the prefix cache serves is not known: ")
    assert why in found.text


def test_a_falling_ttft_alone_is_no_evidence() -> None:
    """The first request after a boot may compile; only tokens that came from the cache count."""
    assert judge(answers((0, 0, 0), ttft=(900.0, 41.0, 41.0))).call == "useless"


def test_several_engines_may_each_have_had_the_prompt_once() -> None:
    """Each has a cache of its own: no hit proves nothing, a hit does."""
    found = judge(answers((0, 0, 0)), engines=2)
    assert found.call == "not known"
    assert "may have gone to another of 2 engines each time" in found.text
    assert judge(answers((0, 0, 992)), engines=2).call == "works"
    assert judge(answers((0, 0, 0), (0, 0, 0)), engines=2).call == "off"

"""Excerpts cut to a number of tokens, whatever the tokenizer makes of words."""

from __future__ import annotations

import pytest

from sparktui.load import tokens
from sparktui.load.texts import Kind, picked
from sparktui.load.tokens import fit, guess
from tests.load import tokenizers
from tests.load.tokenizers import Tokenizer

FRAME = 40
REACHABLE = (
    tokenizers.words, tokenizers.pairs, tokenizers.syllables, tokenizers.characters, tokenizers.fours,
    tokenizers.open_ends, tokenizers.dear_pads,
)  # fmt: skip


class Counter:
    """Counts with a frame around the text, and how often."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.calls = 0

    async def __call__(self, text: str) -> int:
        self.calls += 1
        return FRAME + self.tokenizer(text)


@pytest.mark.parametrize("kind", ["prose", "code"])
@pytest.mark.parametrize("target", [64, 512, 1500])
@pytest.mark.parametrize("tokenizer", REACHABLE, ids=lambda t: t.__name__)
async def test_exact_whatever_the_tokenizer(tokenizer: Tokenizer, target: int, kind: Kind) -> None:
    calls = []
    for source in picked(kind, 12, "1"):
        count = Counter(tokenizer)
        fitted = await fit(count, source, target, FRAME)
        assert FRAME + tokenizer(fitted.text) == fitted.tokens == target
        calls.append(count.calls)
    assert max(calls) <= 24
    assert sum(calls) / len(calls) <= 12


async def test_few_calls_where_a_word_is_about_a_token() -> None:
    calls = []
    for source in picked("prose", 48, "1"):
        count = Counter(tokenizers.pairs)
        fitted = await fit(count, source, 512, FRAME, 5.0)
        assert fitted.tokens == 512
        calls.append(count.calls)
    assert sum(calls) / len(calls) < 4


async def test_the_excerpt_is_the_text_itself_but_for_a_word_or_two() -> None:
    for source in picked("prose", 20, "1"):
        fitted = await fit(Counter(tokenizers.pairs), source, 300, FRAME)
        same = next(n for n in range(len(fitted.text), 0, -1) if fitted.text.startswith(source.take(n)))
        assert len(fitted.text) - same <= len(" and all of the")


@pytest.mark.parametrize(("target", "reached"), [(301, 300), (302, 302)])
async def test_what_is_never_exact_comes_as_near_as_it_can(target: int, reached: int) -> None:
    for source in picked("prose", 12, "1"):
        count = Counter(tokenizers.evens)
        fitted = await fit(count, source, target, FRAME)
        assert fitted.tokens is not None
        assert fitted.tokens == FRAME + tokenizers.evens(fitted.text)
        assert abs(fitted.tokens - target) == abs(reached - target)
        assert count.calls <= 60


async def test_the_same_answers_lead_to_the_same_text() -> None:
    (source,) = picked("code", 1, "1")
    one, other = [await fit(Counter(tokenizers.syllables), source, 700, FRAME) for _ in range(2)]
    assert one == other


async def test_an_error_of_the_counter_is_not_swallowed() -> None:
    async def refuses(text: str) -> int:
        raise tokens.TokenizeError("no")

    (source,) = picked("prose", 1, "1")
    with pytest.raises(tokens.TokenizeError):
        await fit(refuses, source, 512, FRAME)


@pytest.mark.parametrize("asked", [0, -20])
def test_a_guess_of_nothing_is_empty(asked: int) -> None:
    (source,) = picked("prose", 1, "1")
    assert guess(source, asked) == ""


def test_a_guess_goes_by_the_scale_and_ends_with_a_word() -> None:
    (source,) = picked("prose", 1, "1")
    for scale in (3.0, 6.0):
        text = guess(source, 400, scale)
        assert abs(len(text) - 400 * scale) < 20
        assert source.take(len(text) + 1)[-1].isspace()

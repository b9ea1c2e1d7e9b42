"""The shipped texts: long enough, varied, and whole wherever an excerpt begins and ends."""

from __future__ import annotations

import ast
import re

import pytest

from sparktui.load.texts import CHARS_PER_TOKEN, INSTRUCTIONS, PADS, Kind, Source, picked, starts, text
from sparktui.schema.workloads import WORKLOADS

KINDS: tuple[Kind, ...] = ("prose", "code", "system")


@pytest.mark.parametrize(
    ("kind", "least", "least_starts", "least_words"),
    [("prose", 25_000, 150, 1500), ("code", 30_000, 80, 600), ("system", 5_000, 1, 350)],
)
def test_there_is_enough_of_it_and_it_varies(
    kind: Kind, least: int, least_starts: int, least_words: int
) -> None:
    assert len(text(kind)) >= least
    assert len(starts(kind)) >= least_starts
    assert len(set(re.findall(r"[a-z]+", text(kind).lower()))) >= least_words


def test_the_code_is_python() -> None:
    modules = text("code").split("from __future__ import annotations\n")
    assert len(modules) > 5
    for module in modules[1:]:
        ast.parse(module.rpartition('\n\n\n"""')[0] or module)


def test_no_paragraph_of_prose_comes_twice() -> None:
    paragraphs = text("prose").split("\n\n")
    assert len(paragraphs) > 30
    assert len(set(paragraphs)) == len(paragraphs)


@pytest.mark.parametrize("kind", KINDS)
def test_an_excerpt_begins_where_something_begins(kind: Kind) -> None:
    for start in starts(kind):
        assert not text(kind)[start].isspace()
        assert start == 0 or text(kind)[start - 1].isspace()
    if kind == "prose":
        assert all(text(kind)[start].isupper() for start in starts(kind))


def test_a_text_goes_on_from_its_beginning() -> None:
    whole = text("prose")
    source = Source("prose", len(whole) - 10)
    assert source.take(16) == whole[-10:] + "\n\n" + whole[:4]
    assert len(source.take(5 * len(whole))) == 5 * len(whole)
    assert source.take(0) == ""
    assert source.take(-3) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_border_is_the_end_of_a_word_near_the_place(kind: Kind) -> None:
    source = Source(kind, starts(kind)[-1])
    for near in range(1, 3000, 37):
        at = source.border(near, 0)
        assert at is not None
        assert not source.take(at)[-1].isspace()
        assert source.take(at + 1)[-1].isspace()
        assert abs(at - near) < 120


def test_a_border_stays_within_its_bounds() -> None:
    source = Source("prose")  # The harbour wakes before
    assert source.border(11, 0) == 11
    assert source.border(14, 0) == 11
    assert source.border(14, 11) == 17
    assert source.border(14, 11, 17) is None
    assert source.border(500, 11, 18) == 17
    assert source.border(-50, 0) == 3


def test_sources_are_their_seeds_and_begin_at_places_of_their_own() -> None:
    one, again, other = (picked("prose", 48, seed) for seed in ("1", "1", "2"))
    assert one == again
    assert one != other
    assert len({source.start for source in one}) == 48


def test_more_sources_than_places_begin_again() -> None:
    places = len(starts("code"))
    made = picked("code", places + 3, "1")
    assert made[places:] == made[:3]


def test_every_workload_has_an_instruction_that_asks_for_a_long_answer() -> None:
    assert INSTRUCTIONS.keys() == WORKLOADS.keys()
    asks = re.compile(r"(two|three) thousand words|(four|six) hundred lines")
    assert all(asks.search(instruction) for instruction in INSTRUCTIONS.values())


def test_every_kind_has_its_numbers() -> None:
    assert CHARS_PER_TOKEN.keys() == PADS.keys() == set(KINDS)
    for pads in PADS.values():
        assert [len(pad.split()) for pad in pads] == [1, 2, 3, 4]

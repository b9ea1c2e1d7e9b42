from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparktui.bootlog.literals import Literals

LETTERS = st.text(alphabet="ab \t\u00a0", max_size=6)
PAIRS = st.lists(
    st.tuples(LETTERS.filter(bool), st.sampled_from(["one", "two", "three", "four"])), max_size=8
)


@given(PAIRS, st.text(alphabet="ab \t\u00a0", max_size=30))
def test_the_same_as_asking_for_each(pairs: list[tuple[str, str]], text: str) -> None:
    items = list(dict.fromkeys(item for _, item in pairs))
    contained = [item for item in items if any(lit in text for lit, of in pairs if of == item)]
    assert Literals(pairs).found(text) == contained


def test_in_the_order_given_and_once() -> None:
    pairs = [
        ("z", "last letter"),
        ("the quick fox", "fox"),
        ("a", "letter"),
        ("quick", "fox"),
        ("fox", "fox"),
    ]
    assert Literals(pairs).found("the quick fox, lazy") == ["last letter", "fox", "letter"]


def test_a_literal_may_begin_and_end_within_words() -> None:
    literals = Literals([("oes not supp", 1), ("not", 2), ("is not on", 3)])
    assert literals.found("it does not support") == [1, 2]
    assert literals.found("this is not only") == [2, 3]


def test_a_word_that_is_there_is_not_enough() -> None:
    literals = Literals([("Async scheduling not supported with", "async")])
    assert literals.found("scheduling is Async and not supported with that") == []
    assert literals.found("WARNING Async scheduling not supported with ngram") == ["async"]


def test_items_need_no_hash() -> None:
    first, second = {"id": 1}, {"id": 2}
    assert Literals([("a", first), ("b", second), ("ab", first)]).found("ab") == [first, second]


def test_without_literals_nothing_is_found() -> None:
    assert Literals[str]([]).found("anything") == []

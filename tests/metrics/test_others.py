"""Requests of others: above ours in three scrapes in a row."""

from __future__ import annotations

from sparktui.metrics.others import Others
from tests.metrics.pages import made, page_of


def look(ours: int, *there: tuple[object, object]) -> list[int | None]:
    others = Others()
    return [
        others.look(made(num_requests_running=running, num_requests_waiting=waiting), ours)
        for running, waiting in there
    ]


def test_three_in_a_row_are_others_and_waiting_ones_count() -> None:
    assert look(2, (3, 0), (2, 2), (1, 4), (4, 1)) == [0, 0, 2, 3]


def test_a_request_that_has_just_ended_is_none_of_others() -> None:
    """One page in three shows a request more than ours, for ever."""
    assert look(4, *[(5, 0), (4, 0), (4, 0)] * 4) == [0] * 12
    assert look(4, *[(5, 0), (5, 0), (4, 0)] * 4) == [0] * 12


def test_they_are_gone_as_soon_as_a_page_says_so() -> None:
    assert look(1, (3, 0), (3, 0), (3, 0), (1, 0), (3, 0)) == [0, 0, 2, 0, 0]


def test_one_page_that_leaps_makes_no_crowd() -> None:
    assert look(8, (9, 0), (16, 0), (9, 0), (9, 0)) == [0, 0, 1, 1]


def test_all_are_others_while_we_ask_for_nothing() -> None:
    """The recorded page has eight running."""
    others = Others()
    pages = [page_of("0.32.0-cpu/on_midload.txt", t) for t in (1.0, 2.0, 3.0)]
    assert [others.look(page, 0) for page in pages] == [0, 0, 8]
    assert [Others().look(page, 8) for page in pages] == [0, 0, 0]


def test_what_the_page_does_not_tell_is_not_known() -> None:
    others = Others()
    page = made(num_requests_running=5)
    assert [others.look(page, 1) for _ in range(3)] == [0, 0, 4]  # nothing said of waiting
    assert others.look(made(generation_tokens_total=5), 1) is None
    assert others.look(page, 1) == 0  # in a row means in a row

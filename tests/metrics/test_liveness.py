"""A server stalls when requests run and no counter moves, whatever /health says."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sparktui.metrics.liveness import Liveness
from tests.metrics.engines import beside
from tests.metrics.pages import made, page_of

CPU32 = "0.32.0-cpu"
MID, AFTER = f"{CPU32}/on_midload.txt", f"{CPU32}/on_after.txt"


def reads(*pages: tuple[float, Mapping[str, object]]) -> list[float | None]:
    liveness = Liveness()
    return [liveness.read(made(t, **values)) for t, values in pages]


def test_a_frozen_page_stalls_from_its_last_movement_on() -> None:
    """The same recorded page again and again, eight requests running."""
    liveness = Liveness()
    assert [liveness.read(page_of(MID, t)) for t in (10.0, 11.0, 15.5, 22.0)] == [0.0, 1.0, 5.5, 12.0]


def test_any_counter_that_moves_is_life() -> None:
    running = {"num_requests_running": 2, "generation_tokens_total": 5}
    assert reads(
        (1.0, running | {"prompt_tokens_total": 0}),
        (2.0, running | {"prompt_tokens_total": 0}),
        (3.0, running | {"prompt_tokens_total": 900}),
        (5.0, running | {"prompt_tokens_total": 900}),
    ) == [0.0, 1.0, 0.0, 2.0]


def test_a_long_prompt_takes_blocks_with_every_step() -> None:
    """Its prefill moves no counter until the first token."""
    values = {"num_requests_running": 1, "generation_tokens_total": 5}
    pages = [(float(t), values | {"kv_cache_usage_perc": t / 100}) for t in range(60)]
    assert reads(*pages) == [0.0] * 60


def test_an_idle_server_does_not_stall() -> None:
    idle = {"num_requests_running": 0, "generation_tokens_total": 5}
    assert reads(*((float(t), idle) for t in (0, 100, 1000))) == [None, None, None]


def test_waiting_for_the_first_request_is_no_stall() -> None:
    idle = {"num_requests_running": 0, "generation_tokens_total": 5}
    assert reads((0.0, idle), (500.0, idle | {"num_requests_running": 1})) == [None, 0.0]


def test_a_stall_ends_with_its_requests_and_the_next_begins_anew() -> None:
    idle = {"num_requests_running": 0, "generation_tokens_total": 5}
    busy = idle | {"num_requests_running": 1}
    pages = ((0.0, busy), (9.0, busy), (10.0, idle), (20.0, busy), (21.0, busy))
    assert reads(*pages) == [0.0, 9.0, None, 0.0, 1.0]


def test_a_new_life_resets_it() -> None:
    old = {"num_requests_running": 1, "generation_tokens_total": 5, "generation_tokens_created": 100.5}
    new = old | {"generation_tokens_created": 200.5}
    assert reads((0.0, old), (30.0, old), (31.0, new), (32.0, new)) == [0.0, 30.0, 0.0, 1.0]
    fewer = old | {"generation_tokens_total": 4}
    assert reads((0.0, old), (30.0, old), (31.0, fewer)) == [0.0, 30.0, 0.0]


@pytest.mark.parametrize(
    "unknown",
    [{"generation_tokens_total": 5}, {"num_requests_running": 1}, {"num_requests_running": "NaN"}],
    ids=["running-absent", "no-counters", "running-nan"],
)
def test_what_is_not_known_is_no_stall(unknown: dict[str, object]) -> None:
    page = {"kv_cache_usage_perc": 0.5} | unknown
    assert reads((0.0, page), (60.0, page)) == [None, None]


def test_one_engine_that_stands_is_not_hidden_by_another_that_moves() -> None:
    """As with data parallelism: the sums go on rising."""
    liveness = Liveness()
    assert liveness.read(beside(MID, MID, t=0.0)) == 0.0
    assert liveness.read(beside(MID, f"{CPU32}/on_idle.txt", t=8.0)) == 8.0
    assert liveness.read(beside(MID, AFTER, t=9.0)) == 9.0
    assert liveness.read(beside(AFTER, MID, t=10.0)) == 0.0


def test_an_idle_engine_beside_a_busy_one_does_not_stall() -> None:
    liveness = Liveness()
    busy = (f"{CPU32}/on_idle.txt", MID)
    reads = [liveness.read(beside(AFTER, name, t=float(t))) for t, name in enumerate(busy)]
    assert reads == [None, 0.0]

"""A stall is told once, and so is its end."""

from __future__ import annotations

from sparktui.host.journal import Level
from sparktui.host.stall import StallWatch


def watch() -> tuple[StallWatch, list[tuple[str, Level]]]:
    told: list[tuple[str, Level]] = []
    return StallWatch(lambda text, level: told.append((text, level))), told


def test_a_stall_is_told_once_with_its_requests_and_then_its_end() -> None:
    stall, told = watch()
    for seconds in (None, 2.0, 9.5, 10.5, 11.5, 34.0):
        stall.look(seconds, 3)
    stall.look(None, 0)
    stall.look(None, 0)
    assert told == [
        (
            "stalled for 10 s: 3 requests run and no counter moves; /metrics answers",
            "error",
        ),
        ("moves again after 34 s", "info"),
    ]


def test_a_short_silence_is_not_told() -> None:
    stall, told = watch()
    for seconds in (1.0, 9.9, None):
        stall.look(seconds, 1)
    assert told == []


def test_a_second_stall_is_told_again() -> None:
    stall, told = watch()
    for seconds in (12.0, None, 10.0):
        stall.look(seconds, 1)
    assert [text.split(":")[0] for text, _ in told] == [
        "stalled for 12 s",
        "moves again after 12 s",
        "stalled for 10 s",
    ]


def test_a_stalled_server_that_is_stopped_does_not_move_again() -> None:
    stall, told = watch()
    stall.look(12.0, 2)
    stall.look(None, None)  # nothing is known of it any more
    stall.look(None, 0)  # the next server
    assert [level for _, level in told] == ["error"]

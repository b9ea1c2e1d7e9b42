"""Seconds from a log's own time stamps."""

from __future__ import annotations

import pytest

from sparktui.bootlog.clock import LogClock
from sparktui.bootlog.lines import Line
from tests.bootlog.logs import log_lines


def read(*stamps: str | None) -> list[float]:
    """Of lines with these stamps; without a date they are of 30 November."""
    clock = LogClock()
    times = [f"11-30 {stamp}" if stamp and len(stamp) == 8 else stamp for stamp in stamps]
    return [clock.read(Line(number, "", time=time)) for number, time in enumerate(times, 1)]


def test_seconds_since_the_first_stamp() -> None:
    assert read("17:40:01", "17:40:01", "17:41:03") == [0, 0, 62]


def test_lines_without_a_time_have_the_last_one() -> None:
    assert read(None, "17:40:01", None, "17:40:05", None) == [0, 0, 0, 4, 4]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("11-29 23:59:58", "11-30 00:00:03"),
        ("11-30 23:59:58", "12-01 00:00:03"),
        ("12-31 23:59:58", "01-01 00:00:03"),
        ("02-28 23:59:58", "03-01 00:00:03"),
        ("02-28 23:59:58", "02-29 00:00:03"),
        ("02-29 23:59:58", "03-01 00:00:03"),
    ],
)
def test_midnight_and_new_year(before: str, after: str) -> None:
    assert read(before, after) == [0, 5]


def test_never_back_where_two_processes_differ_by_a_second() -> None:
    assert read("10:00:10", "10:00:09", "10:00:10", "10:00:12") == [0, 0, 0, 2]
    assert read("10:00:10", "10:00:14", "10:00:13", "10:00:15") == [0, 4, 4, 5]


def test_out_of_order_around_new_year() -> None:
    assert read("12-31 23:59:59", "01-01 00:00:00", "12-31 23:59:59", "01-01 00:00:02") == [0, 1, 1, 3]


def test_a_clock_that_was_set_back_goes_on() -> None:
    assert read("10:00:00", "10:00:30", "09:00:31", "09:00:41") == [0, 30, 30, 40]


def test_a_day_that_does_not_exist_is_passed_over() -> None:
    assert read("02-27 10:00:00", "02-30 10:00:00", "02-27 10:00:05") == [0, 0, 5]
    assert read("13-01 10:00:00", "11-30 10:00:00", "11-30 10:00:05") == [0, 0, 5]


def test_a_recorded_boot_lasts_as_long_as_its_stamps_say() -> None:
    clock = LogClock()
    lines = log_lines("0.24.0-h200/boot_fi_ngram.log")
    seconds = [clock.read(line) for line in lines]
    assert seconds == sorted(seconds)
    ready = next(i for i, line in enumerate(lines) if line.message == "Application startup complete.")
    assert seconds[ready] == 80  # 18:15:57 to 18:17:17

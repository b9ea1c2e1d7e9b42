"""Acceptance so low that speculation is pure overhead: told once, and again only after it recovered."""

from __future__ import annotations

import pytest

from sparktui.bootlog.overhead import OverheadWatch
from sparktui.bootlog.stats import read_stats
from sparktui.schema.bootlog import SpecStats
from sparktui.schema.live import Finding
from tests.bootlog.logs import LOGS, log_lines


def stats(accepted: int, drafted: int = 1000, first: float | None = None) -> SpecStats:
    by_position = () if first is None else (first, first / 2)
    return SpecStats(None, accepted, drafted, by_position, accepted / drafted if drafted else None)


def watch(*each: SpecStats, every: float = 10.0, start: float = 0.0) -> list[Finding | None]:
    watched = OverheadWatch()
    return [watched.read(one, start + every * place) for place, one in enumerate(each)]


def test_a_minute_of_one_percent() -> None:
    found = watch(*[stats(12, first=0.02)] * 7)
    assert found[:6] == [None] * 6
    assert found[6] is not None
    assert (found[6].id, found[6].severity, found[6].line) == ("spec-overhead", "costs speed", 0)
    assert found[6].text == "1.2 % of 6,000 drafted tokens accepted in 60 s; position 1: 2.0 %"
    assert "pure overhead" in found[6].meaning


def test_nothing_accepted_is_zero_and_not_unknown() -> None:
    found = watch(*[stats(0, first=0.0)] * 7)[-1]
    assert found is not None
    assert found.text == "0.0 % of 6,000 drafted tokens accepted in 60 s; position 1: 0.0 %"


def test_a_position_that_is_not_said_is_not_told() -> None:
    found = watch(*[stats(0)] * 7)[-1]
    assert found is not None
    assert found.text.endswith("in 60 s")


def test_position_1_is_weighted_by_what_was_drafted() -> None:
    found = watch(stats(0), stats(0, 900, 0.0), stats(0, 100, 0.5), every=30)[-1]
    assert found is not None
    assert found.text.endswith("position 1: 5.0 %")


@pytest.mark.parametrize("accepted", [50, 51, 700])
def test_five_percent_is_enough(accepted: int) -> None:
    assert watch(*[stats(accepted)] * 20) == [None] * 20


def test_too_few_tokens_say_nothing_yet() -> None:
    """80 tokens an interval: after six and a half of them there are 500, and a minute is over."""
    found = watch(*[stats(0, 80)] * 12)
    assert [place for place, each in enumerate(found) if each is not None] == [7]


def test_long_intervals() -> None:
    found = watch(*[stats(0)] * 3, every=120)
    assert found[0] is None
    assert found[1] is not None
    assert "in 120 s" in found[1].text


def test_told_again_only_after_it_recovered() -> None:
    watched, told = OverheadWatch(), []
    phases = [(0, 20), (70, 12), (0, 12), (200, 12), (0, 12)]  # tokens accepted of 1000, intervals
    t = 0.0
    for accepted, intervals in phases:
        for _ in range(intervals):
            if watched.read(stats(accepted), t) is not None:
                told.append(t)
            t += 10
    assert told[0] == 60
    assert len(told) == 2  # 7 % was no recovery, 20 % was
    assert told[1] > 560


def test_a_clock_set_back_starts_over() -> None:
    watched = OverheadWatch()
    for place in range(6):
        assert watched.read(stats(0), 1000 + 10 * place) is None
    assert watched.read(stats(0), 5.0) is None
    assert watched.read(stats(0), 15.0) is None
    assert watched.read(stats(0), 65.0) is not None


def test_no_recorded_h200_boot_has_it() -> None:
    read = 0
    for path in sorted(LOGS.glob("0.24.0-h200/*.log")):
        watched = OverheadWatch()
        for place, each in enumerate(log_lines(str(path.relative_to(LOGS)))):
            found = read_stats(each)
            if isinstance(found, SpecStats):
                assert watched.read(found, float(place)) is None
                read += 1
    assert read == 31

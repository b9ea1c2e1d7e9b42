"""Windows over pages, and the end of a server's life between two of them."""

from __future__ import annotations

import pytest

from sparktui.metrics.page import parse
from sparktui.metrics.window import Scrapes, restarted
from tests.metrics.engines import beside
from tests.metrics.pages import made, page_of

CPU32 = "0.32.0-cpu"


def counting(*times: float, rate: float = 10.0, keep_s: float = 60.0) -> Scrapes:
    """A server that makes ``rate`` tokens a second, scraped at these times."""
    scrapes = Scrapes(keep_s)
    for t in times:
        scrapes.add(made(t, generation_tokens_total=rate * t, generation_tokens_created=1.0))
    return scrapes


@pytest.mark.parametrize(
    "pair", [("on_idle", "on_after"), ("on_midload", "on_after"), ("on_idle", "on_midload")]
)
def test_pages_of_one_life_are_no_restart(pair: tuple[str, str]) -> None:
    old, new = (page_of(f"{CPU32}/{name}.txt") for name in pair)
    assert not restarted(old, new)


def test_a_counter_that_went_down_is_a_restart() -> None:
    old = made(generation_tokens_total=500, prompt_tokens_total=80)
    assert restarted(old, made(generation_tokens_total=600, prompt_tokens_total=79))
    assert not restarted(old, made(generation_tokens_total=500, prompt_tokens_total=80))


def test_a_counter_that_vanished_is_a_restart() -> None:
    """Speculation was on, and is off now."""
    assert restarted(page_of(f"{CPU32}/on_midload.txt"), page_of(f"{CPU32}/off_after.txt"))


def test_a_birth_that_changed_is_a_restart_even_with_higher_counters() -> None:
    old = made(generation_tokens_total=0, generation_tokens_created=100.5)
    assert restarted(old, made(generation_tokens_total=900, generation_tokens_created=130.5))
    assert restarted(page_of(f"{CPU32}/draft_idle.txt"), page_of(f"{CPU32}/on_after.txt"))


def test_a_birth_that_only_one_page_has_says_nothing() -> None:
    """Several API servers export none."""
    born = made(generation_tokens_total=10, generation_tokens_created=100.5)
    assert not restarted(born, made(generation_tokens_total=11))
    assert not restarted(made(generation_tokens_total=9), born)


IDLE, MID, AFTER = (f"{CPU32}/on_{when}.txt" for when in ("idle", "midload", "after"))


@pytest.mark.parametrize("births", [True, False])
def test_engines_of_one_life_are_no_restart(births: bool) -> None:
    assert not restarted(beside(IDLE, MID, births=births), beside(MID, AFTER, births=births))


def test_a_sum_does_not_hide_that_one_engine_began_anew() -> None:
    """Engine 0 goes from 4,664 tokens to none, engine 1 from none to 5,792: every sum has risen."""
    old, new = beside(MID, IDLE, births=False), beside(IDLE, AFTER, births=False)
    assert all(new.counters[name] >= value for name, value in old.counters.items())
    assert restarted(old, new)


def test_a_later_birth_of_one_engine_is_a_restart() -> None:
    """Its counters have overtaken the old ones already, and the first birth is still the other engine's."""
    old = 'vllm:generation_tokens_total{engine="%s"} %d\nvllm:generation_tokens_created{engine="%s"} %d\n'
    before = parse(old % (0, 500, 0, 10) + old % (1, 500, 1, 20), 0.0)
    after = parse(old % (0, 600, 0, 10) + old % (1, 900, 1, 30), 1.0)
    assert before.created == after.created == 10.0
    assert restarted(before, after)
    assert not restarted(before, parse(old % (0, 600, 0, 10) + old % (1, 900, 1, 20), 1.0))


def test_an_engine_that_joins_or_leaves_begins_a_new_window() -> None:
    """What it counted before would be a burst of this second."""
    one, two = beside(MID), beside(MID, AFTER)
    assert restarted(one, two)
    assert restarted(two, one)


def test_a_request_that_ended_in_a_new_way_is_no_restart() -> None:
    line = 'vllm:request_success_total{engine="0",finished_reason="%s"} 3\n'
    old = parse(line % "stop", 0.0)
    assert not restarted(old, parse(line % "stop" + line % "repetition", 1.0))


def test_a_number_that_is_missing_for_once_is_no_restart() -> None:
    old = made(0.0, generation_tokens_total=500, prompt_tokens_total=80)
    torn = made(1.0, generation_tokens_total="NaN", prompt_tokens_total=80)
    assert not restarted(old, torn)
    assert not restarted(torn, made(2.0, generation_tokens_total=510, prompt_tokens_total=80))
    scrapes = Scrapes()
    for page in (old, torn, made(2.0, generation_tokens_total=510, prompt_tokens_total=80)):
        assert scrapes.add(page) is False
    delta = scrapes.window(5.0)
    assert delta is not None
    assert delta.output_tok_s == 5.0


def test_the_order_of_labels_makes_no_other_series() -> None:
    old = parse('vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 3\n', 0.0)
    new = parse('vllm:request_success_total{model_name="m",finished_reason="stop",engine="0"} 4\n', 1.0)
    assert not restarted(old, new)


@pytest.mark.parametrize(
    "second", [{"generation_tokens_total": 3, "generation_tokens_created": 1.0},
               {"generation_tokens_total": 999, "generation_tokens_created": 2.0}],
)  # fmt: skip
def test_a_restart_drops_everything_older(second: dict[str, float]) -> None:
    scrapes = counting(1.0, 2.0, 3.0)
    assert scrapes.add(made(4.0, **second)) is True
    assert len(scrapes.pages) == 1
    assert scrapes.window(5.0) is None
    later = dict(second, generation_tokens_total=second["generation_tokens_total"] + 8)
    assert scrapes.add(made(5.0, **later)) is False
    delta = scrapes.window(60.0)
    assert delta is not None
    assert (delta.generated, delta.seconds) == (8.0, 1.0)


def test_no_window_before_two_pages() -> None:
    scrapes = Scrapes()
    assert scrapes.window(5.0) is None
    assert scrapes.last is None
    page = made(1.0, generation_tokens_total=1)
    assert scrapes.add(page) is False
    assert scrapes.window(5.0) is None
    assert scrapes.last is page


@pytest.mark.parametrize(("seconds", "spans"), [(5.0, 5.0), (15.0, 15.0), (60.0, 20.0)])
def test_a_window_is_as_long_as_it_was_asked_for(seconds: float, spans: float) -> None:
    delta = counting(*map(float, range(10, 31))).window(seconds)
    assert delta is not None
    assert delta.seconds == spans
    assert delta.output_tok_s == pytest.approx(10.0)


def test_a_window_never_reaches_before_since() -> None:
    scrapes = counting(*map(float, range(10, 31)))
    delta = scrapes.window(15.0, since=26.5)
    assert delta is not None
    assert delta.seconds == 3.0  # from the scrape at 27
    exactly = scrapes.window(15.0, since=26.0)
    assert exactly is not None
    assert exactly.seconds == 4.0


@pytest.mark.parametrize("since", [29.5, 30.0, 99.0])
def test_no_window_until_two_pages_fit_after_since(since: float) -> None:
    assert counting(*map(float, range(10, 31))).window(15.0, since) is None


def test_a_scrape_a_little_late_still_fits() -> None:
    delta = counting(10.0, 15.4).window(5.0)
    assert delta is not None
    assert delta.seconds == pytest.approx(5.4)
    assert counting(10.0, 15.6).window(5.0) is None


def test_pages_older_than_the_longest_window_are_let_go() -> None:
    scrapes = counting(*map(float, range(200)), keep_s=60.0)
    assert scrapes.pages[0].t == 138.0  # one older than needed: 139 is exactly 60 s old
    assert len(scrapes.pages) == 62
    delta = scrapes.window(60.0)
    assert delta is not None
    assert delta.seconds == 60.0


def test_clear_forgets() -> None:
    scrapes = counting(1.0, 2.0)
    scrapes.clear()
    assert scrapes.pages == ()
    assert scrapes.add(made(3.0, generation_tokens_total=0)) is False

"""What the tiles say, and where a figure comes from."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sparktui.schema.live import Figures, LoadView
from sparktui.ui.format import per_stream
from sparktui.ui.model import RunModel
from sparktui.ui.tile_words import Said, gap_words, long_wait, server_ttft, tile_words
from tests.ui.canned import GPU, IDLE, LOADED, LOADED_BY_US, RUNNING, snapshot
from tests.ui.states import HOT, SPARK, SPARK_MEMORY


def said(figures: Figures = LOADED, load: LoadView = LOADED_BY_US, **changes: Any) -> dict[str, Said]:
    model = RunModel()
    model.take_snapshot(snapshot(1, figures=figures, load=load, **changes))
    return tile_words(model)


def but(**changes: Any) -> Figures:
    return dataclasses.replace(LOADED, **changes)


def ours(**changes: Any) -> LoadView:
    return dataclasses.replace(LOADED_BY_US, **changes)


def test_nothing_is_said_before_the_first_snapshot() -> None:
    assert tile_words(RunModel()) == {}


def test_a_healthy_server_needs_no_words_beside_its_values() -> None:
    told = said()
    assert {name: tile.value for name, tile in told.items()} == {
        "output": "318 tok/s", "decode": "41.0 tok/s", "ttft": "129 ms", "kv": "12.1 %", "requests": "8 run",
        "power": "215 W",
    }  # fmt: skip
    assert {tile.level for tile in told.values()} == {"normal"}
    assert told["output"].details == told["kv"].details == told["requests"].details == ()
    assert told["ttft"].details == ("srv 131",)
    assert told["power"].notes == ("40.0 of 140 GiB", "40.0 GiB")


def test_output_of_others_is_told_apart_unless_it_is_two_clocks_rounding() -> None:
    told = said(but(others_tok_s=96.5))["output"]
    assert told.details == ("others 96.5 tok/s", "others 96", "oth. 96")
    assert told.insist
    assert said(but(others_tok_s=0.4))["output"].details == ()


def test_output_is_named_ours_where_the_server_does_not_tell() -> None:
    told = said(but(output_tok_s=None))["output"]
    assert (told.value, told.notes) == ("318 tok/s", ("ours",))


def test_figures_of_the_log_are_named_so() -> None:
    told = said(but(server_source="log", scrape_age_s=None))
    assert [name for name, tile in told.items() if tile.notes == ("log",)] == ["output", "kv", "requests"]


def test_without_usage_nothing_is_called_a_token() -> None:
    figures = but(client_chunks_s=120.0)
    told = said(figures, ours(in_flight=8, waiting=2, no_usage=True))
    assert (told["output"].value, told["output"].details) == ("120", ("chunks/s",))
    assert (told["decode"].value, told["decode"].details) == ("15.0", ("chunks/s",))
    assert told["decode"].insist, "the unit must not be left out"
    nothing = said(but(client_chunks_s=None), ours(no_usage=True))["output"]
    assert (nothing.value, nothing.details) == ("—", ("chunks/s",))


@pytest.mark.parametrize(
    ("chunks", "in_flight", "waiting", "each"),
    [(120.0, 8, 2, 15.0), (None, 8, 2, None), (120.0, 2, 2, 60.0), (0.0, 0, 0, None)],
)
def test_chunks_are_shared_by_the_streams_in_flight(
    chunks: float | None, in_flight: int, waiting: int, each: float | None
) -> None:
    assert per_stream(chunks, LoadView(8, in_flight, waiting=waiting)) == each


def test_decode_says_whose_it_is_and_what_is_possible() -> None:
    assert said(but(decode_source="server"))["decode"].notes == ("server",)
    assert said(but(roof_share=0.48))["decode"].notes == ("48 % of roof, est.", "roof 48 %")
    both = said(but(decode_source="server", roof_share=0.48))["decode"].notes
    assert both == ("server · 48 % of roof, est.", "server · roof 48 %", "server")


def test_chunk_gaps_stand_beside_the_decode_rate() -> None:
    assert said()["decode"].details == ("gap 64/141 ms", "gap 64 ms")
    assert gap_words(but(chunk_gap_p99_ms=None)) == ("gap 64 ms",)
    assert gap_words(but(chunk_gap_ms=None)) == ()


def test_the_servers_ttft_is_a_bound_where_one_bucket_moved() -> None:
    assert server_ttft(but(server_ttft_bound=True)) == ("srv ≤ 131",)
    assert server_ttft(but(server_ttft_ms=None, server_ttft_bound=True)) == ()


@pytest.mark.parametrize(
    ("waiting", "longest", "usual", "told"),
    [
        (6, 14.2, 129.0, "6 waiting, longest 14 s"),
        (6, 0.9, 129.0, ""),  # under a second is no wait to speak of
        (6, 9.0, 5000.0, ""),  # as usual here
        (6, 10.0, 5000.0, "6 waiting, longest 10 s"),
        (1, 130.0, None, "1 waiting, longest 2:10"),  # nothing came yet
        (0, 14.2, None, ""),
    ],
)
def test_an_unusual_wait_is_told_before_any_first_text(
    waiting: int, longest: float, usual: float | None, told: str
) -> None:
    words = long_wait(ours(waiting=waiting, longest_wait_s=longest), but(ttft_ms=usual))
    assert (words[0] if words else "") == told


def test_a_queue_of_ours_warns_in_two_tiles() -> None:
    told = said(but(waiting=6), ours(waiting=6, longest_wait_s=14.2))
    assert told["ttft"].level == told["requests"].level == "warning"
    assert told["ttft"].details[1] == told["requests"].details[1] == "6 wait 14 s"


def test_a_queue_of_a_moment_is_told_and_warns_nobody() -> None:
    told = said(but(waiting=1))["requests"]
    assert (told.level, told.details, told.insist) == ("normal", ("1 waiting",), True)


def test_requests_that_fail_are_told_before_anything_else() -> None:
    told = said(but(running=0, waiting=2), ours(errors=60, failed_lately=12))["requests"]
    assert (told.level, told.details) == ("warning", ("12 of ours failed", "12 failed"))
    assert said(load=ours(errors=60))["requests"].level == "normal", "long ago"


def test_requests_of_others_are_told_apart() -> None:
    assert said(but(running=9, others_running=1))["requests"].details == ("8 ours · 1 other", "1 other")
    queue = said(but(running=11, others_running=3, waiting=2))["requests"]
    assert queue.details == ("3 others · 2 waiting", "2 waiting")


def test_times_of_a_client_that_was_too_slow_are_marked() -> None:
    assert said(load=ours(client_limited=True))["ttft"].notes == ("client-limited", "limited")


def test_the_cache_of_several_engines_is_the_fullest_ones_and_each() -> None:
    told = said(but(kv_usage=0.934, kv_usage_each=(0.934, 0.871)))["kv"]
    assert (told.value, told.details) == ("93.4 %", ("engines 93/87 %", "max of 2"))


def test_preemptions_warn_and_prefix_hits_are_noted() -> None:
    told = said(but(preemptions=3.0, prefix_hit_rate=0.31))["kv"]
    assert (told.level, told.details[0]) == ("warning", "3 preempted")
    assert told.notes == ("prefix hits 31 %", "hits 31 %")
    assert said(but(prefix_hit_rate=0.005))["kv"].notes == ()


def test_power_says_what_holds_the_clocks_down() -> None:
    told = said(gpus=(HOT, GPU))["power"]
    assert (told.value, told.level) == ("913 W", "warning")
    assert told.details == ("throttled: SW thermal slowdown", "throttled")


def test_unified_memory_is_what_the_host_has_left() -> None:
    told = said(gpus=(SPARK,), memory=SPARK_MEMORY, server_gpu_mib=63931.0)["power"]
    assert told.notes == ("server 62.4 · 30.3 GiB left", "30.3 GiB left")


def test_a_silent_driver_leaves_no_watts() -> None:
    told = said(gpu_age_s=8.0)["power"]
    assert (told.value, told.details) == ("—", ("GPU silent for 8 s", "8 s silent"))
    broken = said(gpus=(), gpu_problem="NVML: driver [/x]\x1b[31m lost")["power"]
    assert broken.details == ("NVML: driver [/x][31m lost", "no GPU")


def test_an_idle_server_is_not_asked_for_what_it_cannot_have() -> None:
    told = said(IDLE, LoadView())
    assert {told[name].details for name in ("decode", "ttft")} == {()}


def last_words(*later: dict[str, Any]) -> dict[str, Said]:
    model = RunModel()
    model.take_snapshot(snapshot(1))
    for seq, changes in enumerate(later, 3):
        model.take_snapshot(snapshot(seq, **changes))
    return tile_words(model)


def test_a_dead_server_leaves_ages_and_no_rates() -> None:
    lost = dataclasses.replace(RUNNING, state="lost")
    told = last_words(*({"server": lost} for _ in range(8)))
    for name in ("output", "decode", "ttft", "kv", "requests"):
        assert told[name].value == "—", name
        assert told[name].details[-1].endswith(" s ago"), name


def test_a_silent_page_leaves_ours_and_the_age_of_the_rest() -> None:
    told = last_words({"figures": but(scrape_age_s=12.0)})
    assert (told["output"].value, told["output"].notes) == ("318 tok/s", ("ours",))
    assert (told["decode"].value, told["ttft"].value) == ("41.0 tok/s", "129 ms")
    assert (told["kv"].value, told["kv"].details) == ("—", ("last 1 s ago", "1 s ago"))
    assert told["requests"].value == "—"


def test_a_stalled_server_leaves_its_gauges() -> None:
    told = last_words({"server": dataclasses.replace(RUNNING, stalled_s=12.0)})
    assert [told[name].value for name in ("output", "decode", "ttft")] == ["—"] * 3
    assert [told[name].value for name in ("kv", "requests")] == ["12.1 %", "8 run"]


def test_without_a_connection_no_tile_says_anything() -> None:
    model = RunModel()
    model.take_snapshot(snapshot(1, load=ours(waiting=6, longest_wait_s=14.2)))
    model.lose("gone")
    told = tile_words(model)
    assert {(tile.value, tile.details) for tile in told.values()} == {("—", ("no connection", "no link"))}

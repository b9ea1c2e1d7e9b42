"""Every figure in words: the table of pane 1, the lines below the acceptance bars, GPUs and memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sparktui.schema.live import Figures, GpuView, HostMemory, LoadView, Snapshot
from sparktui.ui.figure_rows import bar_notes, figure_sections
from sparktui.ui.gpu_text import (
    chart_note,
    clocks,
    gpu_rows,
    host_rows,
    load_words,
    memory_notes,
    missing,
    throttling,
)
from tests.ui.canned import GPU, IDLE, LOADED, LOADED_BY_US, RUNNING, snapshot
from tests.ui.states import BUSY, COOL, HOT, QUEUED, SPARK, SPARK_MEMORY


def rows(title: str, made: Snapshot | None = None, **changes: Any) -> dict[str, str]:
    """The section whose title starts so."""
    sections = figure_sections(made or snapshot(1, **changes))
    return dict(next(section.rows for section in sections if section.title.startswith(title)))


def but(**changes: Any) -> Figures:
    return dataclasses.replace(LOADED, **changes)


def test_sections_are_those_that_the_machine_has() -> None:
    titles = [section.title for section in figure_sections(snapshot(1, gpus=(HOT, COOL)))]
    assert titles == [
        "Rates over 5 s", "Latency", "Server", "Speculation", "Our load", "GPU 0", "GPU 1",
    ]  # fmt: skip
    spark = figure_sections(snapshot(1, gpus=(), memory=SPARK_MEMORY))
    assert [section.title for section in spark][5:] == ["GPU", "Host memory"]
    assert list(spark[5].rows) == [("", "no GPU")]


def test_rates_are_the_servers_ours_and_others() -> None:
    told = rows("Rates", figures=BUSY)
    assert told == {
        "output, server": "318 tok/s", "output, ours": "318 tok/s", "per stream": "41.0 tok/s",
        "others": "96.5 tok/s, 5 requests", "memory reads": "2,310 GB/s",
        "roof": "48 % of the roof (estimate)",
    }  # fmt: skip
    assert "per stream (server)" in rows("Rates", figures=but(decode_source="server"))


@pytest.mark.parametrize(
    ("rate", "count", "told"),
    [
        (None, None, "—"),
        (None, 1, "1 request"),
        (96.5, None, "96.5 tok/s"),
        (0.0, 0, "0.0 tok/s, 0 requests"),
    ],
)
def test_others_are_told_as_far_as_known(rate: float | None, count: int | None, told: str) -> None:
    assert rows("Rates", figures=but(others_tok_s=rate, others_running=count))["others"] == told


def test_without_usage_the_table_has_chunks_for_tokens() -> None:
    load = dataclasses.replace(LOADED_BY_US, no_usage=True, waiting=2)
    told = rows("Rates", figures=but(client_chunks_s=120.0), load=load)
    assert (told["ours, no usage"], told["per stream"]) == ("120 chunks/s", "15.0 chunks/s")
    assert "output, ours" not in told
    assert rows("Our load", load=load)["usage"] == "▲ the server sends none"


def test_latency_tells_gaps_bounds_and_steps() -> None:
    assert rows("Latency", figures=BUSY) == {
        "TTFT p50, ours": "5,120 ms", "TTFT p50, server": "≤ 7,500 ms", "chunk gap p50": "63.9 ms",
        "chunk gap p99": "141 ms", "TPOT p50, server": "24.4 ms", "step time": "63.7 ms",
        "tokens per step": "2.61",
    }  # fmt: skip
    bound = but(server_tpot_ms=10.0, server_tpot_bound=True)
    assert rows("Latency", figures=bound)["TPOT p50, server"] == "≤ 10.0 ms"
    unknown = rows("Latency", figures=Figures(5.0, server_ttft_bound=True, server_tpot_bound=True))
    assert set(unknown.values()) == {"—"}


def test_the_server_section_has_each_engine_and_its_source() -> None:
    told = rows("Server", figures=BUSY)
    assert (told["state"], told["running"], told["waiting"]) == ("ready, answers", "11", "6")
    assert (told["KV usage"], told["  by engine"]) == ("93.4 %", "93 / 87 %")
    assert (told["preemptions"], told["prefix hits"]) == ("▲ 3", "31.0 %")
    assert told["source"] == "/metrics, 0.4 s old"
    one = rows("Server", figures=but(kv_usage_each=(0.934,), server_source="log", scrape_age_s=None))
    assert "  by engine" not in one
    assert one["source"] == "server.log"


def test_a_server_in_trouble_says_so_and_has_no_old_figures() -> None:
    stalled = snapshot(1, server=dataclasses.replace(RUNNING, stalled_s=12.0))
    assert rows("Server", stalled)["state"] == "✖ stalled for 12 s"
    assert rows("Server", stalled)["running"] == "8"
    assert set(rows("Latency", stalled).values()) == {"—"}
    silent = snapshot(1, figures=but(scrape_age_s=12.0))
    assert rows("Server", silent)["state"] == "✖ no answer for 12 s"
    assert rows("Server", silent)["running"] == rows("Server", silent)["KV usage"] == "—"
    assert rows("Server", silent)["source"] == "/metrics, 12.0 s old"
    assert rows("Latency", silent)["TTFT p50, ours"] == "129 ms"


def test_speculation_is_told_or_why_not() -> None:
    assert rows("Speculation") == {
        "acceptance": "53.7 %", "  by position": "75 / 52 / 34 %", "mean length": "2.61",
    }  # fmt: skip
    assert rows("Speculation", figures=IDLE) == {"": "nothing drafted"}
    off = dataclasses.replace(RUNNING, speculating=False)
    assert rows("Speculation", figures=but(drafted=None), server=off) == {"": "speculation off"}


def test_our_load_has_its_failures_waits_and_sampling() -> None:
    told = rows("Our load", load=dataclasses.replace(QUEUED, last_error="HTTP 503: [/x]\x1b[31m"))
    assert told["failed"] == "▲ 2: HTTP 503: [/x][31m"
    assert told["without a text"] == "6, longest 14 s"
    assert told["client-limited"].startswith("▲")
    assert told["sampling"] == "temperature 1.0, top_p 0.95 (profile)"
    calm = rows("Our load", load=LoadView())
    assert (calm["failed"], calm["client-limited"], calm["workload"]) == ("0", "no", "—")
    assert "usage" not in calm


def test_below_the_bars_stand_the_weightiest_lines() -> None:
    assert bar_notes(snapshot(1, figures=BUSY)) == (
        "step 63.7 ms, 2.61 tokens",
        "chunk gap 63.9, p99 141 ms",
        "48 % of the roof (estimate)",
        "reads 2,310 GB/s",
        "TPOT 24.4 ms (server)",
    )
    assert max(map(len, bar_notes(snapshot(1, figures=BUSY)))) <= 30  # the pane's width
    assert bar_notes(snapshot(1, figures=IDLE)) == ()
    stalled = dataclasses.replace(RUNNING, stalled_s=12.0)
    assert bar_notes(snapshot(1, server=stalled)) == ()


def test_a_hot_gpu_is_told_in_every_detail() -> None:
    told = dict(gpu_rows(HOT))
    assert told["power"] == "698 of 700 W"
    assert told["SM clock"] == "▼ 1,245 of 1,980 MHz"
    assert told["temperature"] == "▲ 87 °C, hot"
    assert told["throttled"] == "▲ SW thermal slowdown"
    assert told["  SW thermal slowdown"] == "+340 ms"
    assert "  SW power cap" not in told, "it did nothing since the reading before"
    assert told["  pid 4190"] == "39.5 GiB"
    assert told["memory"] == "40.0 of 140 GiB"


def test_a_gpu_that_tells_nothing_shows_dashes() -> None:
    told = dict(gpu_rows(GpuView(0)))
    assert told == {
        "name": "—", "power": "—", "busy": "—", "SM clock": "—", "temperature": "—", "throttled": "no",
        "memory": "—",
    }  # fmt: skip
    assert dict(gpu_rows(SPARK))["memory"] == "unified: the host's"


@pytest.mark.parametrize(
    ("gpu", "told"),
    [
        (GPU, "1,890 of 1,980 MHz"),
        (dataclasses.replace(GPU, sm_mhz=345.0, utilization_pct=3.0), "345 of 1,980 MHz"),  # idle
        (dataclasses.replace(GPU, sm_mhz=345.0, utilization_pct=96.0), "▼ 345 of 1,980 MHz"),
        (dataclasses.replace(GPU, sm_max_mhz=None), "1,890 MHz"),
        (dataclasses.replace(GPU, sm_mhz=None), ""),
    ],
)
def test_clocks_are_low_only_under_load(gpu: GpuView, told: str) -> None:
    assert clocks(gpu) == told


def test_several_gpus_are_told_by_mean_use_and_highest_temperature() -> None:
    assert load_words((HOT, COOL)) == ("2 GPUs 98 % 87 °C", "2 GPUs 87 °C", "2 GPUs")
    assert load_words((GPU,)) == ("61 % 1,890 MHz 54 °C", "1,890 MHz 54 °C", "54 °C")
    assert load_words((GpuView(0),)) == ("", "", "")
    assert throttling((HOT, HOT)) == "SW thermal slowdown"


def test_below_the_power_curve_stands_why_clocks_are_low() -> None:
    assert chart_note(snapshot(1, gpus=(HOT, COOL))) == (
        "▲ SW thermal slowdown · ° 87 °C hot · ▼ 1,245 of 1,980 MHz",
        "▲ SW thermal slowdown · ° 87 °C hot",
        "▲ SW thermal slowdown",
    )
    assert chart_note(snapshot(1, gpus=(GpuView(0),))) == ()
    assert chart_note(snapshot(1, gpus=())) == ("no GPU",)


def test_gpu_memory_is_summed_where_all_tell_it() -> None:
    assert memory_notes(snapshot(1, gpus=(HOT, COOL))) == ("80.0 of 281 GiB", "80.0 GiB")
    assert memory_notes(snapshot(1, gpus=(SPARK,), memory=None)) == ()
    assert memory_notes(snapshot(1, gpu_age_s=5.0)) == ()


def test_why_there_is_no_reading() -> None:
    assert missing(snapshot(1)) == ()
    assert missing(snapshot(1, gpu_age_s=4.0)) == ("GPU silent for 4 s", "4 s silent")
    assert missing(snapshot(1, gpus=(), gpu_problem="NVML is not there")) == ("NVML is not there", "no GPU")


def test_host_memory_warns_of_swap_and_pressure() -> None:
    told = dict(host_rows(SPARK_MEMORY, 63931.0))
    assert told == {
        "available": "30.3 of 122 GiB", "free": "1.8 GiB", "page cache": "20.5 GiB",
        "swap used": "▲ 2.0 of 16.0 GiB", "pressure": "▲ 12.5 % of 10 s waiting (PSI)",
        "server's GPU part": "62.4 GiB",
    }  # fmt: skip
    calm = dict(host_rows(HostMemory(24000.0, 12000.0, 0.0, swap_total_mib=0.0), None))
    assert calm == {"available": "11.7 of 23.4 GiB", "swap used": "there is none"}

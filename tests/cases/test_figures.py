"""Public reports on metrics and GPUs: the rooms that count and look at power, not the log."""

from __future__ import annotations

import re

import pytest

from sparktui.gpu.health import power_delivery_fault
from sparktui.gpu.nvml import Nvml
from sparktui.metrics.page import parse
from sparktui.metrics.window import difference
from sparktui.schema.live import GpuView
from tests.cases.boots import EXCERPTS, excerpt
from tests.gpu.drivers import Driver, gb10
from tests.metrics.pages import page_of


def test_10_no_hit_among_many_lookups_is_a_rate_of_zero() -> None:
    samples = [
        line.replace("_total", '_total{engine="0"}') for line in excerpt("10") if line.startswith("vllm:")
    ]
    nothing = [re.sub(r"\d+$", "0", line) for line in samples]
    old, new = parse("\n".join(nothing) + "\n", 0.0), parse("\n".join(samples) + "\n", 10.0)
    assert difference(old, new).prefix_hit_rate == 0.0


def test_52_the_step_time_is_no_token_time() -> None:
    assert "one observation per streamed output" in excerpt("52")[0]
    delta = difference(page_of("0.32.0-cpu/on_idle.txt", 0.0), page_of("0.32.0-cpu/on_after.txt", 10.0))
    assert delta.tokens_per_step is not None
    assert delta.tokens_per_step > 3
    assert delta.generated == 5792  # tokens from the counter, not from 1,853 observations


def test_53_the_old_name_of_a_gauge_still_counts() -> None:
    old, new = re.findall(r"vllm:\w+", excerpt("53")[0])
    assert parse(f'{old}{{engine="0"}} 0.25\n', 0.0).kv_usage == 0.25
    assert parse(f'{new}{{engine="0"}} 0.25\n', 0.0).kv_usage == 0.25
    assert parse('vllm:num_requests_running{engine="0"} 1\n', 0.0).kv_usage is None


def test_55_counters_of_all_engines_add_up() -> None:
    lines = [line.split("   (")[0].replace(",...", "") for line in excerpt("55")]
    page = parse("\n".join(lines) + "\n", 0.0)
    assert page.counters["spec_decode_num_drafts_total"] == 22 + 15
    assert page.engines == 2


def readings(*said: tuple[float, float, float]) -> list[tuple[float, GpuView]]:
    return [(t, GpuView(0, "NVIDIA GB10", sm_mhz=mhz, utilization_pct=pct)) for t, mhz, pct in said]


def test_56_busy_at_a_fraction_of_the_clock_is_a_power_fault() -> None:
    assert "500-850 MHz" in excerpt("56")[0]
    told = power_delivery_fault(readings(*((t / 2, 500 + t * 10, 96) for t in range(30))))
    assert told is not None
    assert "500 to 790 MHz" in told
    assert power_delivery_fault(readings(*((t / 2, 2400, 96) for t in range(30)))) is None


def test_58_low_clocks_alarm_only_while_busy_and_only_when_they_stay() -> None:
    rows = [re.findall(r"(\d+\.\d+), (\d+) MHz, (\d+) %", line)[0] for line in excerpt("58")]
    said = [(float(t), float(mhz), float(pct)) for t, mhz, pct in rows]
    assert [pct for _, _, pct in said] == [0.0, 0.0, 96.0, 96.0]
    assert power_delivery_fault(readings(*said)) is None
    later = [(said[-1][0] + i, 695.0, 96.0) for i in range(1, 12)]
    assert power_delivery_fault(readings(*said, *later)) is not None
    assert power_delivery_fault(readings(*((float(t), 860.0, 0.0) for t in range(60)))) is None


@pytest.mark.parametrize("name", ["59", "61"])
def test_59_and_61_memory_that_the_driver_cannot_tell_is_not_zero(name: str) -> None:
    assert re.search(r"Not Supported|\[N/A\]", "\n".join(excerpt(name)))
    (view,) = Nvml(Driver(gb10())).read()
    assert (view.memory_used_mib, view.memory_total_mib) == (None, None)
    assert view.power_w is not None


def test_every_report_has_a_test() -> None:
    numbers = {path.name[:2] for path in EXCERPTS.glob("*.txt")}
    assert len(numbers) == 42
    texts = [path.read_text(encoding="utf-8") for path in EXCERPTS.parent.parent.glob("cases/test_*.py")]
    names = re.findall(r"^def test_((?:\d\d_(?:and_)?)+)", "\n".join(texts), re.MULTILINE)
    assert {number for name in names for number in re.findall(r"\d\d", name)} == numbers

"""Host memory: what the kernel says, each figure by itself."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from sparktui.gpu.memory import host_memory

SPARK = """\
MemTotal:       127600748 kB
MemFree:         2097152 kB
MemAvailable:   62914560 kB
Buffers:          524288 kB
Cached:         61341696 kB
SwapCached:            8 kB
Shmem:            393216 kB
SwapTotal:      16777216 kB
SwapFree:       16252928 kB
HugePages_Total:       0
"""
PSI = """\
some avg10=12.34 avg60=5.00 avg300=1.00 total=123456
full avg10=3.21 avg60=1.00 avg300=0.50 total=12345
"""


def proc(tmp_path: Path, meminfo: str | None = SPARK, pressure: str | None = PSI) -> Path:
    if meminfo is not None:
        (tmp_path / "meminfo").write_text(meminfo, "utf-8")
    if pressure is not None:
        (tmp_path / "pressure").mkdir()
        (tmp_path / "pressure" / "memory").write_text(pressure, "utf-8")
    return tmp_path


def without(*names: str) -> str:
    return "".join(line for line in SPARK.splitlines(True) if line.split(":")[0] not in names)


def test_a_spark_s_memory_in_mib(tmp_path: Path) -> None:
    memory = host_memory(proc(tmp_path))
    assert memory.total_mib == pytest.approx(121.7 * 1024, rel=1e-3)  # vLLM prints 121.6 to 121.7 GiB
    assert memory.available_mib == 60 * 1024
    assert memory.free_mib == 2048
    assert memory.page_cache_mib == (61341696 + 524288 - 393216) / 1024
    assert (memory.swap_used_mib, memory.swap_total_mib) == (512, 16384)
    assert memory.pressure == 12.34


@pytest.mark.parametrize(
    ("gone", "field"),
    [("MemFree", "free_mib"), ("Cached", "page_cache_mib"), ("SwapTotal", "swap_total_mib")],
)
def test_a_line_that_is_missing_costs_its_own_figure(tmp_path: Path, gone: str, field: str) -> None:
    memory = host_memory(proc(tmp_path, without(gone)))
    assert getattr(memory, field) is None
    names = ("free_mib", "page_cache_mib", "swap_total_mib", "pressure")
    assert [name for name in names if getattr(memory, name) is None] == [field]


@pytest.mark.parametrize("pressure", [None, "", "nonsense\n"])
def test_a_kernel_that_counts_no_pressure_still_shows_its_memory(
    tmp_path: Path, pressure: str | None
) -> None:
    memory = host_memory(proc(tmp_path, pressure=pressure))
    assert memory.pressure is None
    assert memory.available_mib == 60 * 1024


def test_without_proc_psutil_says_the_two_figures_that_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=3 << 30, available=1 << 29))
    memory = host_memory(proc(tmp_path, None, None))
    assert (memory.total_mib, memory.available_mib) == (3072.0, 512.0)
    assert (memory.free_mib, memory.page_cache_mib, memory.swap_total_mib) == (None, None, None)


def test_an_old_kernel_without_an_estimate_gets_psutil_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=3 << 30, available=1 << 29))
    assert host_memory(proc(tmp_path, without("MemAvailable"))).available_mib == 512.0


def test_this_machine_s_memory_is_what_psutil_says() -> None:
    memory, said = host_memory(), psutil.virtual_memory()
    assert memory.total_mib == said.total / 1024**2
    assert memory.available_mib == pytest.approx(said.available / 1024**2, rel=0.2)
    assert 0 < memory.available_mib < memory.total_mib

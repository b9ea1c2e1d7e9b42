"""Host memory. On unified memory (GB10, Thor) this is the GPU's memory too, and NVML has no total."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import psutil

from sparktui.schema.live import HostMemory

_PROC = Path("/proc")
_LINE = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
_SOME_10S = re.compile(r"^some avg10=([\d.]+)", re.MULTILINE)
_MIB = 1024 * 1024


def host_memory(proc: Path = _PROC) -> HostMemory:
    """What /proc/meminfo and /proc/pressure/memory say, in MiB and %; each figure that is not there is None.

    Page cache is Cached + Buffers - Shmem: what the kernel can give back at once. cudaMemGetInfo on unified
    memory counts it as used. Where /proc has no total or no available memory, psutil says them. Raises
    OSError where nobody does.
    """
    said = _meminfo(proc / "meminfo")
    total, available = said.get("MemTotal"), said.get("MemAvailable")
    if total is None or available is None:
        memory = psutil.virtual_memory()
        total, available = memory.total / _MIB, memory.available / _MIB
    swap, swap_free = said.get("SwapTotal"), said.get("SwapFree")
    return HostMemory(
        total_mib=total,
        available_mib=available,
        swap_used_mib=0.0 if swap is None or swap_free is None else swap - swap_free,
        free_mib=said.get("MemFree"),
        page_cache_mib=_page_cache(said),
        swap_total_mib=swap,
        pressure=_pressure(proc / "pressure" / "memory"),
    )


def _meminfo(path: Path) -> Mapping[str, float]:
    """MiB by name."""
    return {name: int(kb) / 1024 for name, kb in _LINE.findall(_text(path))}


def _page_cache(said: Mapping[str, float]) -> float | None:
    cached, buffers, shared = (said.get(name) for name in ("Cached", "Buffers", "Shmem"))
    if cached is None:
        return None
    return max(0.0, cached + (buffers or 0.0) - (shared or 0.0))


def _pressure(path: Path) -> float | None:
    """The share of the last 10 s in which some task waited for memory, in %; a kernel may count none."""
    some = _SOME_10S.search(_text(path))
    return float(some[1]) if some else None


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:  # not there, not ours to read, or EOPNOTSUPP of a kernel booted with psi=0
        return ""

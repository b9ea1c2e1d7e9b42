"""Host memory (psutil). On unified memory this is the GPU's memory too, and NVML has no total."""

from __future__ import annotations

import psutil

from sparktui.schema.live import HostMemory

_MIB = 1024 * 1024


def host_memory() -> HostMemory:
    """MemTotal and MemAvailable, and swap in use, in MiB."""
    memory = psutil.virtual_memory()
    try:
        swap = float(psutil.swap_memory().used)
    except (OSError, RuntimeError):
        swap = 0.0
    return HostMemory(memory.total / _MIB, memory.available / _MIB, swap / _MIB)

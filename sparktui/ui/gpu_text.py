"""GPUs and host memory in words. What a machine doesn't tell is left out."""

from __future__ import annotations

from collections.abc import Sequence

from sparktui.client.freshness import gpu_silent_s
from sparktui.schema.live import GpuView, HostMemory, Snapshot
from sparktui.schema.text import printable
from sparktui.ui.format import NOTHING, gib, number

HOT_C = 85.0
_BUSY_PCT = 50.0
_MUCH_SWAP_MIB = 1024.0
_SLOW = 0.7  # of the clock there can be: below it under load something holds the clocks down

Rows = list[tuple[str, str]]


def power_flag(snapshot: Snapshot) -> str:
    """``▲`` while a GPU is throttled, ``°`` while one is hot, else nothing."""
    if gpu_silent_s(snapshot) is not None:
        return ""
    if any(gpu.throttle for gpu in snapshot.gpus):
        return "▲"
    return "°" if any((gpu.temperature_c or 0.0) >= HOT_C for gpu in snapshot.gpus) else ""


def missing(snapshot: Snapshot) -> tuple[str, ...]:
    """Why there is no reading of a GPU now, at length and short; empty when there is one."""
    silent = gpu_silent_s(snapshot)
    if silent is not None:
        return f"GPU silent for {silent:.0f} s", f"{silent:.0f} s silent"
    if snapshot.gpu_problem:
        return printable(snapshot.gpu_problem), "no GPU"
    return () if snapshot.gpus else ("no GPU",)


def throttling(gpus: Sequence[GpuView]) -> str:
    """The reasons that lower clocks now, each once."""
    return ", ".join(dict.fromkeys(printable(reason) for gpu in gpus for reason in gpu.throttle))


def load_words(gpus: Sequence[GpuView]) -> tuple[str, ...]:
    """``61 % 1,890 MHz 54 °C`` of the only GPU; of several the mean use and the highest temperature."""
    if len(gpus) == 1:
        gpu = gpus[0]
        return (_joined(_use(gpu), _mhz(gpu), _heat(gpu)), _joined(_mhz(gpu), _heat(gpu)), _heat(gpu))
    count = f"{len(gpus)} GPUs"
    uses = [gpu.utilization_pct for gpu in gpus if gpu.utilization_pct is not None]
    heats = [gpu.temperature_c for gpu in gpus if gpu.temperature_c is not None]
    use = f"{sum(uses) / len(uses):.0f} %" if uses else ""
    heat = f"{max(heats):.0f} °C" if heats else ""
    return _joined(count, use, heat), _joined(count, heat), count


def clocks(gpu: GpuView) -> str:
    """``1,890 of 1,980 MHz``; ``▼`` where they are low under load."""
    if gpu.sm_mhz is None:
        return ""
    of = "" if gpu.sm_max_mhz is None else f" of {gpu.sm_max_mhz:,.0f}"
    slow = gpu.sm_max_mhz is not None and gpu.sm_mhz < _SLOW * gpu.sm_max_mhz
    busy = (gpu.utilization_pct or 0.0) >= _BUSY_PCT
    return f"{'▼ ' if slow and busy else ''}{gpu.sm_mhz:,.0f}{of} MHz"


def chart_note(snapshot: Snapshot) -> tuple[str, ...]:
    """Below the power curve: why clocks are low, the hottest GPU, the slowest clocks; at length and
    shorter."""
    if nothing := missing(snapshot):
        return nothing
    gpus = snapshot.gpus
    hottest = max(gpus, key=lambda gpu: gpu.temperature_c or 0.0)
    slowest = min(gpus, key=lambda gpu: gpu.sm_mhz or 1e9)
    heat = _heat(hottest)
    if heat and (hottest.temperature_c or 0.0) >= HOT_C:
        heat = f"° {heat} hot"
    why = throttling(gpus)
    parts = [part for part in (f"▲ {why}" if why else "", heat, clocks(slowest)) if part]
    return tuple(" · ".join(parts[:count]) for count in range(len(parts), 0, -1))


def memory_notes(snapshot: Snapshot) -> tuple[str, ...]:
    """GPU memory in use, at length and short; on unified memory what the host has left."""
    gpus, host = snapshot.gpus, snapshot.memory
    if missing(snapshot):
        return ()
    if any(gpu.unified or gpu.memory_total_mib is None for gpu in gpus):
        left = "" if host is None else f"{gib(host.available_mib)} GiB left"
        server = "" if snapshot.server_gpu_mib is None else f"server {gib(snapshot.server_gpu_mib)}"
        return tuple(text for text in (" · ".join(part for part in (server, left) if part), left) if text)
    used = sum(gpu.memory_used_mib or 0.0 for gpu in gpus)
    total = sum(gpu.memory_total_mib or 0.0 for gpu in gpus)
    return (f"{gib(used)} of {gib(total)} GiB", f"{gib(used)} GiB")


def gpu_rows(gpu: GpuView) -> Rows:
    """All that one GPU tells."""
    power = number(gpu.power_w, 0) + ("" if gpu.power_limit_w is None else f" of {gpu.power_limit_w:,.0f}")
    rows = [
        ("name", printable(gpu.name or NOTHING)),
        ("power", NOTHING if gpu.power_w is None else f"{power} W"),
        ("busy", _use(gpu) or NOTHING),
        ("SM clock", clocks(gpu) or NOTHING),
        ("temperature", _hot(gpu)),
        ("throttled", f"▲ {throttling((gpu,))}" if gpu.throttle else "no"),
        ("memory", _memory(gpu)),
    ]
    if gpu.energy_j is not None:
        rows.append(("energy counter", f"{gpu.energy_j / 1000:,.1f} kJ"))
    lost = {reason: ms for reason, ms in gpu.throttled_ms.items() if ms > 0}
    rows += [(f"  {printable(reason)}", f"+{ms:.0f} ms") for reason, ms in lost.items()]
    rows += [(f"  pid {process.pid}", f"{gib(process.used_mib)} GiB") for process in gpu.processes]
    return rows


def host_rows(host: HostMemory, server_gpu_mib: float | None) -> Rows:
    """The host's memory; beside it the server's own GPU memory."""
    rows = [("available", f"{gib(host.available_mib)} of {gib(host.total_mib)} GiB")]
    for label, value in (("free", host.free_mib), ("page cache", host.page_cache_mib)):
        if value is not None:
            rows.append((label, f"{gib(value)} GiB"))
    rows.append(("swap used", _swap(host)))
    if host.pressure is not None:
        mark = "▲ " if host.pressure >= 10 else ""
        rows.append(("pressure", f"{mark}{host.pressure:.1f} % of 10 s waiting (PSI)"))
    if server_gpu_mib is not None:
        rows.append(("server's GPU part", f"{gib(server_gpu_mib)} GiB"))
    return rows


def _swap(host: HostMemory) -> str:
    if host.swap_total_mib == 0:
        return "there is none"
    total = "" if host.swap_total_mib is None else f" of {gib(host.swap_total_mib)}"
    mark = "▲ " if host.swap_used_mib >= _MUCH_SWAP_MIB else ""
    return f"{mark}{gib(host.swap_used_mib)}{total} GiB"


def _memory(gpu: GpuView) -> str:
    if gpu.unified:
        return "unified: the host's"
    if gpu.memory_used_mib is None:
        return NOTHING
    total = "" if gpu.memory_total_mib is None else f" of {gib(gpu.memory_total_mib)}"
    return f"{gib(gpu.memory_used_mib)}{total} GiB"


def _use(gpu: GpuView) -> str:
    return "" if gpu.utilization_pct is None else f"{gpu.utilization_pct:.0f} %"


def _mhz(gpu: GpuView) -> str:
    return "" if gpu.sm_mhz is None else f"{gpu.sm_mhz:,.0f} MHz"


def _heat(gpu: GpuView) -> str:
    return "" if gpu.temperature_c is None else f"{gpu.temperature_c:.0f} °C"


def _hot(gpu: GpuView) -> str:
    heat = _heat(gpu) or NOTHING
    return f"▲ {heat}, hot" if (gpu.temperature_c or 0.0) >= HOT_C else heat


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)

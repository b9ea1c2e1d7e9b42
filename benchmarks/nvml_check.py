"""Our GPU readings against the driver: python benchmarks/nvml_check.py OUT.json [SECONDS of a stage, 60].

On a machine with an NVIDIA GPU, package on the path; beside that it needs nvidia-ml-py and psutil only. Each
stage (idle; the loads of gpu_load.py, ``spin``, ``copy`` and ``burst`` at half the length) is read through
Nvml at 2 Hz, as the app does. Power times seconds is held against the energy counter, and what each NVML call
answered is written down, so that tests can replay this machine. Names of machines, serials and UUIDs are not.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from sparktui.gpu.memory import host_memory
from sparktui.gpu.nvml import Nvml
from sparktui.gpu.sampler import PowerMeter
from sparktui.schema.live import GpuView

INTERVAL_S = 0.5
SETTLE_S = 3.0  # the driver's power is a mean over the last second
STAGES = {"idle": 1.0, "spin": 0.5, "copy": 0.5, "fma": 1.0, "burst": 0.5}  # share of the asked length
MOVING = (
    "power_w", "utilization_pct", "sm_mhz", "memory_used_mib", "temperature_c", "energy_j", "throttle",
    "throttled_ms",
)  # fmt: skip
COLUMNS = ("t", "read_ms", "cpu_ms", *MOVING)
CALLS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    *((name, ()) for name in (
        "nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetPowerUsage", "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit",
        "nvmlDeviceGetPowerManagementDefaultLimit", "nvmlDeviceGetPowerManagementLimitConstraints",
        "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetSupportedClocksEventReasons",
        "nvmlDeviceGetPerformanceState", "nvmlDeviceGetFanSpeed", "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetArchitecture",
        "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetMemoryBusWidth",
    )),
    ("nvmlDeviceGetTemperature", (0,)),
    *(("nvmlDeviceGetClockInfo", (kind,)) for kind in (0, 1, 2)),
    *(("nvmlDeviceGetMaxClockInfo", (kind,)) for kind in (1, 2)),
    *(("nvmlDeviceGetViolationStatus", (policy,)) for policy in (0, 1, 2, 3, 4, 5, 10, 11)),
)  # fmt: skip
# Counters by reason (74 to 81, and three by their numbers in older and newer headers), energy, power.
FIELDS = (74, 75, 76, 77, 78, 79, 80, 81, 83, 185, 186, 251, 252, 253, 269, 270, 271)


def plain(value: Any) -> Any:
    """An NVML answer as JSON: structures by their fields."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    fields = getattr(type(value), "_fields_", None)
    names = [name for name, *_ in fields] if fields else list(vars(value))
    return {name: plain(getattr(value, name)) for name in names}


def answers(library: Any, handle: Any) -> dict[str, Any]:
    """What each call said, or its error, and the milliseconds it took; a field: return, type, value."""
    said: dict[str, Any] = {}
    for name, args in CALLS:
        key = "".join([name, *(f"({arg})" for arg in args)])
        begun = time.perf_counter()
        try:
            answer = {"value": plain(getattr(library, name)(handle, *args))}
        except Exception as exc:  # any error of the driver or the binding is an answer here
            answer = {"error": type(exc).__name__, "code": getattr(exc, "value", None), "says": str(exc)}
        said[key] = answer | {"ms": round(1e3 * (time.perf_counter() - begun), 3)}
    for scope in (0, 1, 2):
        try:
            values = library.nvmlDeviceGetFieldValues(handle, [(field, scope) for field in FIELDS])
            value = {str(v.fieldId): [v.nvmlReturn, v.valueType, v.value.ullVal] for v in values}
            said[f"nvmlDeviceGetFieldValues({scope})"] = {"value": value}
        except Exception as exc:
            said[f"nvmlDeviceGetFieldValues({scope})"] = {"error": type(exc).__name__, "says": str(exc)}
    return said


def row(gpu: GpuView, *times: float) -> list[Any]:
    """What moves, after the reading's own times."""
    values = [getattr(gpu, name) for name in MOVING]
    return [round(value, 4) if isinstance(value, float) else value for value in (*times, *values)]


def watch(nvml: Nvml, seconds: float) -> dict[str, Any]:
    """GPU 0 at 2 Hz over a span: rows of COLUMNS, and its energy in joules by our meter (from power, from
    the counter, from both) and without it (trapezoids; the counter's last value less its first)."""
    meters = {"power_j": PowerMeter(), "counter_j": PowerMeter(), "meter_j": PowerMeter()}
    read: list[tuple[float, GpuView]] = []
    rows: list[list[Any]] = []
    begun = time.monotonic()
    while (at := time.monotonic() - begun) < seconds:
        cpu = time.process_time()
        gpus = nvml.read()
        cpu = time.process_time() - cpu
        took = time.monotonic() - begun - at
        if gpus:
            t = at + took / 2
            meters["power_j"].add((dataclasses.replace(gpus[0], energy_j=None),), t)
            meters["counter_j"].add((dataclasses.replace(gpus[0], power_w=None),), t)
            meters["meter_j"].add(gpus[:1], t)
            read.append((t, gpus[0]))
            rows.append(row(gpus[0], t, 1e3 * took, 1e3 * cpu))
        time.sleep(max(0.0, INTERVAL_S - (time.monotonic() - begun - at)))
    last = [dataclasses.asdict(gpu) for gpu in nvml.read()]
    energy = {name: meter.joules for name, meter in meters.items()}
    return {"energy": energy | naive(read), "problem": nvml.problem, "views": last, "rows": rows}


def naive(read: list[tuple[float, GpuView]]) -> dict[str, float | None]:
    """Energy without our meter, and by how much power times seconds is off the counter (1: it is not)."""
    known = [(t, gpu.power_w, gpu.energy_j) for t, gpu in read]
    power = sum((b[0] - a[0]) * ((a[1] or 0.0) + (b[1] or 0.0)) / 2 for a, b in pairwise(known))
    first, last = (known[0][2], known[-1][2]) if known else (None, None)
    counter = None if first is None or last is None else last - first
    return {"trapezoids_j": power, "delta_j": counter, "ratio": power / counter if counter else None}


def stage(kind: str, nvml: Nvml, library: Any, seconds: float) -> dict[str, Any]:
    """One stage: what was said before and after, and the span once the power has settled."""
    child = None
    handles = [library.nvmlDeviceGetHandleByIndex(i) for i in range(library.nvmlDeviceGetCount())]
    if kind != "idle":
        script = str(Path(__file__).with_name("gpu_load.py"))
        child = subprocess.Popen(
            [sys.executable, script, kind, str(seconds + 3 * SETTLE_S)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        )
        assert child.stdout is not None
        if child.stdout.readline().strip() != "begun":
            return {"error": child.communicate()[1].strip().splitlines()[-1:]}
    try:
        rising = watch(nvml, SETTLE_S)
        calls = [answers(library, handle) for handle in handles]
        steady = watch(nvml, seconds)
        after = [answers(library, handle) for handle in handles]
        early = child is not None and child.poll() is not None
    finally:
        if child is not None:
            child.terminate()
            child.communicate()
    pid = child.pid if child is not None else None
    return {
        "load_pid": pid,
        "load_ended_early": early,
        "rising": rising,
        "steady": steady,
        "calls": calls,
        "calls_after": after,
    }


def brief(result: dict[str, Any]) -> dict[str, Any]:
    """A stage in one line."""
    steady = result.get("steady", {})
    if not steady.get("rows"):
        return {"error": result.get("error") or steady.get("problem")}
    columns = dict(zip(COLUMNS, zip(*steady["rows"], strict=True), strict=True))
    times = {
        name: round(sorted(columns[name])[len(steady["rows"]) // 2], 3) for name in ("read_ms", "cpu_ms")
    }
    last = {name: columns[name][-1] for name in ("power_w", "utilization_pct", "sm_mhz", "temperature_c")}
    return {"ratio": steady["energy"]["ratio"], "rows": len(steady["rows"])} | times | last


def text(value: Any, depth: int = 0) -> str:
    """JSON with a line for each call and each row."""
    inner = "\n" + " " * (depth + 1)
    if isinstance(value, dict) and value and any(isinstance(item, dict | list) for item in value.values()):
        body = ("," + inner).join(
            f"{json.dumps(key)}: {text(item, depth + 1)}" for key, item in value.items()
        )
        return "{" + inner + body + "\n" + " " * depth + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return "[" + inner + ("," + inner).join(text(item, depth + 1) for item in value) + "]"
    return json.dumps(value)


def main() -> None:
    out, seconds = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    nvml = Nvml()
    result: dict[str, Any] = {
        "problem": nvml.problem,
        "interval_s": INTERVAL_S,
        "columns": COLUMNS,
        "memory": dataclasses.asdict(host_memory()),
        "stages": {},
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    if not nvml.problem:
        import pynvml as library

        result["driver"] = plain(library.nvmlSystemGetDriverVersion())
        result["nvml"] = plain(library.nvmlSystemGetNVMLVersion())
        for kind, share in STAGES.items():
            result["stages"][kind] = stage(kind, nvml, library, share * seconds)
            print(kind, json.dumps(brief(result["stages"][kind])), flush=True)
            out.write_text(text(result) + "\n", encoding="utf-8")
    nvml.close()
    out.write_text(text(result) + "\n", encoding="utf-8")
    print(f"{result['problem'] or result['driver']}: written to {out}")


if __name__ == "__main__":
    main()

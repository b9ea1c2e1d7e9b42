"""Our GPU readings against the driver: python benchmarks/nvml_check.py OUT.json [SECONDS of each stage, 12].

On a machine with an NVIDIA GPU, package on the path; beside that it needs nvidia-ml-py only. Each stage
(idle, one thread that spins, copies in GPU memory, arithmetic on every core) is read through Nvml at 2 Hz, as
the app does. The integrated power is held against the energy counter, and what each NVML call answered is
written down, so that tests can replay this machine. The loads are PTX through the driver: no toolkit needed.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparktui.gpu.nvml import Nvml
from sparktui.gpu.sampler import PowerMeter

INTERVAL_S = 0.5
SETTLE_S = 3.0  # the driver's power is a mean over the last second
LAUNCH_S = 0.05
COPY_BYTES = 1 << 30
KINDS = ("spin", "copy", "fma")
SM_COUNT = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
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
PTX = b"""
.version 6.0
.target sm_70
.address_size 64
.visible .entry burn(.param .u64 out, .param .u32 rounds)
{
    .reg .pred %again, %never;
    .reg .f32 %a, %b, %c, %d, %m;
    .reg .u32 %i, %n, %t;
    .reg .u64 %o;
    ld.param.u64 %o, [out];
    ld.param.u32 %n, [rounds];
    cvta.to.global.u64 %o, %o;
    mov.u32 %t, %tid.x;
    cvt.rn.f32.u32 %a, %t;
    mov.f32 %b, 0f3F000000;
    mov.f32 %c, 0f3F400000;
    mov.f32 %d, 0f3F600000;
    mov.f32 %m, 0f3F7FFFF0;
    mov.u32 %i, 0;
AGAIN:
    fma.rn.f32 %a, %a, %m, %m;
    fma.rn.f32 %b, %b, %m, %m;
    fma.rn.f32 %c, %c, %m, %m;
    fma.rn.f32 %d, %d, %m, %m;
    fma.rn.f32 %a, %a, %m, %m;
    fma.rn.f32 %b, %b, %m, %m;
    fma.rn.f32 %c, %c, %m, %m;
    fma.rn.f32 %d, %d, %m, %m;
    add.u32 %i, %i, 1;
    setp.lt.u32 %again, %i, %n;
    @%again bra AGAIN;
    add.f32 %a, %a, %b;
    add.f32 %c, %c, %d;
    add.f32 %a, %a, %c;
    setp.lt.f32 %never, %a, 0f00000000;
    @%never st.global.f32 [%o], %a;
    ret;
}
"""


class Cuda:
    """The few calls of libcuda that a load needs. Raises RuntimeError, or OSError without the library."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL("libcuda.so.1")
        device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
        self._burn = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(self._burn), module, ctypes.c_char_p(b"burn"))
        count = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(count), SM_COUNT, device)
        self.cores = count.value

    def call(self, name: str, *args: Any) -> None:
        """Raises RuntimeError with the driver's own word for what went wrong."""
        code = getattr(self._lib, name)(*args)
        if code:
            said = ctypes.c_char_p()
            self._lib.cuGetErrorName(code, ctypes.byref(said))
            raise RuntimeError(f"{name}: {(said.value or b'?').decode()} ({code})")

    def memory(self, size: int) -> ctypes.c_uint64:
        """The address of so many bytes on the GPU."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def burn(self, out: ctypes.c_uint64, blocks: int, threads: int, rounds: int) -> None:
        """Run the kernel to its end."""
        count = ctypes.c_uint(rounds)
        given = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(count))
        self.call("cuLaunchKernel", self._burn, blocks, 1, 1, threads, 1, 1, 0, None, given, None)
        self.call("cuCtxSynchronize")


def load(kind: str, seconds: float) -> None:
    """Keep GPU 0 busy so long; a line on stdout when it begins."""
    cuda = Cuda()
    source, target = cuda.memory(COPY_BYTES), cuda.memory(COPY_BYTES)
    size = ctypes.c_size_t(COPY_BYTES)

    def copy() -> None:
        for _ in range(32):
            cuda.call("cuMemcpyDtoD_v2", target, source, size)
        cuda.call("cuCtxSynchronize")

    step: Callable[[], None] = copy
    if kind != "copy":
        blocks, threads = (1, 1) if kind == "spin" else (8 * cuda.cores, 256)
        rounds = 1 << 12
        took = 0.0
        while took < LAUNCH_S and rounds < 1 << 28:
            rounds *= 2
            begun = time.monotonic()
            cuda.burn(target, blocks, threads, rounds)
            took = time.monotonic() - begun

        def step() -> None:
            cuda.burn(target, blocks, threads, rounds)

    print("begun", flush=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        step()


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


def watch(nvml: Nvml, seconds: float) -> dict[str, Any]:
    """Our views at 2 Hz over a span; GPU 0's energy by integration and by its counter."""
    by_power, by_counter = PowerMeter(), PowerMeter()
    views: list[dict[str, Any]] = []
    begun = time.monotonic()
    while (now := time.monotonic() - begun) < seconds:
        gpus = nvml.read()
        took = time.monotonic() - begun - now
        by_power.add(tuple(dataclasses.replace(gpu, energy_j=None) for gpu in gpus[:1]), now)
        by_counter.add(tuple(dataclasses.replace(gpu, power_w=None) for gpu in gpus[:1]), now)
        views.append({"t": now, "read_ms": 1e3 * took, "gpus": [dataclasses.asdict(gpu) for gpu in gpus]})
        time.sleep(max(0.0, INTERVAL_S - took))
    power, counter = by_power.joules, by_counter.joules
    return {
        "integrated_j": power,
        "counter_j": counter,
        "ratio": power / counter if power and counter else None,
        "views": views,
    }


def stage(kind: str, nvml: Nvml, library: Any, handles: list[Any], seconds: float) -> dict[str, Any]:
    """One stage: what was said in its midst, and the span once the power has settled."""
    child = None
    if kind != "idle":
        words = [sys.executable, __file__, "--load", kind, str(seconds + 2 * SETTLE_S)]
        env = os.environ | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        assert child.stdout is not None
        if child.stdout.readline().strip() != "begun":
            return {"error": child.communicate()[1].strip().splitlines()[-1:]}
    rising = watch(nvml, SETTLE_S)
    calls = [answers(library, handle) for handle in handles]
    steady = watch(nvml, seconds)
    after = [answers(library, handle) for handle in handles]
    result = {"rising": rising, "calls": calls, "steady": steady, "calls_after": after}
    if child is not None:
        result["pid"] = child.pid
        child.terminate()
        child.communicate()
    return result


def main() -> None:
    if sys.argv[1] == "--load":
        load(sys.argv[2], float(sys.argv[3]))
        return
    out, seconds = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 12.0
    import pynvml as library

    nvml = Nvml()
    result: dict[str, Any] = {"problem": nvml.problem, "interval_s": INTERVAL_S, "stages": {}}
    if not nvml.problem:
        handles = [library.nvmlDeviceGetHandleByIndex(i) for i in range(library.nvmlDeviceGetCount())]
        result["driver"] = plain(library.nvmlSystemGetDriverVersion())
        result["nvml"] = plain(library.nvmlSystemGetNVMLVersion())
        for kind in ("idle", *KINDS):
            result["stages"][kind] = stage(kind, nvml, library, handles, seconds)
            print(kind, json.dumps(brief(result["stages"][kind])), flush=True)
    nvml.close()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{result['problem'] or result['driver']}: written to {out}")


def brief(result: dict[str, Any]) -> dict[str, Any]:
    """A stage in one line."""
    if "error" in result:
        return result
    last = result["steady"]["views"][-1]["gpus"][0]
    shown = ("power_w", "utilization_pct", "sm_mhz", "temperature_c")
    return {"ratio": result["steady"]["ratio"]} | {name: last[name] for name in shown}


if __name__ == "__main__":
    main()

"""Stand-ins for pynvml, filled from what real machines answered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sparktui.gpu.throttle import COUNTERS

NVML = Path(__file__).parent.parent / "fixtures" / "nvml"


MIB = 1024 * 1024
NOT_AVAILABLE = (1 << 64) - 1
FIELD_IDS = {name: 300 + i for i, name in enumerate(COUNTERS)}  # a binding of another release's header


class NvmlError(Exception):
    """As pynvml's: ``value`` is NVML's code."""

    def __init__(self, value: int, text: str) -> None:
        super().__init__(text)
        self.value = value


class NotSupported(NvmlError):
    def __init__(self) -> None:
        super().__init__(3, "Not Supported")


class Lost(NvmlError):
    def __init__(self) -> None:
        super().__init__(15, "GPU is lost")


class Driver:
    """pynvml as far as sparktui asks: each call gives its answer for the GPU, or raises it.

    ``counters`` of a GPU: nanoseconds by the name of the NVML_FI field, as nvmlDeviceGetFieldValues has them.
    """

    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1

    def __init__(self, *gpus: dict[str, Any], init: Exception | None = None) -> None:
        self.gpus = list(gpus)
        self.init = init
        self.calls: list[str] = []
        self.gone: Exception | None = None  # raised by every reading from now on

    def nvmlInit(self) -> None:
        self.calls.append("nvmlInit")
        if self.init is not None:
            raise self.init

    def nvmlShutdown(self) -> None:
        self.calls.append("nvmlShutdown")

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetFieldValues(self, handle: int, fields: list[int]) -> list[SimpleNamespace]:
        self.calls.append("nvmlDeviceGetFieldValues")
        if self.gone is not None:
            raise self.gone
        counters = {FIELD_IDS[name]: ns for name, ns in self.gpus[handle].get("counters", {}).items()}
        return [
            SimpleNamespace(
                fieldId=field,
                nvmlReturn=0 if field in counters else 3,
                value=SimpleNamespace(ullVal=counters.get(field, 0)),
            )
            for field in fields
        ]

    def __getattr__(self, name: str) -> Any:
        if name in FIELD_IDS:
            return FIELD_IDS[name]
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)

        def answer(handle: int, *which: int) -> Any:
            self.calls.append(name)
            if self.gone is not None:
                raise self.gone
            value = self.gpus[handle].get("".join([name, *(f"({n})" for n in which)]), NotSupported())
            if isinstance(value, Exception):
                raise value
            return value

        return answer


def process(pid: int, mib: float | None) -> SimpleNamespace:
    """As pynvml lists one; None: the driver doesn't tell."""
    return SimpleNamespace(pid=pid, usedGpuMemory=None if mib is None else int(mib * MIB))


def recorded_h200() -> dict[str, Any]:
    """The answers of nvml.json; the two structures, which that probe left unprinted, from nvml_probe.json."""
    raw: dict[str, str] = json.loads((NVML / "nvml.json").read_text("utf-8"))
    answers: dict[str, Any] = {
        name: NotSupported() if text.startswith("EXC") else text.strip("'") if "'" in text else int(text)
        for name, text in raw.items()
        if text.startswith(("EXC", "'")) or text.isdigit()
    }
    probe = json.loads((NVML / "nvml_probe.json").read_text("utf-8"))["gpus"][0]
    answers["nvmlDeviceGetMemoryInfo"] = _structure(probe["memory_info"])
    answers["nvmlDeviceGetUtilizationRates"] = _structure(probe["util"])
    return answers


def gb10() -> dict[str, Any]:
    """A DGX Spark under decode: unified memory, no power limit to draw a bar against, no fan."""
    return {
        "nvmlDeviceGetName": b"NVIDIA GB10",
        "nvmlDeviceGetPowerUsage": 32150,
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=94, memory=0),
        "nvmlDeviceGetClockInfo(1)": 2405,
        "nvmlDeviceGetMaxClockInfo(1)": 3003,
        "nvmlDeviceGetTemperature(0)": 61,
        "nvmlDeviceGetTotalEnergyConsumption": 5_000_500,
    }


def thor() -> dict[str, Any]:
    """A Jetson Thor: use and per-process memory, and little else."""
    return {
        "nvmlDeviceGetName": b"NVIDIA Thor",
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=71, memory=0),
        "nvmlDeviceGetComputeRunningProcesses": [process(4242, 63931.0)],
    }


def _structure(text: str) -> SimpleNamespace:
    """``c_nvmlMemory_t(total: 3 B, free: 2 B)`` as pynvml prints it."""
    return SimpleNamespace(**{name: int(value) for name, value in re.findall(r"(\w+): (\d+)", text)})

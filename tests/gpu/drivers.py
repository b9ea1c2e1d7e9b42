"""Stand-ins for pynvml, filled from what real machines answered."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

NVML = Path(__file__).parent.parent / "fixtures" / "nvml"


class NotSupported(Exception):
    def __str__(self) -> str:
        return "Not Supported"


class Driver:
    """pynvml as far as sparktui asks: each call gives its answer for the GPU, or raises it."""

    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1

    def __init__(self, *gpus: dict[str, Any], init: Exception | None = None) -> None:
        self._gpus = gpus
        self._init = init
        self.calls: list[str] = []
        self.gone: Exception | None = None  # raised by every reading from now on

    def nvmlInit(self) -> None:
        self.calls.append("nvmlInit")
        if self._init is not None:
            raise self._init

    def nvmlShutdown(self) -> None:
        self.calls.append("nvmlShutdown")

    def nvmlDeviceGetCount(self) -> int:
        return len(self._gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)

        def answer(handle: int, *which: int) -> Any:
            self.calls.append(name)
            if self.gone is not None:
                raise self.gone
            value = self._gpus[handle].get("".join([name, *(f"({n})" for n in which)]), NotSupported())
            if isinstance(value, Exception):
                raise value
            return value

        return answer


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


def _structure(text: str) -> SimpleNamespace:
    """``c_nvmlMemory_t(total: 3 B, free: 2 B)`` as pynvml prints it."""
    return SimpleNamespace(**{name: int(value) for name, value in re.findall(r"(\w+): (\d+)", text)})

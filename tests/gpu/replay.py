"""What benchmarks/nvml_check.py wrote down on a real machine, as a driver that answers it again."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pynvml

from sparktui.gpu.throttle import COUNTERS
from tests.gpu.drivers import NvmlError

_FIELDS = "nvmlDeviceGetFieldValues"


def driver_answers(calls: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One GPU for ``Driver``, from one entry of a stage's ``calls``."""
    said = {name: _answer(answer) for name, answer in calls.items() if not name.startswith(_FIELDS)}
    fields: Mapping[str, list[int]] = calls.get(f"{_FIELDS}(0)", {}).get("value", {})
    numbers = {name: str(getattr(pynvml, name)) for name in COUNTERS if hasattr(pynvml, name)}
    known = {name: fields[number] for name, number in numbers.items() if number in fields}
    return said | {"counters": {name: value for name, (code, _, value) in known.items() if code == 0}}


def _answer(answer: Mapping[str, Any]) -> Any:
    if "error" in answer:
        return NvmlError(answer["code"] or 0, answer["says"])
    return _structures(answer["value"])


def _structures(value: Any) -> Any:
    if isinstance(value, dict):
        return SimpleNamespace(**value)
    return [_structures(item) for item in value] if isinstance(value, list) else value

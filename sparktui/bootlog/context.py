"""What a rule's severity may depend on: device, GPU family, speculation, prefix caching, vLLM's version.

A caller may know some of it (the GPU's name, whether the profile speculates). What the log states wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sparktui.bootlog.lines import Line

_ENGINE = "LLM engine (v"
_PLATFORM = re.compile(r"^Automatically detected platform (\w+)\.")
_DEVICE = re.compile(r"\bdevice_config=(\w+)")
_PREFIX_CACHING = re.compile(r"\benable_prefix_caching=(True|False)\b")
_NAME_IN_PATH = re.compile(r"^Using default .{1,400}device_name=([\w-]+)")
_TORCH_GPU = re.compile(
    r"^\s*Found GPU\d+ (?P<name>.{1,80}?) which is of (?:cuda|compute) capability (\d+)\.(\d+)"
)
_SYMM_MEM = re.compile(r"^SymmMemCommunicator: Device capability (\d+)\.(\d+) not supported")
_PTXAS = re.compile(r"^ptxas\S* fatal\s*: Value 'sm_(\d+)(\d)[af]?' is not defined")
_FAMILIES: tuple[tuple[re.Pattern[str], tuple[int, int]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), capability)
    for pattern, capability in (
        (r"\bGB10\b", (12, 1)),
        (r"RTX (?:PRO \d{4}\b.*Blackwell|50[5-9]0)|RTX PRO \d{4} Blackwell", (12, 0)),
        (r"\bG?B300\b", (10, 3)),
        (r"\bG?B200\b|\bGB?200\b", (10, 0)),
        (r"\bG?H(?:100|200|800|20)\b", (9, 0)),
        (r"\bL(?:4|20|40S?)\b|RTX (?:40[5-9]0|\d000 Ada)", (8, 9)),
        (r"\bA100\b|\bA800\b|\bA30\b", (8, 0)),
        (r"RTX (?:30[5-9]0|A\d{4})\b|\bA(?:10|40|16)\b", (8, 6)),
    )
)


def capability_of(gpu: str) -> tuple[int, int] | None:
    """Compute capability of a GPU by its name (``NVIDIA GB10``, ``NVIDIA_H200``), where the name is known."""
    name = gpu.replace("_", " ")
    return next((capability for pattern, capability in _FAMILIES if pattern.search(name)), None)


class Context:
    """Grows with the log; None is not known (yet). Feed it while the server boots: later lines quote."""

    __slots__ = ("capability", "cpu", "method", "prefix_caching", "speculating", "version")

    def __init__(self, gpu: str = "", speculating: bool | None = None) -> None:
        self.cpu: bool | None = None
        self.capability = capability_of(gpu)
        self.speculating = speculating
        self.prefix_caching: bool | None = None
        self.version: str | None = None
        self.method: str | None = None  # of speculation

    def read(self, line: Line) -> None:
        """Learn from a line."""
        message = line.message
        if _ENGINE in message and message.startswith("Initializing a"):
            self._engine(message)
        elif message.startswith("CPU KV cache size"):  # older releases say GPU on a CPU, too
            self.cpu = True
        elif message.startswith("Automatically detected") and (found := _PLATFORM.match(message)):
            self.cpu = found[1] == "cpu"
        elif message.startswith("Using default") and (found := _NAME_IN_PATH.match(message)):
            self.capability = capability_of(found[1]) or self.capability
        elif "capability" in message or message.startswith("ptxas"):
            self._capability(message)

    def learn(self, facts: Mapping[str, Any]) -> None:
        """Take over what the boot's facts state."""
        if (version := facts.get("vllm_version")) is not None:
            self.version = str(version)
        if (device := facts.get("device")) is not None:
            self.cpu = device == "cpu"
        if (method := facts.get("spec_method")) is not None:
            self.method, self.speculating = str(method), True
        elif facts.get("num_speculative_tokens"):
            self.speculating = True
        if isinstance(caching := facts.get("prefix_caching"), bool):
            self.prefix_caching = caching

    def holds(self, situation: str) -> bool | None:
        """Whether one of SITUATIONS is the case; None when that is not known."""
        return SITUATIONS[situation](self)

    def _engine(self, message: str) -> None:
        if (device := _DEVICE.search(message)) is not None:
            self.cpu = device[1] == "cpu"
        if (caching := _PREFIX_CACHING.search(message)) is not None:
            self.prefix_caching = caching[1] == "True"
        if "speculative_config=None" in message:
            self.speculating = False
        elif "speculative_config=" in message:
            self.speculating = True

    def _capability(self, message: str) -> None:
        for pattern in (_TORCH_GPU, _SYMM_MEM, _PTXAS):
            if (found := pattern.match(message)) is not None:
                major, minor = found.groups()[-2:]
                self.capability = int(major), int(minor)


def _family(*majors: int) -> Callable[[Context], bool | None]:
    def holds(context: Context) -> bool | None:
        if context.capability is None:
            return False if context.cpu else None
        return context.capability[0] in majors

    return holds


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


# The words that ``weighs`` may use. sm_12x: GB10 and RTX Blackwell; sm_10x: B200, B300; sm_9x: H100, H200.
SITUATIONS: Mapping[str, Callable[[Context], bool | None]] = {
    "cpu": lambda context: context.cpu,
    "sm_9x": _family(9),
    "sm_10x": _family(10),
    "sm_12x": _family(12),
    "speculating": lambda context: context.speculating,
    "not speculating": lambda context: _not(context.speculating),
    "no prefix caching": lambda context: _not(context.prefix_caching),
}

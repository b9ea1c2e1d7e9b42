"""Boot phases from log lines: where a booting server is, how long each phase took, how far its bar is.

A phase begins with its first marker in vLLM's own words (0.10 to 0.33) and lasts until a later one begins.
Phases may be skipped (no compile or capture under --enforce-eager) and never go backwards.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sparktui.bootlog.lines import Line
from sparktui.schema.live import BootPhase

PHASES = (
    "launch",  # process start, imports
    "config",  # arguments understood
    "engine",  # engine process starts
    "weights",
    "compile",  # torch.compile
    "profile",  # memory profiling
    "kv",  # KV cache
    "warm-up",  # kernels, autotuning
    "capture",  # CUDA graphs
    "server",  # engine done; the API server starts
    "ready",
)

_MARKERS: tuple[tuple[str, str], ...] = (
    ("config", r"^non-default args:"),
    ("engine", r"^Initializing a V1 LLM engine"),
    ("weights", r"^Starting to load model|^Loading model from scratch|^Loading \w+ checkpoint shards"),
    (
        "compile",
        r"^(?:\[\w+\] )?Using cache directory: \S+ for vLLM's torch\.compile"
        r"|^(?:\[\w+\] )?Dynamo bytecode transform time|^Warming up model for the compilation",
    ),
    (
        "profile",
        r"^(?:\[\w+\] )?Initial profiling/warmup run took|^Profiling CUDA graph memory"
        r"|^Estimated CUDA graph memory|^Available KV cache memory",
    ),
    ("kv", r"^\w+ KV cache size:"),
    (
        "warm-up",
        r"FlashInfer autotun|Autotuning process starts|DeepGEMM warmup|^(?:\w+ )?JIT kernel warmup"
        r"|^Warming up FlashInfer",
    ),
    ("capture", r"^Capturing [\w /-]*CUDA graphs"),
    ("server", r"^Graph capturing finished|^init engine \(|^Starting vLLM (?:API )?server"),
    ("ready", r"^Application startup complete"),
)
_ENTER = tuple((PHASES.index(name), re.compile(pattern)) for name, pattern in _MARKERS)
_WEIGHT_BAR = re.compile(
    r"^(?:Loading \w+ checkpoint|Multi-thread loading) shards: +\d+% Completed \| (\d+)/(\d+)"
)
_CAPTURE_BAR = re.compile(r"^(Capturing [\w /-]*CUDA graphs \([^)]*\)): +\d+%.*?(\d+)/(\d+)")
_CAPTURE_PLAN = re.compile(r"^Profiling CUDA graph memory: .*")
_PLANNED = re.compile(r"=(\d+) \(largest")


class _Entry(NamedTuple):
    phase: int  # index in PHASES
    start: float


class PhaseTracker:
    """Feed it lines with ``t``, seconds since the server started; it keeps no clock.

    It begins in ``launch`` at 0.
    """

    def __init__(self) -> None:
        self._entries = [_Entry(0, 0.0)]
        self._progress: dict[int, float] = {}
        self._bars: dict[str, tuple[int, int]] = {}
        self._planned = 0

    @property
    def is_ready(self) -> bool:
        return PHASES[self._entries[-1].phase] == "ready"

    @property
    def phases(self) -> tuple[BootPhase, ...]:
        """The phases entered so far, in order. ``ready`` is an instant: its start is the boot's duration."""
        last = self._entries[-1]
        ends = [entry.start for entry in self._entries[1:]] + ([last.start] if self.is_ready else [None])
        return tuple(
            BootPhase(
                PHASES[entry.phase],
                entry.start,
                None if end is None else max(0.0, end - entry.start),
                self._progress.get(entry.phase),
            )
            for entry, end in zip(self._entries, ends, strict=True)
        )

    def feed(self, line: Line, t: float) -> None:
        """Take a line, or a progress bar's unfinished one, seen at ``t``."""
        if self.is_ready:
            return
        for index, pattern in _ENTER:
            if index > self._entries[-1].phase and pattern.search(line.message):
                self._entries.append(_Entry(index, t))
                break
        self._read_bars(line.message)

    def ready(self, t: float) -> None:
        """The caller knows that the server answers (for logs that never say so)."""
        if not self.is_ready:
            self._entries.append(_Entry(len(PHASES) - 1, t))

    def _read_bars(self, message: str) -> None:
        if (found := _WEIGHT_BAR.match(message)) is not None:
            self._raise("weights", int(found[1]), int(found[2]))
        elif (found := _CAPTURE_BAR.match(message)) is not None:
            self._bars[found[1]] = (int(found[2]), int(found[3]))
            total = max(self._planned, sum(of for _, of in self._bars.values()))
            self._raise("capture", sum(done for done, _ in self._bars.values()), total)
        elif _CAPTURE_PLAN.match(message) is not None:
            self._planned = sum(int(count) for count in _PLANNED.findall(message))

    def _raise(self, phase: str, done: int, total: int) -> None:
        """A drafter's bar starts at 0 again: progress stays where it was."""
        if total > 0:
            index = PHASES.index(phase)
            self._progress[index] = max(self._progress.get(index, 0.0), min(1.0, done / total))

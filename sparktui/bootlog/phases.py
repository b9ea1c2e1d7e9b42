"""Boot phases from log lines: where a booting server is, how long each phase took, how far its bars are.

A phase begins with its first marker in vLLM's own words (0.5 to 0.33) and lasts until a later one begins.
Phases may be skipped (no compile or capture under --enforce-eager) and never go backwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import NamedTuple

from sparktui.bootlog import quiet
from sparktui.bootlog.lines import Line
from sparktui.bootlog.progress import Bars, planned_graphs, shards_bar, tqdm_bar
from sparktui.schema.live import BootPhase, Silence

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
    "server",  # graphs captured or engine done; the API server starts
    "ready",
)
_INDEX = {name: index for index, name in enumerate(PHASES)}
_KV, _PROFILE = _INDEX["kv"], _INDEX["profile"]

_TUNING = (
    r"(?:\w+ )?FlashInfer autotun"
    r"|(?:\d{4}-\d\d-\d\d .{1,80}: )?\[Auto[Tt]uner\]: (?:Autotuning process starts|Tuning )"
)
_MARKERS = (
    ("config", r"non-default args:|args: Namespace\("),
    ("engine", r"Initializing an? (?:V\d )?LLM engine"),
    (
        "weights",
        r"Starting to load model|Loading model from scratch|(?:Multi-thread l|L)oading [\w ]+: +\d+% C",
    ),
    (
        "compile",
        r"Starting torch\.compile|Using cache directory: \S+ for vLLM's torch\.compile"
        r"|vLLM's torch\.compile cache is disabled|Dynamo bytecode transform time"
        r"|Directly load|Compiling a graph for|Warming up model for the compilation",
    ),
    ("profiled", r"Initial profiling/warmup run took"),
    (
        "profile",
        r"Profiling CUDA graph memory|Estimated CUDA graph memory|Available KV cache memory"
        r"|Memory profiling takes|Initial free memory",
    ),
    ("kv", r"\w+ KV cache size:|# \w+ blocks: \d"),
    (
        "warm_up",
        rf"{_TUNING}|DeepGEMM warmup|(?:\w+ )?JIT kernel warmup|Compiling CuTeDSL kernels"
        r"|Compile and warming up model for size|Warming up (?!model for the compilation|done\b)|Warmed ",
    ),
    ("capture", r"Capturing (?:[\w /-]*CUDA graph|the model for CUDA graphs|cudagraphs)"),
    ("server", r"Graph capturing finished|init engine \(|Starting vLLM (?:API )?server"),
    ("ready", r"Application startup complete|Uvicorn running on "),
    ("serving", r"(?:Engine \d+: |\d+ Engines Aggregated: )?Avg prompt throughput:"),
)
_ENTER = re.compile(r"(?:\[[\w-]+\] )?(?:" + "|".join(f"(?P<{name}>{p})" for name, p in _MARKERS) + ")")
_AFTER_KV = {"warm-up", "capture"}  # while memory is profiled there are warm-ups and trial captures, too
_DRAFTER = re.compile(r"\bspeculative_config=SpeculativeConfig\(method='(?!ngram|suffix)[\w-]+', model='")
_NO_PORT = re.compile(r"\[Errno \d+\] error while attempting to bind on address")
_BINDS_S = 30.0
_WAITS = "No available shared memory broadcast block found"  # one process waits for another, once a minute


class _Entry(NamedTuple):
    phase: int  # index in PHASES
    start: float


class PhaseTracker:
    """Feed it lines with ``t``, seconds since the server started; it keeps no clock.

    It begins in ``launch`` at 0.
    """

    def __init__(self) -> None:
        self._entries = [_Entry(0, 0.0)]
        self._bars = {_INDEX[name]: Bars() for name in ("weights", "warm-up", "capture")}
        self._planned = 0
        self._quiet = [0.0] * len(PHASES)
        self._heard = 0.0  # when something was printed last
        self._reason = quiet.default_reason(PHASES[0])
        self._drafter = False  # another model will be compiled
        self._profiled: float | None = None  # when a model was compiled that may not be the last
        self._told_ready = False
        self._no_port = False

    @property
    def is_ready(self) -> bool:
        """False again after a bind error: uvicorn starts the application before it takes the port."""
        return PHASES[self._entries[-1].phase] == "ready"

    @property
    def phases(self) -> tuple[BootPhase, ...]:
        """The phases entered so far, in order. ``ready`` is an instant: its start is the boot's duration."""
        found = []
        for entry, after in zip_longest(self._entries, self._entries[1:]):
            is_ready = PHASES[entry.phase] == "ready"
            end = after.start if after else entry.start if is_ready else None
            found.append(
                BootPhase(
                    PHASES[entry.phase],
                    entry.start,
                    None if end is None else max(0.0, end - entry.start),
                    self._progress(entry.phase),
                    self._quiet[entry.phase],
                )
            )
        return tuple(found)

    def feed(self, line: Line, t: float) -> None:
        """Take a line, or a progress bar's unfinished one, seen at ``t``."""
        message = line.message
        if self.is_ready:
            if self._may_lose_port(line, t):
                self._entries.pop()
                self._no_port = True
            return
        if message.startswith(_WAITS):
            return
        found = _ENTER.match(message)
        if found is not None and found.lastgroup is not None:
            self._mark(found.lastgroup, t)
        self._hear(t)
        self._read_bars(line)
        self._reason = quiet.telling(self._current, line) or self._reason
        if self._current == "engine" and not self._drafter:
            self._drafter = _DRAFTER.search(message) is not None

    def _may_lose_port(self, line: Line, t: float) -> bool:
        """A bind error at once after the application's start; later ones are somebody else's."""
        if self._told_ready or not line.message.startswith("[Errno ") or line.level in ("INFO", "WARNING"):
            return False
        return t - self._entries[-1].start <= _BINDS_S and _NO_PORT.match(line.message) is not None

    def ready(self, t: float) -> None:
        """The caller knows that the server answers (for logs that never say so, or said otherwise)."""
        self._told_ready = True
        if not self.is_ready:
            self._enter(_INDEX["ready"], t)
            self._hear(t)

    def silence(self, t: float, before: Mapping[str, float]) -> Silence | None:
        """That a booting server has printed nothing for a while, and why that may be.

        ``before``: seconds of the longest silence by phase in earlier boots.
        """
        seconds = t - self._heard
        if self.is_ready or self._no_port or seconds <= quiet.QUIET_S:
            return None
        phases = [self._current] if self._profiled is None else [self._current, PHASES[_PROFILE]]
        before_s = max((before[phase] for phase in phases if phase in before), default=None)
        return Silence(seconds, quiet.weighed(self._reason, seconds, before_s), before_s)

    @property
    def _current(self) -> str:
        return PHASES[self._entries[-1].phase]

    def _mark(self, marker: str, t: float) -> None:
        """A marker was seen; not each one begins its phase."""
        name = {"profiled": "profile", "warm_up": "warm-up", "serving": "ready"}.get(marker, marker)
        if marker == "profiled" and self._drafter and self._profiled is None:
            self._profiled = t  # the drafter may be compiled next
        elif name == "compile" and self._profiled is not None:
            self._profiled, self._drafter = None, False
        elif not (name in _AFTER_KV and self._entries[-1].phase < _KV) and not (
            name == "ready" and self._no_port
        ):
            if self._profiled is not None and _INDEX[name] >= _PROFILE:
                self._enter(_PROFILE, self._profiled)
                self._profiled = None
            self._enter(_INDEX[name], self._heard if marker == "serving" else t)

    def _enter(self, phase: int, t: float) -> None:
        if phase > self._entries[-1].phase:
            self._entries.append(_Entry(phase, t))
            self._reason = quiet.default_reason(PHASES[phase])

    def _hear(self, t: float) -> None:
        """A silence belongs to the phase in which it began."""
        if t <= self._heard:
            return
        begun = (entry.phase for entry in reversed(self._entries) if entry.start <= self._heard)
        phase = next(phase for phase in begun if PHASES[phase] != "ready")
        self._quiet[phase] = max(self._quiet[phase], t - self._heard)
        self._heard = t

    def _read_bars(self, line: Line) -> None:
        phase, message = self._entries[-1].phase, line.message
        planned = planned_graphs(message)
        if planned is not None:
            self._planned = planned
        if phase not in self._bars:
            return
        bar = shards_bar(message) if PHASES[phase] == "weights" else tqdm_bar(message)
        if bar is not None:
            self._bars[phase].see(line, bar)

    def _progress(self, phase: int) -> float | None:
        bars = self._bars.get(phase)
        return bars.share(self._planned if PHASES[phase] == "capture" else 0.0) if bars else None

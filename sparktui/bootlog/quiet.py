"""Why a booting server may print nothing for a while: data, by phase and by the last line that tells.

A reason says what vLLM does meanwhile, and never that it hangs: only this server's own history tells what
is long.
"""

from __future__ import annotations

import re

from sparktui.bootlog.lines import Line

QUIET_S = 10.0  # shorter silences are not worth a word

_IMPORTS = "Python imports vLLM: nothing is printed for 5 to 30 s"
_MEASURES = "memory is measured with the largest batch"
_WARM = "kernels are compiled and warmed up, which may take minutes"
_TUNES = "FlashInfer tries out its kernels and prints nothing: minutes are normal"
_ENDS = "an error was printed; the processes are being ended"

_DEFAULT = {
    "launch": _IMPORTS,
    "config": "the model's configuration is read, from the hub if it isn't here: downloads may print nothing",
    "engine": "the engine's processes import vLLM again and find each other",
    "weights": "weights are read, from the hub if they aren't here: downloads may print nothing",
    "compile": "torch.compile works, minutes where its cache is cold",
    "profile": _MEASURES,
    "kv": "the KV cache is laid out and kernels are warmed up",
    "warm-up": _WARM,
    "capture": "CUDA graphs are captured",
    "server": "the API server starts",
}
_TELLING: dict[str, tuple[tuple[str, str], ...]] = {
    "launch": (
        (
            r"Unable to find image|[\w./:@-]+: Pulling |[0-9a-f]{12}: |Status: ",
            "docker pulls the image and starts it",
        ),
    ),
    "config": (
        (
            r"Using max model len|Chunked prefill is enabled|Asynchronous scheduling is|Enforce eager",
            "the engine's process starts and imports vLLM once more: 5 to 30 s",
        ),
    ),
    "engine": (
        (r"vLLM is using nccl|rank \d+ in world size", "the GPUs are set up to work together"),
        (r"DP group leader|OpenMP thread binding", "workers start and import vLLM once more: 5 to 30 s"),
    ),
    "weights": (
        (
            r"(?:Multi-thread l|L)oading [\w ]+: +\d+%",
            "weights are read: nothing is printed while a shard is",
        ),
        (r"Loading weights took", "weights are rearranged for the kernels that were chosen"),
        (r"Loading drafter model", "the drafter's weights are read"),
        (r"Model loading took", "the model is traced for torch.compile, or run once to measure memory"),
    ),
    "compile": (
        (r"Dynamo bytecode transform", "graphs are compiled, minutes where the cache is cold"),
        (r"torch\.compile (?:took|takes)|Initial profiling", _MEASURES),
    ),
    "profile": ((r"Profiling CUDA graph memory", "a few CUDA graphs are captured to measure their memory"),),
    "warm-up": (
        (r".*FlashInfer autotun|.*Autotuning process starts|\[Auto[Tt]uner\]: Tuning", _TUNES),
        (r".*Autotuning process ends", _WARM),
        (r"DeepGEMM warmup", "DeepGEMM compiles its kernels: minutes are normal"),
    ),
    "server": (
        (
            r"Graph capturing finished|CUDA graph pool memory",
            "the engine warms up once more after the CUDA graphs",
        ),
        (r"init engine \(|Starting vLLM", _DEFAULT["server"]),
    ),
}
_ERROR = re.compile(r"Traceback \(most recent call last\):|EngineCore failed to start|WorkerProc failed")
_TAG = r"(?:\[[\w-]+\] )?"
_MARKS = {
    phase: tuple((re.compile(_TAG + pattern), reason) for pattern, reason in pairs)
    for phase, pairs in _TELLING.items()
}
_LONGER = "longer than in any earlier boot here"


def default_reason(phase: str) -> str:
    """Why ``phase`` may be silent before a line of it has told more."""
    return _DEFAULT.get(phase, "")


def telling(phase: str, line: Line) -> str | None:
    """What the silence after ``line`` means, where it means anything else than before."""
    message = line.message
    for pattern, reason in _MARKS.get(phase, ()):
        if pattern.match(message):
            return reason
    if line.level in (None, "ERROR", "CRITICAL") and _ERROR.match(message):
        return _ENDS
    return None


def weighed(reason: str, seconds: float, before_s: float | None) -> str:
    """``reason``; with more than twice the longest silence of earlier boots, that too."""
    if before_s is None or seconds <= 2 * before_s:
        return reason
    return f"{reason}; {_LONGER}"

"""The last lines of an engine's boot: memory, KV cache, warm-up, CUDA graphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from sparktui.sim.boot.facts import BootFacts
from sparktui.sim.boot.logfile import Log
from sparktui.sim.boot.moments import Moment, bar, engine, mark

_WARNING_LINES = {  # where each of vLLM's checks logs its warning
    "FULL_AND_PIECEWISE": "compilation.py:1411",
    "because attention": "compilation.py:1438",
    "is not compatible": "vllm.py:1315",
}
_WITHOUT_DRAFTER = ("", "ngram", "ngram_gpu", "suffix")
_CAPTURE = 0.14  # share of the boot


def memory(facts: BootFacts) -> Iterator[Moment]:
    """The graphs' mode, what is left for the KV cache, and how many tokens that holds."""
    for warning in facts.plan.warnings:
        level = "INFO" if "is not compatible" in warning else "WARNING"
        yield engine(0.02 / len(facts.plan.warnings), _warning_line(facts, warning), warning, level)
    if facts.plan.mode != "none" and facts.plan.runner == "V1" and facts.release.since("0.19.0"):
        yield engine(0, "gpu_model_runner.py:6681", f"Profiling CUDA graph memory: {_groups(facts)}")
        yield engine(0.01, "gpu_model_runner.py:6806", "Estimated CUDA graph memory: 0.11 GiB total")
    yield engine(0.02, "gpu_worker.py:563", f"Available KV cache memory: {facts.shape.kv_gib:.2f} GiB")
    yield mark("kv")
    size = f"GPU KV cache size: {facts.kv_tokens:,} tokens"
    most = (
        f"Maximum concurrency for {facts.max_model_len:,} tokens per request: "
        f"{facts.kv_tokens / facts.max_model_len:.2f}x"
    )
    if facts.release.since("0.28.0"):
        yield engine(0, "kv_cache_utils.py:2235", f"{size}, {most}")
    else:
        yield engine(0, "kv_cache_utils.py:2235", size)
        yield engine(0, "kv_cache_utils.py:2236", most)


def warm_up(facts: BootFacts) -> Iterator[Moment]:
    """FlashInfer's autotuner, which logs in its own format, and its attention."""
    if facts.eager or facts.backend != "FLASHINFER":
        return
    for line, word in ((622, "starts ..."), (641, "ends")):
        yield Moment(0, _flashinfer(line, word))
    if facts.plan.runner == "V1":
        yield engine(0, "kernel_warmup.py:191", "Warming up FlashInfer attention.")


def capture(facts: BootFacts) -> Iterator[Moment]:
    """Bars in the model runner's words, and what follows them."""
    if facts.plan.mode == "none":
        if not facts.eager:
            yield _skipped(facts)
        return
    seconds = facts.seconds * _CAPTURE
    bars = _bars(facts)
    for title, total in bars:
        yield from bar(title, total, _CAPTURE / len(bars), seconds / len(bars))
    file = "model_runner.py:791" if facts.plan.runner == "V2" else "gpu_model_runner.py:6913"
    yield engine(0, file, f"Graph capturing finished in {max(1, round(seconds))} secs, took 0.17 GiB")
    if facts.release.since("0.21.0"):
        yield engine(0.01, "jit_monitor.py:79", _jit_monitor(facts))


def _warning_line(facts: BootFacts, warning: str) -> str:
    """Up to 0.19 the checks were in the model runner; the line numbers there are not known."""
    file = next(
        (file for word, file in _WARNING_LINES.items() if word in warning[80:]), "compilation.py:1458"
    )
    return file if facts.release.since("0.21.0") else "gpu_model_runner.py:4902"


def _groups(facts: BootFacts) -> str:
    sizes = {"PIECEWISE": facts.plan.sizes, "FULL": facts.plan.full_sizes}
    return ", ".join(f"{mode}={len(of)} (largest={of[-1]})" for mode, of in sizes.items() if of)


def _bars(facts: BootFacts) -> list[tuple[str, int]]:
    """Title and number of graphs of each bar."""
    mixed, decode = ("PIECEWISE", "FULL")
    if facts.plan.runner == "V1":
        mixed, decode = "mixed prefill-decode, PIECEWISE", "decode, FULL"
    bars = [(f"Capturing CUDA graphs ({mixed})", len(facts.plan.sizes))]
    if facts.plan.full_sizes:
        bars.append((f"Capturing CUDA graphs ({decode})", len(facts.plan.full_sizes)))
    return [*bars, *_drafter_bars(facts)]


def _drafter_bars(facts: BootFacts) -> list[tuple[str, int]]:
    """Those of the V2 runner's speculators; under V1 the drafter is captured with the target.

    Words of 0.32's ``v1/worker/gpu/spec_decode``: DFlash and DSpark draft in one pass, the others in a first
    one and, from k=2 on, in the steps that follow.
    """
    if facts.plan.runner != "V2" or facts.method in _WITHOUT_DRAFTER or not facts.plan.full_sizes:
        return []
    if facts.method in ("dflash", "dspark"):
        names = [facts.method]
    else:
        names = ["prefill", "decode"] if facts.k > 1 else ["prefill"]
    return [(f"Capturing {name} CUDA graphs (FULL)", len(facts.plan.full_sizes)) for name in names]


def _skipped(facts: BootFacts) -> Moment:
    text = (
        "Skipping CUDA graph capture. To turn on CUDA graph capture, ensure `cudagraph_mode` was not "
        "manually set to `NONE`"
    )
    file = "model_runner.py:757" if facts.plan.runner == "V2" else "gpu_model_runner.py:6816"
    return engine(0, file, text, "WARNING")


def _jit_monitor(facts: BootFacts) -> str:
    if facts.release.since("0.27.0"):
        return "Kernel JIT monitor activated; monitored JIT compilations during inference will use mode=warn."
    return (
        "Kernel JIT monitor activated — Triton JIT compilations during inference will be logged as warnings."
    )


def _flashinfer(line: int, word: str) -> Callable[[Log], None]:
    def emit(log: Log) -> None:
        stamp = f"{time.strftime('%Y-%m-%d %H:%M:%S')},{time.time_ns() // 10**6 % 1000:03d}"
        text = (
            f"{stamp} - INFO - autotuner.py:{line} - flashinfer.jit: [Autotuner]: Autotuning process {word}"
        )
        log.engine_raw(text)

    return emit

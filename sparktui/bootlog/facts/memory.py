"""Memory (GiB) and time (s) of a boot."""

from __future__ import annotations

from sparktui.bootlog.facts.rows import Row, count, largest, number, row, text, weak

_GIB = r"(-?[\d.]+)"
_KV_TOKENS = r"^\w+(?: \+ host)? KV cache size: ([\d,]+) tokens"

ROWS: tuple[Row, ...] = (
    row("KV cache size", _KV_TOKENS, kv_cache_tokens=count()),
    row(
        "Maximum conc",
        r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x",
        max_concurrency=number(),
    ),
    row("KV cache memory", rf"^Available KV cache memory: {_GIB} GiB", kv_available_gib=number()),
    row(
        "GiB for KV cache",
        rf"^(?:Explicitly|Auto) set \({_GIB}/{_GIB}\) GiB for KV cache",
        kv_available_gib=number(),
    ),
    row(
        "memory for KV Cache",
        rf"^Initial free memory {_GIB} GiB, reserved {_GIB} GiB memory for KV Cache",
        gpu_free_gib=number(),
        kv_available_gib=number(2),
    ),
    row("to store kv cache", r"^Using (\S+) data type to store kv cache", kv_cache_dtype=text()),
    row("Model loading", rf"^Model loading took {_GIB} Gi?B", weights_gib=number()),
    row("Model loading", r"^Model loading took .* and ([\d.]+) seconds", load_s=number()),
    row("Loading weights", r"^Loading weights took ([\d.]+) seconds", load_s=weak("load_s", number())),
    row(
        "Checkpoint size",
        rf"Checkpoint size: {_GIB} GiB",
        checkpoint_gib=weak("checkpoint_gib", number()),
    ),
    row(
        "CUDA graph mem",
        rf"^Estimated CUDA graph memory: {_GIB} GiB total",
        cudagraph_estimate_gib=number(),
    ),
    row(
        "Graph capturing",
        rf"^Graph capturing finished in ([\d.]+) secs(?:, took {_GIB} GiB)?",
        capture_s=number(),
        cudagraph_memory_gib=number(2),
    ),
    row("torch.compile", r"^torch\.compile (?:takes|took) ([\d.]+) s", compile_s=largest("compile_s")),
    row("init engine", r"^init engine .*\(compilation: ([\d.]+) s", compile_s=number()),
    row("init engine", r"^init engine \([^)]*\) took ([\d.]+) s", init_engine_s=number()),
    # When it serves, "on startup. Desired …"; when it gives up, "on startup is less than desired …".
    row(
        "Free memory on",
        rf"Free memory on device [\w:]* ?\({_GIB}/{_GIB} GiB\) on startup.{{0,300}}? \([\d.]+, {_GIB} GiB\)",
        gpu_free_gib=number(),
        gpu_total_gib=number(2),
        gpu_requested_gib=number(3),
    ),
)

"""CUDA graphs in effect: the mode, how many were captured, the largest size, and the drafter's own.

The engine's config dump and the header of the cudagraph table show the mode that was asked for, so neither is
read. vLLM resolves the mode from a config through every downgrade to what it captures; each step logs a line,
and later lines know more: overrides of the config, the resolution against the attention backends, the
profiling line (V1 runner), the capture bars.
"""

from __future__ import annotations

import re

from sparktui.bootlog.facts.rows import Facts, Found, Row, constant, count, has_drafter, row

_DECODE_ONLY = "FULL_DECODE_ONLY"
_BOTH = "FULL_AND_PIECEWISE"
_GROUP = re.compile(r"(FULL|PIECEWISE)=(\d+) \(largest=(\d+)\)")


def _mode(found: Found, _: Facts) -> str:
    return found[1].removeprefix("CUDAGraphMode.")


def _full_only(facts: Facts) -> str:
    """Only FULL graphs: for decode steps, or for all. The line before or else what was asked for tells."""
    before = facts.get("cudagraph_mode")
    if before in ("FULL", _DECODE_ONLY):
        return str(before)
    args = facts.get("non_default_args")
    config = args.get("compilation_config") if isinstance(args, dict) else None
    asked = config.get("cudagraph_mode") if isinstance(config, dict) else None
    return _DECODE_ONLY if _DECODE_ONLY in str(asked) else "FULL"


def _profiled_mode(found: Found, facts: Facts) -> str | None:
    kinds = {kind for kind, graphs, _ in _GROUP.findall(found[1]) if int(graphs)}
    if len(kinds) == 2:
        return _BOTH
    return _full_only(facts) if "FULL" in kinds else next(iter(kinds), None)


def _profiled_graphs(found: Found, _: Facts) -> dict[str, int] | None:
    return {kind: int(graphs) for kind, graphs, _largest in _GROUP.findall(found[1])} or None


def _profiled_largest(found: Found, _: Facts) -> int | None:
    return max((int(size) for _kind, _graphs, size in _GROUP.findall(found[1])), default=None)


def _captured_mode(found: Found, facts: Facts) -> str:
    """Of two bars the first captures the pieces, the second whole steps.

    The V1 runner's bars name the batches, "(decode, FULL)"; those of V2 only the mode.
    """
    before, kind = str(facts.get("cudagraph_mode", "")), found[1]
    if "PIECEWISE" in kind:
        return before if "PIECEWISE" in before else "PIECEWISE"
    if "PIECEWISE" in before:
        return _BOTH
    if "decode, " in kind:
        return "FULL" if "mixed" in kind else _DECODE_ONLY
    return _full_only(facts)


def _captured_graphs(found: Found, facts: Facts) -> dict[str, int] | None:
    if found[2] is None:
        return None
    kind = "PIECEWISE" if "PIECEWISE" in found[1] else "FULL"
    return {**facts.get("graphs_captured", {}), kind: int(found[2])}


def _no_draft_bar(_: Found, facts: Facts) -> bool | None:
    """Only V2's drafters have bars of their own; those of V1 are captured with the target."""
    if facts.get("model_runner") == "V2" and has_drafter(facts) and "draft_capture" not in facts:
        return False
    return None


_NONE = constant("NONE")
_BAR = r"(?:[^|]*\|[^|]*\| *\d+/(\d+))?"

ROWS: tuple[Row, ...] = (
    row("etting cudagraph_mode", r"etting cudagraph_mode(?:=| to )(\w+)", cudagraph_mode=_mode),
    row(
        "Overriding cudagraph_mode",
        r"Overriding cudagraph_mode (?:(?:from )?[\w.]+ )?to ([\w.]*\w)",
        cudagraph_mode=_mode,
    ),
    row("cudagraph_mode will", r"cudagraph_mode will be set to (\w+)", cudagraph_mode=_mode),
    row("udagraph mode", r"^Cudagraph mode .*Overriding to ([\w.]*\w)", cudagraph_mode=_mode),
    row(
        "CUDA graph mode",
        r"^KV connector \S+ requires (PIECEWISE) CUDA graph mode",
        cudagraph_mode=_mode,
    ),
    row("Disabling CUDA Gr", r"^\w+: Disabling CUDA Graphs since", cudagraph_mode=_NONE),
    row("Enforce eager", r"^Enforce eager set, disabling", cudagraph_mode=_NONE),
    row("eager mode", r"^Cudagraph is disabled under eager mode", cudagraph_mode=_NONE),
    row("Skipping", r"^Skipping (?:CUDA|encoder and decoder CUDA) graph", cudagraph_mode=_NONE),
    # No CUDA graphs on a CPU, whatever the mode, and no line says so.
    row("V1 LLM engine", r"^Initializing a V1 LLM engine .*, device_config=cpu\b", cudagraph_mode=_NONE),
    row(
        "graph memory",
        r"^Profiling CUDA graph memory: (.*)",
        cudagraph_mode=_profiled_mode,
        graphs_captured=_profiled_graphs,
        largest_capture_size=_profiled_largest,
    ),
    row(
        "capture_size to",
        r"^Truncating max_cudagraph_capture_size to (\d+)",
        largest_capture_size=count(),
    ),
    row(
        "CUDA graphs (",
        rf"^Capturing CUDA graphs \(([^)]*(?:FULL|PIECEWISE))\){_BAR}",
        graphs_captured=_captured_graphs,
        cudagraph_mode=_captured_mode,
    ),
    row(
        "CUDA graphs (",
        r"^Capturing (?!decoder replay)\w[\w -]*? CUDA graphs \((?:FULL|PIECEWISE)\)",
        draft_capture=constant(True),
    ),
    row(
        "draft attention",
        r"draft attention .{0,300}running the draft eagerly",
        draft_capture=constant(False),
    ),
    row("init engine", r"^init engine \(", draft_capture=_no_draft_bar),
)

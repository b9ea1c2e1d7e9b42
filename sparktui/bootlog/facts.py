"""Facts of a boot, read from its log: one table row per line that states one.

``cudagraph_mode`` is the mode in effect. The engine's config dump and the header of the cudagraph table show
the mode that was asked for, so neither is read: downgrade warnings, the profiling line and capture bars tell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sparktui.bootlog.lines import Line

_Facts = Mapping[str, Any]
_Found = re.Match[str]


class _Row(NamedTuple):
    """A line's pattern, the fact it states, and the value; None says that this line changes nothing."""

    needs: str
    pattern: re.Pattern[str]
    name: str
    value: Callable[[_Found, _Facts], Any]


def _text(found: _Found, _: _Facts) -> str:
    return found[1]


def _number(found: _Found, _: _Facts) -> float:
    return float(found[1].replace(",", ""))


def _count(found: _Found, _: _Facts) -> int:
    return int(found[1].replace(",", ""))


def _constant(value: Any) -> Callable[[_Found, _Facts], Any]:
    return lambda _found, _facts: value


def _weak(name: str, value: Callable[[_Found, _Facts], Any]) -> Callable[[_Found, _Facts], Any]:
    """A value that yields to one that stands already."""
    return lambda found, facts: None if name in facts else value(found, facts)


def _largest(name: str) -> Callable[[_Found, _Facts], Any]:
    """The target's figure, when target and drafter each state one."""
    return lambda found, facts: max(_number(found, facts), facts.get(name, 0.0))


def _literal(found: _Found, _: _Facts) -> Any:
    """A dict of plain values as Python prints it; the text when it holds anything else."""
    try:
        value = ast.literal_eval(found[1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return found[1]
    return value if isinstance(value, dict) else found[1]


def _second_backend(found: _Found, facts: _Facts) -> str | None:
    first = facts.get("attention_backend")
    return found[1] if first is not None and first != found[1] else None


def _mode(found: _Found, _: _Facts) -> str:
    return found[1].removeprefix("CUDAGraphMode.")


def _profiled_mode(found: _Found, _: _Facts) -> str | None:
    kinds = set(re.findall(r"(PIECEWISE|FULL)=[1-9]", found[1]))
    return "FULL_AND_PIECEWISE" if len(kinds) == 2 else next(iter(kinds), None)


def _captured_mode(found: _Found, facts: _Facts) -> str:
    """Of two bars the first captures the pieces, the second whole decode steps."""
    before, kind = str(facts.get("cudagraph_mode", "")), found[1]
    if "PIECEWISE" in kind:
        return before if "PIECEWISE" in before else "PIECEWISE"
    if "PIECEWISE" in before:
        return "FULL_AND_PIECEWISE"
    return "FULL_DECODE_ONLY" if "decode, " in kind and "mixed" not in kind else "FULL"


def _row(needs: str, pattern: str, name: str, value: Callable[[_Found, _Facts], Any]) -> _Row:
    return _Row(needs, re.compile(pattern), name, value)


_CHOSEN = r"^Using (\w+) attention backend out of potential backends"
_FORCED = r"^Using (?:AttentionBackendEnum\.)?(\w*(?:ATT|FLASH|MLA|SDPA)\w*) backend\.?$"
_FIRST_BACKEND = _weak("attention_backend", _text)

TABLE: tuple[_Row, ...] = (
    _row("version", r"version +(\d+\.\d+[^\s,]*)\s*(?:, serving model .*)?$", "vllm_version", _text),
    _row("V1 LLM engine", r"^Initializing a V1 LLM engine \(v([^)]+)\)", "vllm_version", _text),
    _row("non-default args", r"^non-default args: (\{.*\})\s*$", "non_default_args", _literal),
    # The drafter's row stands first: it reads what the lines before said of the target.
    _row("attention backend", _CHOSEN, "draft_attention_backend", _second_backend),
    _row("attention backend", _CHOSEN, "attention_backend", _FIRST_BACKEND),
    _row("backend", _FORCED, "draft_attention_backend", _second_backend),
    _row("backend", _FORCED, "attention_backend", _FIRST_BACKEND),
    _row("layout for", r"KV cache layout for (\w+) backend", "attention_backend", _FIRST_BACKEND),
    _row("cudagraph_mode", r"[Ss]etting cudagraph_mode(?:=| to )(\w+)", "cudagraph_mode", _mode),
    _row("cudagraph_mode", r"Overriding cudagraph_mode (?:from \S+ )?to ([\w.]+)", "cudagraph_mode", _mode),
    _row(
        "udagraph mode",
        r"^Cudagraph mode .* Overriding to (?:CUDAGraphMode\.)?(\w+)",
        "cudagraph_mode",
        _mode,
    ),
    _row("CUDA graph", r"^KV connector \S+ requires (PIECEWISE) CUDA graph", "cudagraph_mode", _mode),
    _row("Enforce eager", r"^Enforce eager set, disabling", "cudagraph_mode", _constant("NONE")),
    _row("eager mode", r"^Cudagraph is disabled under eager mode", "cudagraph_mode", _constant("NONE")),
    _row(
        "Skipping", r"^Skipping (?:CUDA|encoder and decoder CUDA) graph", "cudagraph_mode", _constant("NONE")
    ),
    _row("graph memory", r"^Profiling CUDA graph memory: (.*)", "cudagraph_mode", _profiled_mode),
    _row(
        "CUDA graphs (",
        r"^Capturing (?:decode |prefill )?CUDA graphs \(([^)]*(?:FULL|PIECEWISE))\)",
        "cudagraph_mode",
        _captured_mode,
    ),
    _row("Async", r"^Asynchronous scheduling is enabled", "async_scheduling", _constant(True)),
    _row("Async", r"^Asynchronous scheduling is disabled", "async_scheduling", _constant(False)),
    _row(
        "Async",
        r"^Async scheduling (?:not supported with|is disabled because|is not compatible)",
        "async_scheduling",
        _constant(False),
    ),
    _row("V2 Model Runner", r"^Using V2 Model Runner", "model_runner", _constant("V2")),
    _row("V1 model runner", r"using the V1 model runner instead", "model_runner", _constant("V1")),
    _row(
        "from scratch", r"^Loading model from scratch", "model_runner", _weak("model_runner", _constant("V2"))
    ),
    _row("to load model", r"^Starting to load model", "model_runner", _weak("model_runner", _constant("V1"))),
    _row("KV cache size", r"^\w+ KV cache size: ([\d,]+) tokens", "kv_cache_tokens", _count),
    _row(
        "Maximum conc",
        r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x",
        "max_concurrency",
        _number,
    ),
    _row("Model loading", r"^Model loading took ([\d.]+) Gi?B", "weights_gib", _number),
    _row("Model loading", r"^Model loading took .* and ([\d.]+) seconds", "load_s", _number),
    _row("Loading weights", r"^Loading weights took ([\d.]+) seconds", "load_s", _weak("load_s", _number)),
    _row("torch.compile", r"^torch\.compile (?:takes|took) ([\d.]+) s", "compile_s", _largest("compile_s")),
    _row("init engine", r"^init engine .*\(compilation: ([\d.]+) s", "compile_s", _number),
    _row("init engine", r"^init engine \([^)]*\) took ([\d.]+) s", "init_engine_s", _number),
    _row("Graph capturing", r"^Graph capturing finished in ([\d.]+) secs", "capture_s", _number),
    _row("MoE", r"^Using '?(\w+)'? (?:\w+ MoE backend|backend for \w+ MoE)", "moe_backend", _text),
)


_BY_LITERAL = tuple((row.needs, row) for row in TABLE)


def read_facts(line: Line, facts: dict[str, Any]) -> None:
    """Add to ``facts`` what ``line`` states."""
    message = line.message
    for row in [row for needs, row in _BY_LITERAL if needs in message]:
        found = row.pattern.search(message)
        if found is not None and (value := row.value(found, facts)) is not None:
            facts[row.name] = value

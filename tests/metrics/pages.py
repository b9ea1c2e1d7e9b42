"""Recorded and made-up /metrics pages, and a second, much simpler reader of them."""

from __future__ import annotations

import re
from pathlib import Path

from sparktui.metrics.page import Page, parse

METRICS = Path(__file__).parent.parent / "fixtures" / "metrics"
RECORDED = tuple(sorted(str(path.relative_to(METRICS)) for path in METRICS.rglob("*.txt")))


def text_of(name: str) -> str:
    return (METRICS / name).read_text("utf-8")


def page_of(name: str, t: float = 0.0) -> Page:
    return parse(text_of(name), t)


def grep(text: str, name: str) -> list[float]:
    """Values of every sample of exactly this name, as grep and cut would give them."""
    return [float(value) for value in re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)]


def made(t: float = 0.0, **values: object) -> Page:
    """A page with the given samples of one engine: ``made(generation_tokens_total=3)``."""
    return parse(made_text(**values), t)


def made_text(**values: object) -> str:
    return "".join(f'vllm:{name}{{engine="0",model_name="m"}} {value}\n' for name, value in values.items())


def histogram(name: str, total: float, **buckets: int) -> str:
    """Samples of a histogram; buckets are cumulative: ``_0_25=3`` is le="0.25", ``_Inf`` the last."""
    bounds = {key[1:].replace("_", ".").replace("Inf", "+Inf"): count for key, count in buckets.items()}
    lines = [f'vllm:{name}_bucket{{engine="0",le="{le}"}} {count}' for le, count in bounds.items()]
    lines += [f'vllm:{name}_count{{engine="0"}} {bounds["+Inf"]}', f'vllm:{name}_sum{{engine="0"}} {total}']
    return f"# TYPE vllm:{name} histogram\n" + "\n".join(lines) + "\n"

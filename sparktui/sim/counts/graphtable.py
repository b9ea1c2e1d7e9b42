"""The table that ``--cudagraph-metrics`` logs once an interval (vLLM 0.13 and later, V1 model runner only).

Its header is the API server's copy of the configuration, written before the engine settles on a mode: it
says FULL_AND_PIECEWISE, and sizes as before rounding, when the engine runs PIECEWISE. Only the rows are true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sparktui.sim.counts.observed import GraphStep
from sparktui.sim.model.capture import capture_sizes
from sparktui.sim.model.requests import EngineConfig

_COLUMNS = ("Unpadded Tokens", "Padded Tokens", "Num Paddings", "Runtime Mode", "Count")


def table(wanted: str, sizes: Sequence[int], steps: Counter[GraphStep]) -> str:
    """Header and rows, the most frequent step first. ``wanted``: the configured cudagraph mode."""
    rows = [_row(step, count) for step, count in steps.most_common()]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    return "\n".join(
        [
            "**CUDAGraph Config Settings:**",
            "",
            f"- Mode: {wanted}",
            f"- Capture sizes: {list(sizes)}",
            "",
            "**CUDAGraph Stats:**",
            "",
            _line(_COLUMNS, widths),
            "|" + "|".join("-" * (width + 2) for width in widths) + "|",
            *(_line(row, widths) for row in rows),
            "",
        ]
    )


def header_sizes(config: EngineConfig, wanted: str) -> tuple[int, ...]:
    """The capture sizes that the header names: not yet rounded to whole decode steps."""
    return capture_sizes(config.max_num_seqs, config.k, "none" if wanted == "NONE" else "piecewise")


def _row(step: GraphStep, count: int) -> tuple[str, ...]:
    paddings = step.padded_tokens - step.scheduled_tokens
    return (str(step.scheduled_tokens), str(step.padded_tokens), str(paddings), step.mode, str(count))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

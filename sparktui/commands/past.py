"""What earlier runs of a profile have shown, as plain text: arms by loads, boots, the last verdict."""

from __future__ import annotations

import time

from sparktui.client.history import ProfileHistory
from sparktui.schema.text import printable


def past_text(known: ProfileHistory) -> str:
    """Everything that is known; says so when nothing is."""
    parts = []
    if known.last_verdict is not None and known.verdict_at is not None:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(known.verdict_at))
        parts += [f"Last verdict, {when}", f"  {printable(known.last_verdict)}", ""]
    if known.cells:
        parts += ["Output tok/s (decode tok/s per stream), the best window of each", *_grid(known), ""]
    if known.boot_s:
        parts += ["Boots, seconds, newest first"]
        parts += [f"  {variant}: {_seconds(times)}" for variant, times in known.boot_s.items()]
    return "\n".join(parts).rstrip() or "Nothing has been measured with this profile yet."


def _seconds(times: tuple[float, ...]) -> str:
    return ", ".join(f"{seconds:.0f}" for seconds in times)


def _grid(known: ProfileHistory) -> list[str]:
    loads = sorted({load for _, load in known.cells})
    variants = sorted({variant for variant, _ in known.cells})
    width = max(8, *(len(variant) for variant in variants))
    rows = ["  " + " " * width + "".join(f"{f'c={load}':>18}" for load in loads)]
    for variant in variants:
        shown = "".join(f"{_cell(known, variant, load):>18}" for load in loads)
        rows.append(f"  {printable(variant):<{width}}{shown}")
    return rows


def _cell(known: ProfileHistory, variant: str, load: int) -> str:
    cell = known.cells.get((variant, load))
    if cell is None:
        return "—"
    output = "—" if cell.output_tok_s is None else f"{cell.output_tok_s:.1f}"
    decode = "—" if cell.decode_tok_s is None else f"{cell.decode_tok_s:.1f}"
    return f"{output} ({decode})"

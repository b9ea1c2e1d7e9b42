"""The screen as plain text, and golden files of it: reviewable in a diff."""

from __future__ import annotations

import os
from pathlib import Path

from textual.app import App

GOLDEN = Path(__file__).parent / "golden"


def screen_text(app: App[int]) -> str:
    """What a terminal would show, without colours, right-stripped lines."""
    width, height = app.size
    lines = [[" "] * width for _ in range(height)]
    for screen in (s for s in app.screen_stack if s is app.screen or app.screen.is_modal):
        for y, strip in enumerate(screen._compositor.render_strips()):
            text = strip.text
            if screen is app.screen or text.strip():
                lines[y] = list(text.ljust(width)[:width])
    return "\n".join("".join(line).rstrip() for line in lines).rstrip() + "\n"


def check_golden(name: str, text: str) -> None:
    """Compare with golden/NAME.txt; SPARKTUI_UPDATE_GOLDEN=1 writes it instead."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("SPARKTUI_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert path.exists(), f"no {path.name}: look at the screen, then SPARKTUI_UPDATE_GOLDEN=1"
    assert text == path.read_text("utf-8")

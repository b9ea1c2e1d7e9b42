"""Pages of several engines, made of the recorded ones."""

from __future__ import annotations

from sparktui.metrics.page import Page, parse
from tests.metrics.pages import text_of


def beside(*names: str, t: float = 0.0, births: bool = True) -> Page:
    """Each recorded page as one engine of the same server: engine 0, 1, … ``births``: with ``_created``."""
    lines = [
        line.replace('engine="0"', f'engine="{i}"')
        for i, name in enumerate(names)
        for line in text_of(name).splitlines()
        if line.startswith("vllm:") and (births or "_created{" not in line)
    ]
    return parse("\n".join(lines) + "\n", t)

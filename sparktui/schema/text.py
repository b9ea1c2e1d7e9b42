"""Foreign text (logs, server errors, names from files) made fit for a terminal."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    """Without control, format and other characters that a terminal could act on, except those in ``keep``."""
    if text.isprintable():
        return text
    return "".join(char for char in text if char.isprintable() or char in keep)

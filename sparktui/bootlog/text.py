"""Text of a log made safe to show: no terminal escapes, no control characters."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, PM, APC, SOS
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[ -/]*[0-~]"
)
# C0 except tab, DEL, C1, line and paragraph separators, the marks that reorder text on screen, and halves of
# surrogate pairs, which JSON can state.
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

# Colour codes that lost their ESC. One that resets colours is no text, and gives away those around it.
_AFTER_PREFIX = re.compile(r"^\[\d+;\d+m|(?<=\))\[0?(?:;0)?m|(?<=\) )\[\d+(?:;\d+)*m")
_ANY = re.compile(r"\[\d{0,3}(?:;\d{1,3})*m")


def clean(text: str) -> str:
    """Text without terminal escapes, half-stripped colour codes and control characters; tabs stay."""
    return strip_colours(strip_controls(text))


def strip_controls(text: str) -> str:
    """Text without terminal escapes and control characters; tabs stay."""
    return text if text.isprintable() else _CONTROLS.sub("", _ESCAPES.sub("", text))


def strip_colours(text: str) -> str:
    """Text without colour codes of which only the ESC was stripped (``[0;36m(EngineCore pid=7)[0;0m``)."""
    if "0m" not in text and "[m" not in text and text[:1] != "[":
        return text
    if "[0m" in text or "[0;0m" in text:
        return _ANY.sub("", text)
    return _AFTER_PREFIX.sub("", text)

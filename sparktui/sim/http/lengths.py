"""How long an answer may get, and what is said when a prompt leaves no room for it.

0.32.0 cuts max_tokens to the room that is left; 0.27.1 refuses a request whose prompt and max_tokens together
exceed the context. Releases before 0.27.1 are taken to do as it does, those between as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparktui.sim.http.refusals import Refused, refused_value
from sparktui.sim.release import Release

_CUTS_SINCE = "0.32.0"
_COMPLETION_TOKENS = 16  # of /v1/completions without max_tokens


@dataclass(frozen=True, slots=True)
class Prompt:
    """``tokens``: its length; ``ids``: the tokens themselves, where it was given as such."""

    text: str
    tokens: int
    ids: tuple[int, ...] = ()


def most_tokens(values: Mapping[str, Any], chat: bool, prompt: Prompt, limit: int, release: Release) -> int:
    """Tokens an answer may have. Raises Refused(400)."""
    name = "max_completion_tokens" if chat and "max_completion_tokens" in values else "max_tokens"
    asked = values.get(name, None if chat else _COMPLETION_TOKENS)
    cuts = release.since(_CUTS_SINCE)
    if asked is not None and asked > limit:
        most = f"max_model_len={limit}" if cuts else f"max_model_len=max_total_tokens={limit}"
        text = f"{name}={asked} cannot be greater than {most}. Please request fewer output tokens."
        raise refused_value(text, name, asked)
    room = limit if cuts else limit - (asked or 0)
    if prompt.tokens > room:
        raise _too_long(prompt, limit, room, cuts)
    free = limit - prompt.tokens
    return free if asked is None else min(asked, free)


def _too_long(prompt: Prompt, limit: int, room: int, cuts: bool) -> Refused:
    """A tokenizer stops one token beyond the room, so a text's length is not known any better."""
    tokens = prompt.tokens if prompt.ids else room + 1
    least = "at least " if tokens == room + 1 else ""
    text = f"This model's maximum context length is {limit} tokens. However, "
    if cuts:
        text += (
            f"your prompt contains {least}{tokens} input tokens, which exceeds this limit even without any "
            "output tokens. Please reduce the length of the input prompt."
        )
    else:
        text += (
            f"you requested {limit - room} output tokens and your prompt contains {least}{tokens} input "
            f"tokens, for a total of {least}{tokens + limit - room} tokens. Please reduce the length of the "
            "input prompt or the number of requested output tokens."
        )
    return refused_value(text, "input_tokens", tokens)

"""Request bodies: real text behind a nonce, the same sequence for the same seed."""

from __future__ import annotations

import hashlib
import random
from importlib import resources
from typing import Any

import orjson

from sparktui.schema.launch import LoadSpec
from sparktui.schema.workloads import lengths

WORDS_PER_TOKEN = 0.75  # English prose under common tokenizers
_INSTRUCTION = (
    "Continue the following text in the same voice. Write at length, in full paragraphs, "
    "and keep going until you are cut off."
)
_FRAME_TOKENS = 48  # nonce, instruction and chat template
_LENGTH_JITTER = 0.1  # equal lengths keep closed-loop streams in step for ever


class Prompts:
    """Bodies for /v1/chat/completions by prompt number. Unique by ``nonce``, so no prefix repeats."""

    def __init__(self, spec: LoadSpec, model: str, nonce: str) -> None:
        self._spec = spec
        self._model = model
        self._nonce = nonce
        self._words = resources.files("sparktui.load").joinpath("corpus.txt").read_text("utf-8").split()

    def body(self, index: int, *, ignore_eos: bool) -> bytes:
        """JSON of request number ``index``."""
        spec = self._spec
        picked = random.Random(f"{spec.seed}:{index}")
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "user", "content": self._text(index, picked)}],
            "max_tokens": self._max_tokens(picked),
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        optional = {"temperature": spec.temperature, "top_p": spec.top_p}
        body |= {name: value for name, value in optional.items() if value is not None}
        if spec.chat_template_kwargs:
            body["chat_template_kwargs"] = spec.chat_template_kwargs
        if ignore_eos:
            body["ignore_eos"] = True
        return orjson.dumps(body)

    def _text(self, index: int, picked: random.Random) -> str:
        nonce = hashlib.sha256(f"{self._nonce}:{self._spec.seed}:{index}".encode()).hexdigest()[:12]
        count = max(8, round((lengths(self._spec)[0] - _FRAME_TOKENS) * WORDS_PER_TOKEN))
        start = picked.randrange(len(self._words))
        words = [self._words[(start + i) % len(self._words)] for i in range(count)]
        return f"[{nonce}] {_INSTRUCTION}\n\n{' '.join(words)}"

    def _max_tokens(self, picked: random.Random) -> int:
        spread = picked.uniform(1 - _LENGTH_JITTER, 1 + _LENGTH_JITTER)
        return max(1, round(lengths(self._spec)[1] * spread))

"""Request bodies of each workload: the same sequence for the same seed, by the number of the request."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import aiohttp
import orjson

from sparktui.load import tokens
from sparktui.load.texts import CHARS_PER_TOKEN, INSTRUCTIONS, Source, picked
from sparktui.load.tokens import Messages, Tokenize, TokenizeError
from sparktui.schema import promptfile
from sparktui.schema.codec import SchemaError
from sparktui.schema.launch import LoadSpec
from sparktui.schema.text import printable
from sparktui.schema.workloads import WORKLOADS, Workload, file_of, lengths, sampling

POOL = 48  # most texts of a workload; prompt i takes text i mod their number, behind a number of its own
_POOL_TOKENS = 1 << 16  # in all of them: a server needs about 2 ms to count a thousand
NONCE_DIGITS = 12  # tokenizers take digits one by one or in threes: equal numbers of tokens
_NONCES_CHECKED = 4
_TEMPLATE_TOKENS = 24  # chat template and number, where nobody counts
_LENGTH_JITTER = 0.1  # equal lengths keep closed-loop streams in step for ever


class Prompts:
    """Bodies for /v1/chat/completions by request number. Raises SchemaError for a workload that is not known
    and PromptFileError for a file that is wrong.

    ``nonce`` names the run: with it each request begins as no other does, in this run or another. ``model``
    is the server's own name for it; ``spec.model`` is what requests say where a proxy has another.
    """

    def __init__(self, spec: LoadSpec, model: str, nonce: str) -> None:
        self._spec = spec
        self._model = model
        self._nonce = nonce
        path = file_of(spec.workload)
        self._brought = promptfile.read(path) if path is not None else ()
        self._workload = _workload(spec.workload) if path is None else None
        self._system = ""
        self._texts: tuple[str, ...] = ()
        if self._workload is not None:
            self._estimate(self._workload)

    async def prepare(
        self, session: aiohttp.ClientSession, base_url: str, *, first_s: float = tokens.FIRST_S,
        all_s: float = tokens.ALL_S,
    ) -> str:  # fmt: skip
        """Make all prompts as long as they should be, by the /tokenize of the vLLM at ``base_url``.

        Empty when they are; else what to know about their lengths. Never raises for the server's sake, and
        takes at most ``first_s`` + ``all_s`` seconds.
        """
        workload = self._workload
        if workload is None:
            return (
                "" if self._spec.input_tokens is None else "input_tokens: a file's prompts stay as they are"
            )
        kwargs = self._spec.chat_template_kwargs
        server = Tokenize(session, base_url, self._model, kwargs, first_s=first_s, all_s=all_s)
        target = lengths(self._spec)[0]
        try:
            if workload.prefix_tokens:
                fitted = await tokens.fit(server.text, Source("system"), workload.prefix_tokens, 0)
                self._system = fitted.text
            sources = self._sources(workload)
            made = await tokens.calibrate(server, sources, self._messages, target)
            self._texts = tuple(text.text for text in made.texts)
            checked = [] if made.problem else await self._others(server, len(sources))
        except TokenizeError as exc:
            return f"prompts have about {target} tokens, as estimated from their words: {printable(str(exc))}"
        return _note(made, checked, target) or self._room(server, target)

    def body(self, index: int, *, ignore_eos: bool) -> bytes:
        """JSON of request number ``index``."""
        spec = self._spec
        body: dict[str, Any] = {
            "model": spec.model or self._model,
            "messages": self._messages(index),
            "max_tokens": self._max_tokens(index),
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        body |= sampling(spec)
        if self._brought and (tools := self._brought[index % len(self._brought)].tools):
            body["tools"] = tools
        if spec.chat_template_kwargs:
            body["chat_template_kwargs"] = spec.chat_template_kwargs
        if ignore_eos:
            body["ignore_eos"] = True
        return orjson.dumps(body)

    def _messages(self, index: int, text: str | None = None) -> Messages:
        """``text`` in place of the one that the pool has for it."""
        workload = self._workload
        if workload is None:  # in the order of the file, whatever the seed
            return self._brought[index % len(self._brought)].messages
        if text is None:
            text = self._texts[index % len(self._texts)]
        instruction = INSTRUCTIONS[workload.name]
        if not workload.identical:
            instruction = f"[{self._number(index)}] {instruction}"
        fence = "```python\n" if workload.text == "code" else ""
        user = {"role": "user", "content": f"{instruction}\n\n{fence}{text}"}
        return [{"role": "system", "content": self._system}, user] if self._system else [user]

    def _number(self, index: int) -> str:
        digest = hashlib.sha256(f"{self._nonce}:{self._spec.seed}:{index}".encode()).digest()
        return f"{int.from_bytes(digest[:8]) % 10**NONCE_DIGITS:0{NONCE_DIGITS}}"

    def _max_tokens(self, index: int) -> int:
        if self._brought and (own := self._brought[index % len(self._brought)].max_tokens):
            return own
        asked = lengths(self._spec)[1]
        if self._workload is not None and self._workload.identical:
            return asked
        picked = random.Random(f"{self._spec.seed}:{index}")
        return max(1, round(asked * picked.uniform(1 - _LENGTH_JITTER, 1 + _LENGTH_JITTER)))

    def _sources(self, workload: Workload) -> tuple[Source, ...]:
        count = max(4, min(POOL, _POOL_TOKENS // lengths(self._spec)[0]))
        count = 1 if workload.identical else count
        return picked(workload.text, count, f"{workload.name}:{self._spec.seed}")

    def _estimate(self, workload: Workload) -> None:
        prefix = workload.prefix_tokens
        self._system = tokens.guess(Source("system"), prefix)
        around = _TEMPLATE_TOKENS + len(INSTRUCTIONS[workload.name]) / CHARS_PER_TOKEN["prose"]
        left = lengths(self._spec)[0] - prefix - round(around)
        self._texts = tuple(tokens.guess(source, left) for source in self._sources(workload))

    async def _others(self, server: Tokenize, pool: int) -> list[int]:
        """Tokens of some prompts past the pool: the same texts behind other numbers."""
        if self._workload is None or self._workload.identical:
            return []
        numbers = range(pool, pool + _NONCES_CHECKED)
        return [await server.messages(self._messages(i)) for i in numbers]

    def _room(self, server: Tokenize, target: int) -> str:
        longest = round(lengths(self._spec)[1] * (1 + _LENGTH_JITTER))
        most = server.max_model_len
        if most is None or target + longest <= most:
            return ""
        return (
            f"prompts of {target} tokens with answers of {longest} exceed the server's max_model_len {most}"
        )


def _workload(name: str) -> Workload:
    if name not in WORKLOADS:
        raise SchemaError(f"no workload {name!r}: it is one of {', '.join(WORKLOADS)} or file:PATH")
    return WORKLOADS[name]


def _note(made: tokens.Calibrated, checked: list[int], target: int) -> str:
    if made.frame >= target:
        return f"prompts have {made.frame} tokens: without any text that is already more than {target}"
    counted = [text.tokens for text in made.texts if text.tokens is not None]
    if made.problem:
        exact, why = counted.count(target), printable(made.problem)
        return f"{exact} of {len(made.texts)} texts have {target} tokens, the others about: {why}"
    every = sorted({*counted, *checked})
    if every == [target]:
        return ""
    why = (
        "numbers cost this tokenizer unequal amounts"
        if {*counted} == {target}
        else "this tokenizer allows no closer"
    )
    return f"prompts have {every[0]} to {every[-1]} tokens, not {target}: {why}"

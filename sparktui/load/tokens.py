"""Exact prompt lengths: excerpts cut so that a whole prompt has just as many tokens as it should.

vLLM's /tokenize counts a list of messages as /v1/chat/completions will: chat template, generation prompt and
template arguments included (entrypoints/serve/tokenize/protocol.py, the same in 0.27.1 and 0.32.0).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from sparktui.load.errors import refusal
from sparktui.load.texts import CHARS_PER_TOKEN, MARKS, PADS, Source

Messages = list[dict[str, Any]]
Count = Callable[[str], Awaitable[int]]  # tokens of a whole prompt that holds this excerpt

FIRST_S = 3.0  # for the first answer: a server may compile its chat template for it
ALL_S = 2.0  # for all others together
AT_ONCE = 4
_WORD_ROUNDS = 8
_EARLIER_WORDS = 3
_CHAR_ROUNDS = 8


class TokenizeError(Exception):
    """/tokenize is no help; the text says why."""


class Tokenize:
    """vLLM's /tokenize, for a limited time: ``first_s`` to the first answer, then ``all_s`` more."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        model: str,
        template_kwargs: dict[str, Any],
        *,
        first_s: float = FIRST_S,
        all_s: float = ALL_S,
    ) -> None:
        self._session = session
        self._url = base_url.rstrip("/") + "/tokenize"
        self._asked: dict[str, Any] = {"model": model}
        self._template = {"chat_template_kwargs": template_kwargs} if template_kwargs else {}
        self._limit_s, self._all_s = first_s, all_s
        self._deadline: float | None = None
        self.max_model_len: int | None = None  # as the last answer told
        self.calls = 0

    async def messages(self, messages: Messages) -> int:
        """Tokens of the prompt that the server will make of them. Raises TokenizeError."""
        return await self._count({"messages": messages, "add_generation_prompt": True} | self._template)

    async def text(self, text: str) -> int:
        """Tokens of a text by itself. Raises TokenizeError."""
        return await self._count({"prompt": text, "add_special_tokens": False})

    async def _count(self, what: dict[str, Any]) -> int:
        now = asyncio.get_running_loop().time()
        if self._deadline is None:
            self._deadline = now + self._limit_s
        try:
            async with asyncio.timeout_at(self._deadline):
                count = await self._post(what)
        except TimeoutError:
            raise TokenizeError(f"/tokenize took longer than {self._limit_s:g} s") from None
        except (aiohttp.ClientError, OSError) as exc:
            raise TokenizeError(f"/tokenize: {exc or type(exc).__name__}") from None
        if not self.calls:
            now, self._limit_s = asyncio.get_running_loop().time(), self._all_s
            self._deadline = now + self._limit_s
        self.calls += 1
        return count

    async def _post(self, what: dict[str, Any]) -> int:
        status, data = await self._answer(self._asked | what)
        if status == 404 and self._asked:
            self._asked = {}  # a name that only a proxy knows: vLLM counts without one, too
            status, data = await self._answer(what)
        if status != 200:
            raise TokenizeError(f"/tokenize answered {refusal(status, data[:4096], None)}")
        try:
            answer = orjson.loads(data)
            count, longest = int(answer["count"]), answer.get("max_model_len")
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
            raise TokenizeError("/tokenize answered something that is no count") from None
        self.max_model_len = longest if isinstance(longest, int) else self.max_model_len
        return count

    async def _answer(self, body: dict[str, Any]) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self._url, data=orjson.dumps(body), headers=headers) as response:
            return response.status, await response.read()


@dataclass(frozen=True, slots=True)
class Fitted:
    """An excerpt, and the tokens of the whole prompt with it; None where they were not counted."""

    text: str
    tokens: int | None = None


@dataclass(slots=True)
class _Search:
    """One excerpt's length, between a length that is too short and one that is too long (characters)."""

    count: Count
    source: Source
    target: int
    scale: float  # characters of a token
    low: int
    low_over: int  # tokens above the target, so less than 0
    high: int | None = None
    high_over: int = 0
    best: Fitted = field(default_factory=lambda: Fitted(""))

    @property
    def next(self) -> int | None:
        """Where to look next: the end of a word a little before the place where the target should be."""
        scale = self.scale
        if self.high is not None:  # the text's own scale hereabouts: a table of numbers has twice the tokens
            scale = (self.high - self.low) / (self.high_over - self.low_over)
        return self.source.border(self.low + round((-self.low_over - 0.5) * scale), self.low, self.high)

    async def exact(self, chars: int) -> bool:
        """Whether so many characters, perhaps with a word or two behind them, hit the target."""
        text = self.source.take(chars)
        over = await self._measure(text)
        if self.low < chars and over < 0:
            self.low, self.low_over = chars, over
        elif over > 0:
            self.high, self.high_over = chars, over
        pads = PADS[self.source.kind]
        if -len(pads) <= over < 0:
            over = await self._measure(text + pads[-over - 1])
        return over == 0

    async def marked(self) -> bool:
        """Whether a mark behind the longest text that is too short hits the target."""
        pads = ("", *PADS[self.source.kind])
        if -self.low_over > len(pads):
            return False
        text = self.source.take(self.low) + pads[-self.low_over - 1]
        for mark in MARKS:
            if await self._measure(text + mark) == 0:
                return True
        return False

    async def _measure(self, text: str) -> int:
        over = await self.count(text) - self.target
        best = self.best.tokens
        if best is None or abs(over) < abs(best - self.target):
            self.best = Fitted(text, self.target + over)
        return over


async def fit(
    count: Count, source: Source, target: int, frame: int, chars_per_token: float | None = None
) -> Fitted:
    """An excerpt with which ``count`` gives ``target``, or comes nearest to it.

    ``frame``: what it gives without an excerpt, less than the target. The same answers lead to the same
    text. Raises what ``count`` raises.
    """
    scale = chars_per_token or CHARS_PER_TOKEN[source.kind]
    search = _Search(count, source, target, scale, 0, frame - target)
    for _ in range(_WORD_ROUNDS):
        at = search.next
        if at is None:
            break
        if await search.exact(at):
            return search.best
    return await _elsewhere(search)


async def _elsewhere(search: _Search) -> Fitted:
    """Other ends: marks, words before, parts of words. For tokenizers to which a word is many tokens, or
    a pad something else than expected."""
    if await search.marked():
        return search.best
    at: int | None = search.low
    for _ in range(_EARLIER_WORDS):
        at = search.source.border((at or 0) - 1, 0, at)
        if at is None:
            break
        if await search.exact(at):
            return search.best
    for _ in range(_CHAR_ROUNDS):
        if search.high is None or search.high - search.low < 2:
            break
        if await search.exact((search.low + search.high) // 2):
            return search.best
    await search.marked()
    return search.best


def guess(source: Source, tokens: int, chars_per_token: float | None = None) -> str:
    """An excerpt of about so many tokens; empty where none or fewer are asked for."""
    chars = round(tokens * (chars_per_token or CHARS_PER_TOKEN[source.kind]))
    return source.take(source.border(chars, 0) or 0) if chars > 0 else ""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Texts for the prompts 0, 1, …; ``frame``: tokens of a prompt without text; ``problem`` may be empty."""

    texts: tuple[Fitted, ...]
    frame: int
    problem: str = ""


async def calibrate(
    server: Tokenize, sources: Sequence[Source], messages: Callable[[int, str], Messages], target: int
) -> Calibrated:
    """Fit a text of each source into ``messages(number, text)``. What is not reached in time is guessed from
    the first, and ``problem`` says why. Raises TokenizeError when not even the first was counted."""

    async def fitted(number: int, scale: float | None) -> Fitted:
        async def count(text: str) -> int:
            return await server.messages(messages(number, text))

        return await fit(count, sources[number], target, frame, scale)

    frame = await server.messages(messages(0, ""))
    if frame >= target:
        return Calibrated((Fitted("", frame),) * len(sources), frame)
    first = await fitted(0, None)
    # The first one's scale alone: what others learn depends on which answer comes first.
    scale = len(first.text) / max(1, (first.tokens or target) - frame)
    texts: dict[int, Fitted] = {0: first}
    left = iter(range(1, len(sources)))
    problems: list[str] = []

    async def work() -> None:
        for number in left:
            try:
                texts[number] = await fitted(number, scale)
            except TokenizeError as exc:
                problems.append(str(exc))
                return

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    every = (texts.get(i) or Fitted(guess(source, target - frame, scale)) for i, source in enumerate(sources))
    return Calibrated(tuple(every), frame, problems[0] if problems else "")

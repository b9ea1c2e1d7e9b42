"""Scripted tokenizers with the oddities of real ones, and a server of /tokenize that uses them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

Tokenizer = Callable[[str], int]


def words(text: str) -> int:
    """A word is one token, and so is a mark; spaces cost nothing, digits one each."""
    return len(re.findall(r"[A-Za-z]+|\d|[^\w\s]|_", text))


def pairs(text: str) -> int:
    """Common pairs of words are one token, which the first word alone is as well."""
    return len(re.findall(r"(?:of|in|and|to|is|at) (?:the|a)\b|[A-Za-z]+|\d|[^\w\s]|_", text))


def syllables(text: str) -> int:
    """Three letters a token, runs of blank space a token of their own."""
    return sum(-(-len(word) // 3) for word in re.findall(r"[A-Za-z]+|\d|[^\w\s]|_", text)) + len(
        re.findall(r"\s{2,}", text)
    )


def characters(text: str) -> int:
    return len(text)


def fours(text: str) -> int:
    """Four characters a token wherever words begin: the stand-in's way."""
    return -(-len(text) // 4)


def open_ends(text: str) -> int:
    """The last word costs three more unless a mark stands behind it: longer texts may have fewer tokens."""
    return words(text) + (0 if re.search(r"[^\w\s]\s*\Z", text) else 3)


def dear_pads(text: str) -> int:
    """The words that are used to fill up are two tokens each."""
    return words(text) + len(re.findall(r"\b(?:the|and|all|of|not|x|if)\b", text))


def evens(text: str) -> int:
    """Never an odd number."""
    return 2 * -(-words(text) // 2)


def templated(messages: list[dict[str, Any]]) -> str:
    """A chat template with the beginning of an answer."""
    turns = "".join(f"<{message['role']}>\n{message['content']}\n" for message in messages)
    return f"{turns}<assistant>\n"


class TokenizeServer:
    """vLLM's /tokenize. ``refuse``: what to answer in place of a count to call number n, from 1."""

    def __init__(
        self, tokenizer: Tokenizer, refuse: Callable[[int], web.Response | None] = lambda call: None
    ) -> None:
        self.asked: list[dict[str, Any]] = []
        self.max_model_len = 32768
        self.hold, self.held_from = asyncio.Event(), 1  # cleared: calls from this one on get no answer
        self.hold.set()
        self.inside = self.most_inside = 0
        self._tokenizer = tokenizer
        self._refuse = refuse
        app = web.Application()
        app.router.add_post("/tokenize", self._tokenize)
        self._server = TestServer(app)

    async def __aenter__(self) -> TokenizeServer:
        await self._server.start_server(shutdown_timeout=0.1)
        self.session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()
        await self._server.close()

    @property
    def url(self) -> str:
        return str(self._server.make_url("")).rstrip("/")

    def count(self, body: dict[str, Any]) -> int:
        """Tokens of a body for /tokenize or /v1/chat/completions."""
        text = body["prompt"] if "prompt" in body else templated(body["messages"])
        return self._tokenizer(text)

    async def _tokenize(self, request: web.Request) -> web.Response:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            body = json.loads(await request.read())
            self.asked.append(body)
            if (refusal := self._refuse(len(self.asked))) is not None:
                return refusal
            if len(self.asked) >= self.held_from:
                await self.hold.wait()
            await asyncio.sleep(0.001)  # so that calls made together are here together
            count = self.count(body)
            answer = {"count": count, "max_model_len": self.max_model_len, "tokens": [0] * count}
            return web.json_response(answer)
        finally:
            self.inside -= 1

"""Request bodies: what the client asked for, refused as vLLM refuses it."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass
from typing import Any

import orjson

from sparktui.sim.payloads import error_body
from sparktui.sim.prefix import count_tokens
from sparktui.sim.truth import Truth


class Refused(Exception):
    """An answer other than 200: ``status`` and the JSON ``body``."""

    def __init__(self, status: int, message: str, kind: str = "BadRequestError", param: str | None = None):
        super().__init__(message)
        self.status = status
        self.body = error_body(message, kind, status, param)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may name and how long it may be (tokens)."""

    names: tuple[str, ...]
    max_model_len: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A valid request. ``stop_after``: where it would end by itself, None with ignore_eos."""

    model: str
    prompt: str
    prompt_tokens: int
    max_tokens: int
    stop_after: int | None
    stream: bool
    include_usage: bool
    continuous_usage: bool

    @property
    def seed(self) -> int:
        """What its text is made from."""
        return zlib.crc32(self.prompt.encode())


def read(raw: bytes, chat: bool, limits: Limits, truth: Truth, rng: random.Random) -> Asked:
    """Parse and check a body. Raises Refused."""
    body = parse_json(raw)
    check_model(body, limits)
    prompt = _chat_prompt(body) if chat else _plain_prompt(body)
    prompt_tokens = len(body["prompt"]) if _is_ids(body.get("prompt")) else count_tokens(prompt)
    if not chat:
        body.setdefault("max_tokens", 16)  # vLLM's default for /v1/completions
    max_tokens = _max_tokens(body, prompt_tokens, limits.max_model_len)
    temperature = body.get("temperature")
    if isinstance(temperature, int | float) and temperature < 0:
        text = f"temperature must be non-negative, got {float(temperature)}."
        raise Refused(400, f"{text} (parameter=temperature, value={float(temperature)})", param="temperature")
    options = body.get("stream_options") or {}
    if options and not body.get("stream"):
        text = "Stream options can only be defined when `stream=True`. (parameter=stream_options)"
        raise Refused(400, text, param="stream_options")
    stop_after = None
    if not body.get("ignore_eos"):
        natural = round(rng.gauss(truth.natural_mean, truth.natural_sd))
        stop_after = max(1, int(body.get("min_tokens") or 0), natural)
    usage = bool(options.get("include_usage"))
    return Asked(
        model=str(body.get("model") or limits.names[0]),
        prompt=prompt,
        prompt_tokens=prompt_tokens,
        max_tokens=max_tokens,
        stop_after=stop_after,
        stream=bool(body.get("stream")),
        include_usage=usage,
        continuous_usage=usage and bool(options.get("continuous_usage_stats")),
    )


def parse_json(raw: bytes) -> dict[str, Any]:
    """The JSON object in ``raw``. Raises Refused(400)."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        where = f"body.{error.pos}"
        text = f"{{'type': 'json_invalid', 'loc': '{where}', 'msg': 'JSON decode error'}}"
        raise _invalid(text, where) from error
    if not isinstance(body, dict):
        raise _invalid("Input should be a valid dictionary", "body")
    return body


def check_model(body: dict[str, Any], limits: Limits) -> None:
    """Raises Refused(404) for a model that is not served; none named is fine."""
    model = body.get("model")
    if model and model not in limits.names:
        aliases = ", ".join(limits.names)
        text = f"The model `{model}` does not exist. Valid aliases: {aliases}."
        raise Refused(404, text, "NotFoundError", "model")


def tokenize_text(body: dict[str, Any]) -> str:
    """The text of a /tokenize request: a prompt or messages."""
    return _chat_prompt(body) if "messages" in body else _plain_prompt(body)


def _chat_prompt(body: dict[str, Any]) -> str:
    messages = body.get("messages")
    if not isinstance(messages, list):
        text = "{'type': 'list_type', 'loc': 'body.messages', 'msg': 'Input should be a valid list'}"
        raise _invalid(text, "body.messages")
    return "".join(_message_text(message) for message in messages)


def _message_text(message: Any) -> str:
    if not isinstance(message, dict):
        raise _invalid("Input should be a valid dictionary", "body.messages")
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return f"<|{message.get('role', 'user')}|>{content}\n"


def _plain_prompt(body: dict[str, Any]) -> str:
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list) and _is_ids(prompt):
        return " ".join(str(token) for token in prompt)
    raise _invalid("{'type': 'missing', 'loc': 'body.prompt', 'msg': 'Field required'}", "body.prompt")


def _invalid(text: str, where: str) -> Refused:
    return Refused(400, f"1 validation error:\n  {text}", "Bad Request", where)


def _is_ids(prompt: Any) -> bool:
    return isinstance(prompt, list) and bool(prompt) and all(isinstance(token, int) for token in prompt)


def _max_tokens(body: dict[str, Any], prompt_tokens: int, limit: int) -> int:
    if prompt_tokens >= limit:
        text = (
            f"This model's maximum context length is {limit} tokens. However, your prompt contains at "
            f"least {limit + 1} input tokens, which exceeds this limit even without any output tokens. "
            f"Please reduce the length of the input prompt. (parameter=input_tokens, value={limit + 1})"
        )
        raise Refused(400, text, param="input_tokens")
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    if asked is None:
        return limit - prompt_tokens
    if not isinstance(asked, int) or asked < 1:
        raise Refused(400, f"max_tokens must be at least 1, got {asked}.", param="max_tokens")
    if asked > limit:
        text = (
            f"max_tokens={asked} cannot be greater than max_model_len={limit}. Please request fewer output "
            f"tokens. (parameter=max_tokens, value={asked})"
        )
        raise Refused(400, text, param="max_tokens")
    return min(asked, limit - prompt_tokens)

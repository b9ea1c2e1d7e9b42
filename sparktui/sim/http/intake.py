"""Request bodies: what the client asked for, refused as vLLM refuses it."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from sparktui.sim.http.answers import StopStrings
from sparktui.sim.http.fields import check_ranges, stop_strings, typed
from sparktui.sim.http.lengths import Prompt, most_tokens
from sparktui.sim.http.refusals import FieldError, Refused, invalid
from sparktui.sim.model.prefix import count_tokens
from sparktui.sim.model.truth import Truth
from sparktui.sim.release import Release

_ALIASES_SINCE = "0.32.0"  # 0.27.1 doesn't name them
_NO_MESSAGES = "Cannot apply chat template to an empty conversation. Provide at least one message."
_THINKING_SWITCHES = ("enable_thinking", "thinking")  # of chat templates


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may name and how long it may be (tokens), and what the flags make of it."""

    names: tuple[str, ...]
    max_model_len: int
    release: Release = field(default_factory=Release)
    reasoning: bool = False  # a reasoning parser is on
    force_usage: bool = False  # --enable-force-include-usage


@dataclass(frozen=True, slots=True)
class Asked:
    """A valid request. ``choices``: answers to each prompt (``n``)."""

    model: str
    prompts: tuple[Prompt, ...]
    choices: int
    max_tokens: tuple[int, ...]  # of each prompt's answers
    ignore_eos: bool
    min_tokens: int
    temperature: float | None
    seed: int | None
    stop: StopStrings
    stream: bool
    include_usage: bool
    continuous_usage: bool
    thinks: bool
    tells_thoughts: bool

    def natural_end(self, truth: Truth, rng: random.Random) -> int | None:
        """Tokens after which an answer ends by itself, its end token one of them; None with ignore_eos."""
        if self.ignore_eos:
            return None
        return max(self.min_tokens + 1, round(rng.gauss(truth.natural_mean, truth.natural_sd)))


def read(raw: bytes, chat: bool, limits: Limits) -> Asked:
    """Parse and check a body. Raises Refused."""
    body = parse_json(raw, limits.release)
    if body.get("stream_options") and not body.get("stream"):
        text = "Stream options can only be defined when `stream=True`. (parameter=stream_options)"
        raise Refused(400, text, param="stream_options")
    values, errors = typed(body)
    prompts, complaints = _chat_prompt(body) if chat else _plain_prompts(body)
    if errors or complaints:
        raise invalid([*complaints, *errors], limits.release)
    check_model(values, limits)
    limit, release = limits.max_model_len, limits.release
    most = tuple(most_tokens(values, chat, prompt, limit, release) for prompt in prompts)
    check_ranges(values, min(most))
    return _asked(values, chat, limits, prompts, most)


def _asked(
    values: Mapping[str, Any], chat: bool, limits: Limits, prompts: tuple[Prompt, ...], most: tuple[int, ...]
) -> Asked:
    options = values.get("stream_options") or {}
    usage = limits.force_usage or bool(options.get("include_usage"))
    switches = values.get("chat_template_kwargs") or {}
    least = values.get("min_tokens", 0)
    shown = values.get("include_stop_str_in_output", False)
    return Asked(
        model=values.get("model") or limits.names[0],
        prompts=prompts,
        choices=values.get("n", 1),
        max_tokens=most,
        ignore_eos=values.get("ignore_eos", False),
        min_tokens=least,
        temperature=values.get("temperature"),
        seed=values.get("seed"),
        stop=StopStrings(stop_strings(values), least, shown),
        stream=values.get("stream", False),
        include_usage=usage,
        continuous_usage=limits.force_usage or (usage and bool(options.get("continuous_usage_stats"))),
        thinks=chat and limits.reasoning and all(switches.get(key, True) for key in _THINKING_SWITCHES),
        tells_thoughts=values.get("include_reasoning", True),
    )


def parse_json(raw: bytes, release: Release) -> dict[str, Any]:
    """The JSON object in ``raw``. Raises Refused(400)."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise invalid([_json_error(raw)], release) from None
    if not isinstance(body, dict):
        text = "Input should be a valid dictionary or object to extract fields from"
        raise invalid([FieldError("model_attributes_type", (), text, body)], release)
    return body


def check_model(body: Mapping[str, Any], limits: Limits) -> None:
    """Raises Refused(404) for a model that is not served; none named is fine."""
    model = body.get("model")
    if model and model not in limits.names:
        text = f"The model `{model}` does not exist."
        if limits.release.since(_ALIASES_SINCE):
            text += f" Valid aliases: {', '.join(limits.names)}."
        raise Refused(404, text, "NotFoundError", "model")


def tokenize_request(raw: bytes, limits: Limits) -> tuple[str, bool]:
    """The text of a /tokenize request and whether to show its pieces. Raises Refused."""
    body = parse_json(raw, limits.release)
    if "messages" not in body and "prompt" not in body:
        missing = [FieldError("missing", (name,), "Field required", body) for name in ("prompt", "messages")]
        raise invalid(missing, limits.release)
    prompts, complaints = _chat_prompt(body) if "messages" in body else _plain_prompts(body)
    if complaints:
        raise invalid(complaints, limits.release)
    check_model(body, limits)
    return prompts[0].text, bool(body.get("return_token_strs"))


def token_ids(raw: bytes, limits: Limits) -> list[int]:
    """The tokens of a /detokenize request. Raises Refused."""
    body = parse_json(raw, limits.release)
    ids = body.get("tokens")
    if ids is None:
        raise invalid([FieldError("missing", ("tokens",), "Field required", body)], limits.release)
    if not isinstance(ids, list):
        text = "Input should be a valid list"
        raise invalid([FieldError("list_type", ("tokens",), text, ids)], limits.release)
    check_model(body, limits)
    return [int(token) for token in ids if isinstance(token, int)]


def seed_of(prompt: Prompt, choice: int, given: int | None) -> int:
    """What an answer's text is made from: greedy answers to the same prompt agree."""
    return zlib.crc32(prompt.text.encode(), (given or 0) & 0xFFFFFFFF) + choice


def _json_error(raw: bytes) -> FieldError:
    """Where and why, in the standard library's words as FastAPI gives them."""
    try:
        json.loads(raw)
    except json.JSONDecodeError as error:
        return FieldError("json_invalid", (error.pos,), "JSON decode error", {}, error.msg)
    except UnicodeDecodeError as error:
        return FieldError("json_invalid", (error.start,), "JSON decode error", {}, error.reason)
    return FieldError("json_invalid", (0,), "JSON decode error", {}, "Expecting value")


_Prompts = tuple[tuple[Prompt, ...], list[FieldError]]


def _chat_prompt(body: Mapping[str, Any]) -> _Prompts:
    if "messages" not in body:
        return (), [FieldError("missing", ("messages",), "Field required", body)]
    messages = body["messages"]
    if not isinstance(messages, list):
        return (), [FieldError("list_type", ("messages",), "Input should be a valid list", messages)]
    if not messages:
        raise Refused(400, _NO_MESSAGES)
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            text = "Input should be a valid dictionary"
            return (), [FieldError("dict_type", ("messages", index), text, message)]
    text = "".join(map(_message_text, messages))
    return (Prompt(text, count_tokens(text)),), []


def _message_text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return f"<|{message.get('role', 'user')}|>{content}\n"


def _plain_prompts(body: Mapping[str, Any]) -> _Prompts:
    """One text, one list of token ids, or a list of either."""
    given = body.get("prompt")
    if (isinstance(given, str) and given) or _is_ids(given):
        return (_plain(given),), []
    if isinstance(given, list) and given and all(isinstance(item, str) or _is_ids(item) for item in given):
        return tuple(map(_plain, given)), []
    if given is None or given in ("", []):
        text = "Either prompt or prompt_embeds must be provided and non-empty."
        raise Refused(400, f"{text} (parameter=prompt)", param="prompt")
    return (), [FieldError("string_type", ("prompt",), "Input should be a valid string", given)]


def _plain(prompt: Any) -> Prompt:
    if isinstance(prompt, str):
        return Prompt(prompt, count_tokens(prompt))
    return Prompt(" ".join(map(str, prompt)), len(prompt), tuple(prompt))


def _is_ids(prompt: Any) -> bool:
    return isinstance(prompt, list) and bool(prompt) and all(isinstance(token, int) for token in prompt)

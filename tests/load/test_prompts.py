"""Bodies: the same sequence for the same seed, unique by their nonce."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparktui.load.prompts import Prompts
from sparktui.schema.launch import LoadSpec


def bodies(count: int, nonce: str = "n1", ignore_eos: bool = True, **spec: Any) -> list[dict[str, Any]]:
    prompts = Prompts(LoadSpec(**spec), "served", nonce)
    return [json.loads(prompts.body(i, ignore_eos=ignore_eos)) for i in range(count)]


def text(body: dict[str, Any]) -> str:
    (message,) = body["messages"]
    assert message["role"] == "user"
    return str(message["content"])


def prefix(body: dict[str, Any]) -> str:
    return text(body).partition(" ")[0]


def rest(body: dict[str, Any]) -> str:
    return text(body).partition(" ")[2]


def test_same_seed_and_nonce_give_the_same_bodies() -> None:
    one, other = Prompts(LoadSpec(), "m", "n1"), Prompts(LoadSpec(), "m", "n1")
    backwards = {i: other.body(i, ignore_eos=True) for i in reversed(range(20))}
    assert [one.body(i, ignore_eos=True) for i in range(20)] == [backwards[i] for i in range(20)]


def test_every_prompt_has_a_prefix_of_its_own() -> None:
    prefixes = {prefix(body) for nonce in ("n1", "n2") for body in bodies(200, nonce)}
    assert len(prefixes) == 400
    assert len({text(body) for body in bodies(200)}) == 200


def test_another_nonce_changes_the_prefix_and_nothing_else() -> None:
    for one, other in zip(bodies(20, "n1"), bodies(20, "n2"), strict=True):
        assert prefix(one) != prefix(other)
        assert rest(one) == rest(other)
        assert one["max_tokens"] == other["max_tokens"]


def test_another_seed_gives_other_prompts() -> None:
    pairs = list(zip(bodies(20, seed=1), bodies(20, seed=2), strict=True))
    assert all(prefix(one) != prefix(other) for one, other in pairs)
    assert sum(rest(one) == rest(other) for one, other in pairs) <= 1


def test_the_seed_is_not_sent() -> None:
    assert all("seed" not in body for body in bodies(3, seed=9))


def test_what_every_request_asks_for() -> None:
    (body,) = bodies(1)
    assert body.keys() == {"model", "messages", "max_tokens", "stream", "stream_options", "ignore_eos"}
    assert body["model"] == "served"
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.0),
        ("temperature", 1.0),
        ("top_p", 0.95),
        ("chat_template_kwargs", {"enable_thinking": False}),
    ],
)
def test_sampling_parameters_are_sent_only_when_set(name: str, value: object) -> None:
    assert name not in bodies(1)[0]
    spec: dict[str, Any] = {name: value}
    assert bodies(1, **spec)[0][name] == value


def test_ignore_eos_is_sent_only_when_asked_for() -> None:
    assert bodies(1, ignore_eos=True)[0]["ignore_eos"] is True
    assert "ignore_eos" not in bodies(1, ignore_eos=False)[0]


def test_answers_differ_in_length_by_a_tenth() -> None:
    lengths = [body["max_tokens"] for body in bodies(200, output_tokens=256)]
    assert min(lengths) >= 230
    assert max(lengths) <= 282
    assert max(lengths) - min(lengths) > 40
    assert abs(sum(lengths) / len(lengths) - 256) < 5


def test_prompts_are_about_as_long_as_asked_for() -> None:
    words = [len(text(body).split()) for body in bodies(20, input_tokens=2048)]
    assert all(1400 < count < 1650 for count in words)  # 0.75 words a token
    assert all(len(text(body).split()) < 60 for body in bodies(5, input_tokens=1))


def test_a_very_short_answer_still_has_a_token() -> None:
    assert {body["max_tokens"] for body in bodies(20, output_tokens=1)} == {1}

"""Bodies: the same sequence for the same seed, and of each workload what makes it one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from sparktui.load.prompts import POOL, Prompts
from sparktui.load.texts import INSTRUCTIONS
from sparktui.schema.codec import SchemaError
from sparktui.schema.launch import LoadSpec
from sparktui.schema.promptfile import PromptFileError
from sparktui.schema.workloads import WORKLOADS

NUMBERED = [name for name in WORKLOADS if name != "repeat"]


def bodies(count: int, nonce: str = "n1", ignore_eos: bool = True, **spec: Any) -> list[dict[str, Any]]:
    prompts = Prompts(LoadSpec(**spec), "served", nonce)
    return [json.loads(prompts.body(i, ignore_eos=ignore_eos)) for i in range(count)]


def text(body: dict[str, Any]) -> str:
    message = body["messages"][-1]
    assert message["role"] == "user"
    return str(message["content"])


def prefix(body: dict[str, Any]) -> str:
    return text(body).partition(" ")[0]


def rest(body: dict[str, Any]) -> str:
    return text(body).partition(" ")[2]


@pytest.mark.parametrize("workload", list(WORKLOADS))
def test_same_seed_and_nonce_give_the_same_bodies(workload: str) -> None:
    spec = LoadSpec(workload=workload)
    one, other = Prompts(spec, "m", "n1"), Prompts(spec, "m", "n1")
    backwards = {i: other.body(i, ignore_eos=True) for i in reversed(range(20))}
    assert [one.body(i, ignore_eos=True) for i in range(20)] == [backwards[i] for i in range(20)]


@pytest.mark.parametrize("workload", NUMBERED)
def test_no_two_user_turns_are_alike(workload: str) -> None:
    made = [body for nonce in ("n1", "n2") for body in bodies(200, nonce, workload=workload)]
    assert len({prefix(body) for body in made}) == 400
    assert all(re.fullmatch(r"\[\d{12}\]", prefix(body)) for body in made)


@pytest.mark.parametrize("workload", [name for name, its in WORKLOADS.items() if its.nonce])
def test_the_number_stands_before_everything_else(workload: str) -> None:
    for body in bodies(5, workload=workload):
        assert len(body["messages"]) == 1
        assert text(body).startswith("[")


@pytest.mark.parametrize("workload", list(WORKLOADS))
def test_the_instruction_stands_in_every_prompt(workload: str) -> None:
    for body in bodies(5, workload=workload):
        assert INSTRUCTIONS[workload] in text(body)


@pytest.mark.parametrize("workload", NUMBERED)
def test_texts_come_round_after_the_pool(workload: str) -> None:
    made = bodies(2 * POOL, workload=workload)
    texts = [rest(body) for body in made]
    assert len(set(texts)) == next(i for i in range(1, 2 * POOL) if texts[i] == texts[0])
    assert len(set(texts)) == (16 if workload == "coder" else POOL)


def test_another_nonce_changes_the_prefix_and_nothing_else() -> None:
    for one, other in zip(bodies(20, "n1"), bodies(20, "n2"), strict=True):
        assert prefix(one) != prefix(other)
        assert rest(one) == rest(other)
        assert one["max_tokens"] == other["max_tokens"]


@pytest.mark.parametrize("workload", NUMBERED)
def test_another_seed_gives_other_prompts(workload: str) -> None:
    one, two = (bodies(20, seed=seed, workload=workload) for seed in (1, 2))
    pairs = list(zip(one, two, strict=True))
    assert all(prefix(one) != prefix(other) for one, other in pairs)
    assert sum(rest(one) == rest(other) for one, other in pairs) <= 3


def test_repeat_is_the_same_byte_for_byte_whatever_the_run() -> None:
    spec = LoadSpec(workload="repeat")
    made = {
        Prompts(spec, "served", nonce).body(i, ignore_eos=True) for nonce in ("n1", "n2") for i in range(60)
    }
    (body,) = made
    assert json.loads(body)["max_tokens"] == WORKLOADS["repeat"].output_tokens
    assert not re.search(r"\d{12}", body.decode())
    other = Prompts(LoadSpec(workload="repeat", seed=2), "served", "n1").body(0, ignore_eos=True)
    assert other != body


def test_a_shared_prefix_is_the_same_in_every_run() -> None:
    made = [
        body
        for nonce in ("n1", "n2")
        for seed in (1, 2)
        for body in bodies(30, nonce, workload="shared-prefix", seed=seed)
    ]
    assert {tuple(message["role"] for message in body["messages"]) for body in made} == {("system", "user")}
    (shared,) = {body["messages"][0]["content"] for body in made}
    assert 3600 < len(shared) < 4500  # 900 tokens of 4 to 5 characters
    assert len({text(body) for body in made}) == len(made)


def test_the_seed_is_not_sent() -> None:
    assert all("seed" not in body for body in bodies(3, seed=9))


def test_what_every_request_asks_for() -> None:
    (body,) = bodies(1)
    assert body.keys() == {"model", "messages", "max_tokens", "stream", "stream_options", "ignore_eos"}
    assert body["model"] == "served"
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


def test_a_proxy_may_know_the_model_by_another_name() -> None:
    assert bodies(1, model="gpt-ours")[0]["model"] == "gpt-ours"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.0),
        ("temperature", 1.0),
        ("top_p", 0.95),
        ("top_k", 0),
        ("min_p", 0.05),
        ("presence_penalty", 0.0),
        ("frequency_penalty", -1.0),
        ("repetition_penalty", 1.1),
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


@pytest.mark.parametrize(
    ("workload", "low", "high"),
    [("chat", 4.0, 5.0), ("code", 3.0, 5.0), ("long", 4.0, 5.2), ("coder", 3.0, 4.0), ("repeat", 4.0, 5.0)],
)
def test_prompts_are_about_as_long_as_asked_for(workload: str, low: float, high: float) -> None:
    asked = WORKLOADS[workload].input_tokens
    for body in bodies(20, workload=workload):
        assert low < len(text(body)) / (asked - 20) < high  # characters a token, without the template's


def test_a_prompt_longer_than_the_texts_is_filled_all_the_same() -> None:
    (body,) = bodies(1, input_tokens=100_000)
    assert 400_000 < len(text(body)) < 500_000


def test_a_prompt_of_one_token_is_its_instruction() -> None:
    assert text(bodies(1, input_tokens=1)[0]).endswith(INSTRUCTIONS["chat"] + "\n\n")


def test_a_very_short_answer_still_has_a_token() -> None:
    assert {body["max_tokens"] for body in bodies(20, output_tokens=1)} == {1}


def test_an_unknown_workload_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(SchemaError, match=r"no workload 'chta': it is one of chat, .*repeat or file:PATH"):
        Prompts(LoadSpec(workload="chta"), "m", "n")


LINES = [
    {"messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}], "id": 7},
    [{"role": "user", "content": [{"type": "text", "text": "Ünïcode"}]}],
    {
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
            {"role": "tool", "tool_call_id": "1", "content": "rain"},
        ],
        "max_tokens": 17,
        "tools": [{"type": "function", "function": {"name": "weather"}}],
    },
]


@pytest.fixture
def brought(tmp_path: Path) -> str:
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)) + "\n", "utf-8")
    return f"file:{path}"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_files_prompts_come_as_they_are_in_its_order(brought: str, seed: int) -> None:
    made = bodies(7, workload=brought, seed=seed, temperature=0.5)
    expected = [line["messages"] if isinstance(line, dict) else line for line in LINES]
    assert [body["messages"] for body in made] == [expected[i % 3] for i in range(7)]
    with_tools = LINES[2]
    assert isinstance(with_tools, dict)
    assert [body.get("tools") for body in made[:3]] == [None, None, with_tools["tools"]]
    assert all(body["temperature"] == 0.5 and "id" not in body for body in made)


def test_a_lines_own_max_tokens_is_kept_and_others_are_the_loads(brought: str) -> None:
    made = bodies(60, workload=brought, output_tokens=100)
    assert {body["max_tokens"] for body in made[2::3]} == {17}
    others = {body["max_tokens"] for body in made[::3]}
    assert len(others) > 5
    assert all(90 <= most <= 110 for most in others)


async def test_a_files_prompts_are_not_cut(brought: str) -> None:
    prompts = Prompts(LoadSpec(workload=brought), "m", "n")
    asked = Prompts(LoadSpec(workload=brought, input_tokens=64), "m", "n")
    before = asked.body(0, ignore_eos=True)
    async with aiohttp.ClientSession() as session:
        assert await prompts.prepare(session, "http://127.0.0.1:9") == ""
        assert await asked.prepare(session, "http://127.0.0.1:9") == (
            "input_tokens: a file's prompts stay as they are"
        )
    assert asked.body(0, ignore_eos=True) == before


def test_a_file_that_is_wrong_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('[{"role":"user","content":"Hi"}]\n{}\n')
    with pytest.raises(PromptFileError, match=r"p\.jsonl:2: "):
        Prompts(LoadSpec(workload=f"file:{path}"), "m", "n")

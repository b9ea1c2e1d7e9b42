"""Routes that clients use: status, headers, body."""

from __future__ import annotations

import pytest

from tests.contract.launcher import MAX_MODEL_LEN
from tests.contract.server import Server
from tests.contract.wire import CHAT, COMPLETIONS, chat, client, completion, get, post, usage_of

PERMISSION = {
    "id", "object", "created", "allow_create_engine", "allow_sampling", "allow_logprobs",
    "allow_search_indices", "allow_view", "allow_fine_tuning", "organization", "group", "is_blocking",
}  # fmt: skip
COUNTS = {"prompt_tokens", "total_tokens", "completion_tokens", "prompt_tokens_details"}
USAGE = {"0.27.1": COUNTS, "0.32.0": COUNTS | {"completion_tokens_details"}}
WHOLE = {"id", "object", "created", "model", "choices", "service_tier", "system_fingerprint", "usage"}
TAIL = {"kv_transfer_params", "ec_transfer_params", "metrics"}
PROMPT = {"prompt_logprobs", "prompt_token_ids"}
CHOICE = {"index", "logprobs", "finish_reason", "stop_reason", "token_ids", "routed_experts"}
MESSAGE = {"role", "content", "refusal", "annotations", "audio", "function_call", "reasoning"}


@pytest.mark.parametrize(("method", "path"), [("GET", "/health"), ("GET", "/ping"), ("POST", "/ping")])
def test_health_and_ping_are_empty_200s(off: Server, method: str, path: str) -> None:
    with client(off) as made:
        answer = made.request(method, path)
    assert (answer.status_code, answer.content) == (200, b"")


def test_small_json_answers(off: Server, release: str) -> None:
    version, load = get(off, "/version"), get(off, "/load")
    assert (version.status_code, version.text) == (200, f'{{"version":"{release}"}}')
    assert (load.status_code, load.text) == (200, '{"server_load":0}')
    for answer in (version, load):
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["server"] == "uvicorn"


def test_the_model_card(off: Server) -> None:
    body = get(off, "/v1/models").json()
    (card,) = body["data"]
    (permission,) = card.pop("permission")
    assert set(permission) == PERMISSION
    assert permission["id"].startswith("modelperm-")
    assert isinstance(card.pop("created"), int)
    root = card.pop("root")
    assert root.endswith("/models/tinyw")
    expected = {"object": "model", "owned_by": "vllm", "parent": None, "max_model_len": MAX_MODEL_LEN}
    assert card == {"id": "tiny"} | expected
    assert (body["object"], set(body)) == ("list", {"object", "data"})


def test_tokenize_counts_what_the_server_will_count(off: Server) -> None:
    messages = chat()["messages"]
    tokens = post(off, "/tokenize", {"model": "tiny", "messages": messages}).json()
    assert set(tokens) == {"count", "max_model_len", "tokens", "token_strs"}
    assert (tokens["max_model_len"], tokens["token_strs"]) == (MAX_MODEL_LEN, None)
    assert len(tokens["tokens"]) == tokens["count"]
    answer = post(off, CHAT, chat(max_tokens=1)).json()
    assert usage_of(answer) == (tokens["count"], 1)


def test_tokenize_takes_a_prompt_without_a_model(off: Server) -> None:
    prompt = "Once upon a time"
    tokens = post(off, "/tokenize", {"prompt": prompt, "return_token_strs": True}).json()
    assert len(tokens["token_strs"]) == tokens["count"] > 0
    assert all(isinstance(piece, str) for piece in tokens["token_strs"])
    answer = post(off, COMPLETIONS, completion(prompt, max_tokens=1)).json()
    assert usage_of(answer) == (tokens["count"], 1)


def test_detokenize_gives_the_text_back(off: Server) -> None:
    prompt = " ".join(f"{number * number} steps, then" for number in range(150))
    tokens = post(off, "/tokenize", {"model": "tiny", "prompt": prompt}).json()["tokens"]
    answer = post(off, "/detokenize", {"model": "tiny", "tokens": tokens})
    assert (answer.status_code, answer.json()) == (200, {"prompt": prompt})


def test_a_request_id_is_read_as_latin_1(off: Server) -> None:
    with client(off) as made:
        answer = made.post(CHAT, json=chat(max_tokens=1), headers=[(b"X-Request-Id", b"caf\xe9-1")])
    assert (answer.status_code, answer.json()["id"]) == (200, "chatcmpl-caf\u00e9-1")


def test_a_whole_chat_answer(off: Server, release: str) -> None:
    answer = post(off, CHAT, chat())
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    (choice,) = body["choices"]
    assert set(body) == WHOLE | PROMPT | {"prompt_text"} | TAIL
    assert set(choice) == CHOICE | {"message"}
    assert set(choice["message"]) == MESSAGE
    assert set(body["usage"]) == USAGE[release]
    assert body["id"].startswith("chatcmpl-")
    assert (body["object"], body["model"]) == ("chat.completion", "tiny")
    assert body["system_fingerprint"].startswith(f"vllm-{release}-")
    assert (choice["index"], choice["finish_reason"], choice["stop_reason"]) == (0, "length", None)
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"]
    assert usage_of(body)[1] == 24


def test_a_whole_completion(off: Server, release: str) -> None:
    body = post(off, COMPLETIONS, completion()).json()
    (choice,) = body["choices"]
    assert set(body) == WHOLE | TAIL
    assert set(choice) == CHOICE | {"text"} | PROMPT
    assert set(body["usage"]) == USAGE[release]
    assert body["id"].startswith("cmpl-")
    assert (body["object"], body["model"]) == ("text_completion", "tiny")
    assert (choice["index"], choice["finish_reason"]) == (0, "length")
    assert choice["text"]
    assert usage_of(body)[1] == 24


def test_completions_default_to_16_tokens(off: Server) -> None:
    assert usage_of(post(off, COMPLETIONS, completion(max_tokens=None)).json())[1] == 16


def test_two_prompts_give_two_choices(off: Server) -> None:
    body = post(off, COMPLETIONS, completion(prompt=["one", "two"], max_tokens=3)).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert usage_of(body)[1] == 6


def test_a_prompt_may_be_token_ids(off: Server) -> None:
    body = post(off, COMPLETIONS, completion(prompt=[5, 6, 7], max_tokens=2)).json()
    assert usage_of(body) == (3, 2)


def test_the_newer_name_of_max_tokens(off: Server) -> None:
    body = post(off, CHAT, chat(max_tokens=None, max_completion_tokens=5)).json()
    assert usage_of(body)[1] == 5


@pytest.mark.parametrize(
    "extra",
    [{"nonsense": 1}, {"chat_template_kwargs": {"enable_thinking": False}}, {"min_tokens": 2}, {"seed": 3}],
    ids=lambda extra: str(next(iter(extra))),
)
def test_fields_that_clients_send_are_accepted(off: Server, extra: dict[str, object]) -> None:
    answer = post(off, CHAT, chat(max_tokens=2, model=None) | extra)
    assert answer.status_code == 200, answer.text
    assert answer.json()["model"] == "tiny"  # without a model: the served one


def test_a_greedy_answer_repeats_itself(off: Server) -> None:
    first, second = (post(off, CHAT, chat()).json()["choices"][0]["message"] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("shown", [False, True], ids=["cut", "shown"])
def test_a_stop_string_ends_the_answer(off: Server, shown: bool) -> None:
    free = post(off, CHAT, chat()).json()["choices"][0]["message"]["content"]
    stop = next(free[i : i + 3] for i in range(len(free) // 2, len(free)) if free[i : i + 3].isascii())
    whole = post(off, CHAT, chat(stop=["\0\0", stop], include_stop_str_in_output=shown)).json()
    (choice,) = whole["choices"]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    assert choice["message"]["content"] == free[: free.index(stop) + (len(stop) if shown else 0)]
    assert 0 < usage_of(whole)[1] <= 24


def test_without_ignore_eos_min_tokens_are_certain(off: Server) -> None:
    body = post(off, CHAT, chat(ignore_eos=None, min_tokens=8, max_tokens=8)).json()
    assert (body["choices"][0]["finish_reason"], usage_of(body)[1]) == ("length", 8)

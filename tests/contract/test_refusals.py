"""What the server says no to, and in which words; whom it lets in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.launcher import MAX_MODEL_LEN
from tests.contract.server import Server
from tests.contract.wire import CHAT, COMPLETIONS, chat, client, completion, post, streaming, usage_of

LONG = "hello " * 5000
CONTEXT = f"This model's maximum context length is {MAX_MODEL_LEN} tokens."
UNKNOWN_MODEL = {
    "0.27.1": "The model `nope` does not exist.",
    "0.32.0": "The model `nope` does not exist. Valid aliases: tiny.",
}
TOO_MANY = {
    "0.27.1": "max_tokens=99999 cannot be greater than max_model_len=max_total_tokens=4096.",
    "0.32.0": "max_tokens=99999 cannot be greater than max_model_len=4096.",
}
TOO_LONG = {
    "0.27.1": "However, you requested 3 output tokens and your prompt contains at least 4094 input tokens, "
    "for a total of at least 4097 tokens. Please reduce the length of the input prompt or the number of "
    "requested output tokens. (parameter=input_tokens, value=4094)",
    "0.32.0": "However, your prompt contains at least 4097 input tokens, which exceeds this limit even "
    "without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, "
    "value=4097)",
}
BAD_JSON = {
    "0.27.1": "{'type': 'json_invalid', 'loc': ('body', 1), 'msg': 'JSON decode error', 'input': {}, 'ctx': "
    "{'error': 'Expecting property name enclosed in double quotes'}}",
    "0.32.0": "{'type': 'json_invalid', 'loc': 'body.1', 'msg': 'JSON decode error', "
    "'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting property name enclosed in double quotes'}}",
}
NOT_A_LIST = {
    "0.27.1": "{'type': 'list_type', 'loc': ('body', 'messages'), 'msg': 'Input should be a valid list', "
    "'input': 'hi'}",
    "0.32.0": "{'type': 'list_type', 'loc': 'body.messages', 'msg': 'Input should be a valid list', "
    "'input': 'hi'}",
}
UNAUTHORIZED = '{"error":"Unauthorized"}'
NOT_ALLOWED = {"detail": "Method Not Allowed"}


def refused(body: dict[str, Any]) -> tuple[str, str, str | None, int]:
    """Message, type, param and code of an error body, which has nothing else."""
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error["message"], error["type"], error["param"], error["code"]


@pytest.mark.parametrize("path", ["/nope", "/v1/nope", "/server_info"])
def test_an_unknown_route_is_a_404(off: Server, path: str) -> None:
    with client(off) as made:
        answer = made.get(path)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", CHAT, "POST"),
        ("GET", "/tokenize", "POST"),
        ("POST", "/health", "GET"),
        ("PUT", "/load", "GET"),
    ],
)
def test_a_wrong_method_is_a_405(off: Server, method: str, path: str, allow: str) -> None:
    with client(off) as made:
        answer = made.request(method, path)
    assert (answer.status_code, answer.json(), answer.headers["allow"]) == (405, NOT_ALLOWED, allow)


@pytest.mark.parametrize(("path", "body"), [(CHAT, chat()), (COMPLETIONS, completion())])
def test_an_unknown_model(off: Server, release: str, path: str, body: dict[str, Any]) -> None:
    answer = post(off, path, body | {"model": "nope"})
    assert answer.status_code == 404
    assert refused(answer.json()) == (UNKNOWN_MODEL[release], "NotFoundError", "model", 404)


@pytest.mark.parametrize(
    ("changes", "message", "param"),
    [
        (
            {"temperature": -1},
            "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)",
            "temperature",
        ),
        (
            {"max_tokens": 0},
            "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)",
            "max_tokens",
        ),
        ({"top_p": 2}, "top_p must be in (0, 1], got 2.0. (parameter=top_p, value=2.0)", "top_p"),
        (
            {"stream_options": {"include_usage": True}},
            "Stream options can only be defined when `stream=True`. (parameter=stream_options)",
            "stream_options",
        ),
        (
            {"messages": []},
            "Cannot apply chat template to an empty conversation. Provide at least one message.",
            None,
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_values_out_of_range(off: Server, changes: dict[str, Any], message: str, param: str | None) -> None:
    answer = post(off, CHAT, chat() | changes)
    assert answer.status_code == 400
    assert refused(answer.json()) == (message, "BadRequestError", param, 400)


def test_more_tokens_than_the_context(off: Server, release: str) -> None:
    answer = post(off, CHAT, chat(max_tokens=99999))
    expected = f"{TOO_MANY[release]} Please request fewer output tokens. (parameter=max_tokens, value=99999)"
    assert answer.status_code == 400
    assert refused(answer.json()) == (expected, "BadRequestError", "max_tokens", 400)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    ("path", "body"), [(CHAT, chat(LONG, max_tokens=3)), (COMPLETIONS, completion(LONG, max_tokens=3))]
)
def test_a_prompt_that_is_too_long_is_plain_json(
    off: Server, release: str, path: str, body: dict[str, Any], streamed: bool
) -> None:
    answer = post(off, path, streaming(body) if streamed else body)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
    message = f"{CONTEXT} {TOO_LONG[release]}"
    assert refused(answer.json()) == (message, "BadRequestError", "input_tokens", 400)


def test_a_prompt_that_leaves_less_room_than_max_tokens(off: Server, release: str) -> None:
    """0.27.1 says no; 0.32.0 answers as long as there is room."""
    sample = post(off, "/tokenize", {"prompt": "hello " * 100}).json()["count"]
    prompt = "hello " * (100 * (MAX_MODEL_LEN - 200) // sample)
    answer = post(off, COMPLETIONS, completion(prompt, max_tokens=MAX_MODEL_LEN - 5))
    if release == "0.27.1":
        assert answer.status_code == 400
        message, kind, _, code = refused(answer.json())
        assert message.startswith(
            f"This model's maximum context length is {MAX_MODEL_LEN} tokens. However, you "
        )
        assert (kind, code) == ("BadRequestError", 400)
    else:
        assert answer.status_code == 200
        assert sum(usage_of(answer.json())) == MAX_MODEL_LEN
        assert answer.json()["choices"][0]["finish_reason"] == "length"


def test_no_json(off: Server, release: str) -> None:
    with client(off) as made:
        answer = made.post(CHAT, content=b"{nope", headers={"content-type": "application/json"})
    assert answer.status_code == 400
    message = f"1 validation error:\n  {BAD_JSON[release]}"
    assert refused(answer.json()) == (message, "Bad Request", "body.1", 400)


def test_no_json_content_type(off: Server) -> None:
    with client(off) as made:
        answer = made.post(CHAT, content=b"{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 400
    message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
    assert refused(answer.json()) == (message, "Bad Request", None, 400)


def test_a_field_of_the_wrong_type(off: Server, release: str) -> None:
    answer = post(off, CHAT, chat(messages="hi"))
    assert answer.status_code == 400
    message = f"1 validation error:\n  {NOT_A_LIST[release]}"
    assert refused(answer.json()) == (message, "Bad Request", "body.messages", 400)


def test_tokenize_wants_a_prompt(off: Server) -> None:
    answer = post(off, "/tokenize", {"model": "tiny"})
    assert answer.status_code == 400
    message, kind, param, code = refused(answer.json())
    assert message.startswith("2 validation errors:\n  {'type': 'missing', 'loc': ")
    assert (kind, param, code) == ("Bad Request", "body.prompt", 400)


def test_a_completion_wants_a_prompt(off: Server) -> None:
    answer = post(off, COMPLETIONS, completion(None))
    message = "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)"
    assert refused(answer.json()) == (message, "BadRequestError", "prompt", 400)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/health", 200),
        ("GET", "/ping", 200),
        ("GET", "/version", 200),
        ("GET", "/load", 200),
        ("GET", "/metrics", 200),
        ("POST", "/tokenize", 200),
        ("GET", "/tokenize", 405),
        ("GET", "/nope", 404),
        ("OPTIONS", "/v1/models", 405),
        ("GET", "/v1/models", 401),
        ("GET", "/v1/nope", 401),
        ("POST", CHAT, 401),
        ("GET", CHAT, 401),
        ("POST", COMPLETIONS, 401),
    ],
)
def test_who_gets_in_without_the_key(spec: Server, method: str, path: str, status: int) -> None:
    with client(spec, with_key=False) as made:
        answer = made.request(method, path, json=chat() if method == "POST" else None)
    assert answer.status_code == status
    if status == 401:
        assert answer.text == UNAUTHORIZED
        assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("header", "status"),
    [("Bearer {}", 200), ("bearer {}", 200), ("{}", 401), ("Basic {}", 401), ("Bearer x{}", 401)],
)
def test_how_the_key_is_given(spec: Server, header: str, status: int) -> None:
    with client(spec, with_key=False) as made:
        answer = made.get("/v1/models", headers={"Authorization": header.format(spec.key)})
    assert answer.status_code == status

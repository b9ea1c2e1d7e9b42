"""The official openai client against the stand-in, unchanged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionUserMessageParam

from tests.sim.inside import inside

ASKED: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "Tell me about steps."}]
IGNORE_EOS = {"ignore_eos": True}


@asynccontextmanager
async def client(*args: str, key: str = "none") -> AsyncIterator[AsyncOpenAI]:
    async with (
        inside("--max-model-len", "4096", *args) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0) as made,
    ):
        yield made


async def test_models() -> None:
    async with client() as ask:
        models = [model async for model in ask.models.list()]
    assert [(model.id, model.owned_by) for model in models] == [("test/model", "vllm")]


async def test_a_chat_whole_and_streamed() -> None:
    async with client() as ask:
        whole = await ask.chat.completions.create(
            model="test/model", messages=ASKED, max_tokens=12, extra_body=IGNORE_EOS
        )
        stream = await ask.chat.completions.create(
            model="test/model",
            messages=ASKED,
            max_completion_tokens=12,
            stream=True,
            stream_options={"include_usage": True},
            extra_body=IGNORE_EOS,
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert whole.usage is not None
    assert chunks[-1].usage is not None
    assert whole.usage.completion_tokens == chunks[-1].usage.completion_tokens == 12
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason == "length"
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * 13


async def test_the_streaming_helper_understands_the_events() -> None:
    async with (
        client() as ask,
        ask.chat.completions.stream(model="test/model", messages=ASKED, n=2) as stream,
    ):
        kinds = {event.type async for event in stream}
        final = await stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert [choice.finish_reason for choice in final.choices] == ["stop", "stop"]
    assert all(len((choice.message.content or "").split()) > 50 for choice in final.choices)


async def test_reasoning_arrives_as_an_extra_field() -> None:
    async with client("--reasoning-parser", "qwen3") as ask:
        whole = await ask.chat.completions.create(model="test/model", messages=ASKED, max_tokens=4)
    message = whole.choices[0].message
    assert message.content is None
    assert len(str((message.model_extra or {})["reasoning"]).split()) == 4


async def test_completions_whole_and_streamed() -> None:
    async with client() as ask:
        whole = await ask.completions.create(model="test/model", prompt="Once upon", extra_body=IGNORE_EOS)
        stream = await ask.completions.create(
            model="test/model", prompt="Once upon", stream=True, extra_body=IGNORE_EOS
        )
        texts = [chunk.choices[0].text async for chunk in stream]
    assert "".join(texts) == whole.choices[0].text
    assert len(whole.choices[0].text.split()) == 16


async def test_errors_are_the_clients_own() -> None:
    async with client("--api-key", "sk-right", key="sk-right") as ask:
        with pytest.raises(openai.NotFoundError, match="The model `nope` does not exist"):
            await ask.chat.completions.create(model="nope", messages=ASKED)
        with pytest.raises(openai.BadRequestError, match="maximum context length is 4096 tokens") as caught:
            await ask.completions.create(model="test/model", prompt="word " * 5000)
        assert caught.value.param == "input_tokens"
        wrong = ask.with_options(api_key="sk-wrong")
        with pytest.raises(openai.AuthenticationError, match="401"):
            await wrong.models.list()

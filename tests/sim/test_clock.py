"""What --sim-clock writes, against what clients saw."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from time import monotonic
from typing import Any

from tests.sim.inside import SPEC, Inside, chat, inside
from tests.sim.wire import CHAT, USAGE, events, stream


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def arrivals(server: Inside, body: dict[str, Any]) -> list[float]:
    """When each event with a choice came here."""
    asked = {"stream": True, "stream_options": USAGE} | body
    async with server.session.post(server.url + CHAT, json=asked) as response:
        seen = [(monotonic(), line) async for line in response.content if line.startswith(b"data: {")]
    return [t for t, line in seen if json.loads(line[6:])["choices"]]


async def test_each_event_has_its_time_and_its_tokens(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    async with inside("--sim-clock", str(path), *SPEC) as server:
        begun = monotonic()
        seen = await arrivals(server, chat(max_tokens=40))
    (line,) = lines(path)
    assert set(line) == {"id", "arrival", "t", "tokens"}
    assert len(line["t"]) == len(line["tokens"]) == len(seen)
    assert line["tokens"][0] == 0, "the role"
    assert sum(line["tokens"]) == 40
    assert max(line["tokens"]) > 1, "speculation"
    assert begun < line["arrival"] < line["t"][0]
    assert all(a <= b for a, b in itertools.pairwise(line["t"]))
    assert all(wrote < came for wrote, came in zip(line["t"], seen, strict=True))


async def test_the_answer_is_the_same_and_carries_the_clients_id(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    told = []
    for flags in ((), ("--sim-clock", str(path))):
        async with inside(*flags) as server:
            asked = {"stream": True, "stream_options": USAGE} | chat(max_tokens=5)
            headers = {"X-Request-Id": "mine"}
            async with server.session.post(server.url + CHAT, json=asked, headers=headers) as response:
                told.append(events(await response.text()))
    for event in (*told[0], *told[1]):
        event.pop("created")
    assert told[0] == told[1]
    assert [line["id"] for line in lines(path)] == ["chatcmpl-mine"]


async def test_choices_count_each_for_itself_and_answers_in_one_piece_have_no_line(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    async with inside("--sim-clock", str(path)) as server:
        await stream(server, chat(max_tokens=4, n=2))
        assert (await server.call("POST", CHAT, json=chat(max_tokens=4)))[0] == 200
    (line,) = lines(path)
    assert sorted(line["tokens"]) == [0, 0] + [1] * 8


async def test_an_answer_that_its_client_left_has_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    async with inside("--sim-clock", str(path)) as server:
        body = chat(stream=True, max_tokens=30_000)
        async with server.session.post(server.url + CHAT, json=body) as response:
            await response.content.readline()
            response.close()
        async with asyncio.timeout(10):
            while not path.read_bytes():
                await server.call("GET", "/health")
    (line,) = lines(path)
    assert 0 < sum(line["tokens"]) < 30_000

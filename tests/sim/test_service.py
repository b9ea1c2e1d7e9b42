"""Engines on a real clock: who gets a request, what a slow reader gets, how everything ends."""

from __future__ import annotations

import asyncio
import json
import random
from typing import cast

import pytest

from sparktui.sim.counts.metrics import Metrics
from sparktui.sim.http.answers import Script, word
from sparktui.sim.http.chunks import Chunks, EventWriter
from sparktui.sim.http.payloads import Answer
from sparktui.sim.model.curve import Curve
from sparktui.sim.model.engine import Engine, EngineConfig, Request
from sparktui.sim.model.truth import Truth
from sparktui.sim.release import Release
from sparktui.sim.service import Delta, EngineDead, EngineService, Stream


def service(engines: int = 1, k: int = 0) -> EngineService:
    """Steps of 1 ms, no noise."""
    truth = Truth(off_step_ms=Curve(((1, 1.0),)), on_step_ms={3: Curve(((1, 1.0),))}, context_ms=0.0)
    config = EngineConfig(k=k, noise=0.0, restart_noise=0.0, truth=truth)
    made = [Engine(config, random.Random(seed)) for seed in range(engines)]
    return EngineService(made, Metrics("m", k, {}, Release(), engines))


def ask(serving: EngineService, tokens: int = 5) -> Stream:
    return serving.submit(Request("r", 10, tokens), Script(1))


class Wire:
    """A transport whose reader may be behind."""

    def __init__(self) -> None:
        self.buffered = 0
        self.closed = False
        self.written: list[bytes] = []

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def abort(self) -> None:
        self.closed = True

    def events(self) -> list[dict[str, object]]:
        """The JSON of each HTTP chunk, whose length must be right."""
        found = []
        for data in self.written:
            size, _, rest = data.partition(b"\r\n")
            assert rest.endswith(b"\n\n\r\n")
            assert int(size, 16) == len(rest) - 2
            found.append(json.loads(rest.removeprefix(b"data: ")))
        return found


def writer(wire: Wire, *, chat: bool = True, cut_after: int | None = None) -> EventWriter:
    answer = Answer(chat, "m", (10,), True, True)
    return EventWriter(cast(asyncio.Transport, wire), [Chunks(answer, 0, 10)], cut_after)


async def test_each_request_goes_to_the_engine_with_the_least_to_do() -> None:
    serving = service(engines=3)
    streams = [ask(serving) for _ in range(7)]
    loads = [engine.running + engine.waiting for engine in serving.engines]
    assert sorted(loads) == [2, 2, 3]
    pacing = asyncio.ensure_future(serving.run())
    for stream in streams:
        await stream.ended()
        serving.release(stream)
    generated = [seen.totals.generation_tokens for seen in serving.metrics.observed]
    assert generated == [5 * load for load in loads]
    pacing.cancel()


async def test_news_comes_within_its_step_and_merges_for_a_slow_reader() -> None:
    serving, wire = service(), Wire()
    stream = ask(serving, 6)
    (engine,) = serving.engines
    stream.listen(writer(wire).tell)

    def step() -> None:
        assert engine.due is not None
        done = engine.step(engine.due)
        assert done is not None
        stream.put(done.outputs[0])

    step()
    assert [len(wire.written), stream.generated] == [2, 1]  # a role, a token
    wire.buffered = 100_000
    for _ in range(3):
        step()
    assert len(wire.written) == 2
    wire.buffered = 0
    step()
    assert len(wire.written) == 3
    wire.buffered = 100_000
    step()  # the last one is told in any case
    usage = [event["usage"] for event in wire.events()]
    assert [cast(dict[str, int], item)["completion_tokens"] for item in usage] == [0, 1, 5, 6]
    words = "".join(str(event["choices"]) for event in wire.events())
    assert all(word(1, i) in words for i in range(6))


async def test_nothing_is_written_to_a_closed_connection() -> None:
    serving, wire = service(), Wire()
    stream = ask(serving)
    stream.generated = 3
    stream.listen(writer(wire, cut_after=2).tell)
    assert [wire.closed, len(wire.written)] == [False, 2]
    stream.generated = 4
    stream.listen(writer(wire, cut_after=0).tell)
    assert [wire.closed, len(wire.written)] == [True, 2]
    stream.listen(writer(wire).tell)
    assert len(wire.written) == 2


async def test_the_end_of_an_engine_reaches_whoever_waits() -> None:
    serving = service()
    stream = ask(serving)
    pacing = asyncio.ensure_future(serving.run())
    serving.die()
    with pytest.raises(EngineDead):
        await stream.ended()
    with pytest.raises(EngineDead):
        ask(serving)
    async with asyncio.timeout(5):
        await pacing


async def test_an_orderly_end_aborts_what_is_under_way() -> None:
    serving = service()
    stream, heard = ask(serving), list[Delta]()
    stream.listen(lambda told: heard.append(told.take()))
    serving.abort_all()
    await stream.ended()
    assert [(delta.content, delta.finish_reason) for delta in heard] == [("", "abort")]
    assert serving.running + serving.waiting == 0


async def test_the_first_draft_can_be_the_last_step() -> None:
    serving = service(k=3)
    called = asyncio.Event()
    serving.on_draft = called.set
    stream = ask(serving)
    pacing = asyncio.ensure_future(serving.run())
    async with asyncio.timeout(5):
        await called.wait()
    assert (stream.generated, serving.hung) == (1, True)  # the prompt's own step drafts nothing
    pacing.cancel()


@pytest.mark.parametrize("midstep", [False, True])
async def test_a_hang_stops_steps_until_it_ends(midstep: bool) -> None:
    serving = service()
    serving.hung = not midstep
    stream = ask(serving)
    pacing = asyncio.ensure_future(serving.run())
    for _ in range(3):  # its first step is under way
        await asyncio.sleep(0)
    serving.hung = True
    due = serving.engines[0].due
    assert due is not None
    overdue = asyncio.Event()
    asyncio.get_running_loop().call_at(due + 0.005, overdue.set)
    await overdue.wait()
    assert stream.generated == 0
    serving.hung = False
    async with asyncio.timeout(5):
        await stream.ended()
    assert stream.generated == 5
    pacing.cancel()


async def test_a_listener_that_fails_ends_its_own_stream_only(caplog: pytest.LogCaptureFixture) -> None:
    serving = service()
    broken, good = ask(serving, 1000), ask(serving)

    def fail(stream: Stream) -> None:
        raise ZeroDivisionError("a listener's own")

    broken.listen(fail)
    pacing = asyncio.ensure_future(serving.run())
    async with asyncio.timeout(5):
        await broken.ended()
        await good.ended()
    assert (broken.finish_reason, good.finish_reason) == ("abort", "length")
    assert (good.generated, serving.running + serving.waiting, pacing.done()) == (5, 0, False)
    assert f"request {broken.request.id}" in caplog.text
    assert "a listener's own" in caplog.text
    pacing.cancel()


async def test_what_an_engine_refuses_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    serving, aborted = service(), list[Request]()

    def refuse(engine: Engine, request: Request, now: float) -> None:
        raise ValueError(request.id)

    monkeypatch.setattr(Engine, "add", refuse)
    monkeypatch.setattr(Engine, "abort", lambda engine, request: aborted.append(request))
    with pytest.raises(ValueError, match="r-0"):
        ask(serving)
    serving.abort_all()
    assert aborted == []

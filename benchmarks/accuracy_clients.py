"""One client in a process of its own, for load_accuracy.py: python accuracy_clients.py NAME FILE.

``sparktui`` is the load process itself (``python -m sparktui.load`` with its own pipes); only two methods of
StreamMeter are wrapped, to note the times that it was given. ``httpx`` and ``vllm`` read a job from stdin
(one line of JSON), say "ready", begin at the next line and drain at the one after. Each writes its records to
FILE as JSON: ``id`` of the answer, ``start``, ``ttft`` (seconds), ``t`` (arrival of each event with a choice)
and ``tokens`` (by usage; None where the client doesn't know). CLOCK_MONOTONIC seconds; perf_counter is the
same clock on Linux.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

STAGGER_S = 0.02  # as sparktui does it
TEXT = "Continue the following text in the same voice and keep going until you are cut off. " * 6


@dataclass(slots=True)
class Record:
    """One request."""

    id: str = ""
    start: float = 0.0
    ttft: float | None = None
    t: list[float] = field(default_factory=list)
    tokens: int | None = None
    error: str = ""

    def plain(self) -> dict[str, Any]:
        names = ("id", "start", "ttft", "t", "tokens", "error")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Job:
    """``streams`` requests at once, each of about ``tokens`` tokens."""

    url: str
    model: str
    streams: int
    tokens: int

    def length(self, picked: random.Random) -> int:
        """Jittered, or streams of equal lengths stay in step for ever."""
        return round(self.tokens * picked.uniform(0.9, 1.1))


Request = Callable[[Job, int, int], Awaitable[Record]]  # number and max_tokens


def sparktui(path: Path) -> int:
    """The load process, with the times written down as they come."""
    from sparktui.load import __main__ as process
    from sparktui.load.meter import StreamMeter
    from sparktui.schema.records import RequestRow

    times: dict[int, list[float]] = {}
    first: dict[int, bytes] = {}
    rows: list[RequestRow] = []
    count, finish = StreamMeter.event, StreamMeter.row

    def event(self: StreamMeter, payload: bytes, t: float) -> None:
        seen = times.get(self.index)
        if seen is None:
            seen = times[self.index] = []
            first[self.index] = payload
        seen.append(t)
        count(self, payload, t)

    def row(self: StreamMeter, *args: Any, **more: Any) -> RequestRow:
        rows.append(finish(self, *args, **more))
        return rows[-1]

    StreamMeter.event, StreamMeter.row = event, row  # type: ignore[method-assign]
    code = process.main()
    records = []
    for done in rows:
        seen = times.get(done.index, [])
        key = json.loads(first[done.index])["id"] if done.index in first else ""
        ttft = None if done.ttft_ms is None else done.ttft_ms / 1000
        records.append(Record(key, done.start, ttft, seen, done.completion_tokens, done.error))
    write(path, records)
    return code


def write(path: Path, records: list[Record]) -> None:
    path.write_text(json.dumps([record.plain() for record in records]), "utf-8")


async def closed_loop(job: Job, request: Request) -> list[Record]:
    """Each stream asks again as its answer ends, until the next line on stdin; then they drain."""
    records: list[Record] = []
    numbers, picked, draining = itertools.count(), random.Random(1), asyncio.Event()

    async def stream(slot: int) -> None:
        await asyncio.sleep(slot * STAGGER_S)
        while not draining.is_set():
            records.append(await request(job, next(numbers), job.length(picked)))

    streams = [asyncio.create_task(stream(slot)) for slot in range(job.streams)]
    await asyncio.to_thread(sys.stdin.readline)
    draining.set()
    await asyncio.gather(*streams)
    return records


async def with_httpx(job: Job) -> list[Record]:
    """httpx as its documentation has it: one client, ``aiter_lines``, json; without its limits."""
    import httpx

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=2)
    async with httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) as client:

        async def request(job: Job, number: int, tokens: int) -> Record:
            body = json.dumps(chat(job, number, tokens)).encode()
            headers = {"Content-Type": "application/json"}
            record = Record(start=monotonic())
            url = job.url + "/v1/chat/completions"
            async with client.stream("POST", url, content=body, headers=headers) as response:
                async for line in response.aiter_lines():
                    t = monotonic()
                    if line == "data: [DONE]":
                        break
                    if line.startswith("data: "):
                        note(record, json.loads(line[6:]), t)
            return record

        return await closed_loop(job, request)


def note(record: Record, event: dict[str, Any], t: float) -> None:
    """One event, by the usual rules: content makes the first token, usage counts them."""
    for choice in event["choices"]:
        record.t.append(t)
        if record.ttft is None and choice["delta"].get("content"):
            record.ttft, record.id = t - record.start, event["id"]
    if usage := event.get("usage"):
        record.tokens = usage["completion_tokens"]


def chat(job: Job, number: int, tokens: int) -> dict[str, Any]:
    return {
        "model": job.model,
        "messages": [{"role": "user", "content": f"[{number}] {TEXT}"}],
        "max_tokens": tokens,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


async def with_vllm(job: Job) -> list[Record]:
    """The request function of ``vllm bench serve``, with the session that it makes for it."""
    import aiohttp
    from vllm.benchmarks.lib import endpoint_request_func as bench

    connector = aiohttp.TCPConnector(
        limit=job.streams, limit_per_host=job.streams, keepalive_timeout=60, enable_cleanup_closed=True
    )
    async with aiohttp.ClientSession(connector=connector, trust_env=True) as session:

        async def request(job: Job, number: int, tokens: int) -> Record:
            asked = bench.RequestFuncInput(
                prompt=f"[{number}] {TEXT}",
                api_url=job.url + "/v1/chat/completions",
                prompt_len=1,
                output_len=tokens,
                model=job.model,
                ignore_eos=True,
                request_id=f"bench{number}",
            )
            got = await bench.async_request_openai_chat_completions(asked, session)
            t = list(itertools.accumulate([got.start_time + got.ttft, *got.itl]))
            return Record(
                f"chatcmpl-bench{number}", got.start_time, got.ttft, t, got.output_tokens, got.error
            )

        return await closed_loop(job, request)


CLIENTS = {"httpx": with_httpx, "vllm": with_vllm}


def main() -> int:
    name, path = sys.argv[1], Path(sys.argv[2])
    if name == "sparktui":
        return sparktui(path)
    if name == "vllm":
        import vllm.benchmarks.lib.endpoint_request_func  # noqa: F401 seconds, before anything is timed
    job = Job(**json.loads(sys.stdin.readline()))
    print("ready", flush=True)
    sys.stdin.readline()
    write(path, asyncio.run(CLIENTS[name](job)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

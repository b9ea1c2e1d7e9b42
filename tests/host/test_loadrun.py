"""One load on the stand-in, as ``sparktui load`` runs it: figures, what stands beside them, every way out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from sparktui.gpu.sampler import GpuSampler
from sparktui.host import loader, loadrun
from sparktui.host.loader import LoadGone
from sparktui.host.loadrun import Job, Progress, run
from sparktui.host.loadserver import sampler_beside
from sparktui.schema.launch import LoadSpec
from sparktui.schema.records import LoadResult, RequestRow
from sparktui.server import ready
from tests.contract.server import Server
from tests.standin import MODEL, fast_server, fault, flagged, no_faults, page
from tests.support import free_port

SHORT = LoadSpec("chat", 32, 40)
GENERATED = "generation_tokens_total"


@pytest.fixture(autouse=True)
def _alone(server: Server) -> Iterator[None]:
    """Each test begins without faults, and leaves no load process behind."""
    yield
    no_faults(server)
    assert not load_processes()


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with ready.client() as client:
        yield client


def blamed(result: LoadResult) -> bool:
    """Whether the client is called the limit while its own loop was well: a busy machine's may not be."""
    return result.client.limited and (result.client.lag_ms_p99 or 0.0) < 2.0


def load_processes() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "sparktui.load" in child.cmdline()]


def job(server: Server, seconds: float = 1.5, spec: LoadSpec = SHORT, streams: int = 2) -> Job:
    return Job(server.url, MODEL, spec, streams, seconds)


class Steps:
    """Keeps progress, and does something once: at the first one that fits."""

    def __init__(self, fits: Callable[[Progress], bool], do: Callable[[], object]) -> None:
        self._fits, self._do = fits, do
        self.seen: list[Progress] = []
        self.done = False

    def __call__(self, progress: Progress) -> None:
        self.seen.append(progress)
        if not self.done and self._fits(progress):
            self.done = True
            self._do()


async def never_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


def answering(progress: Progress) -> bool:
    return progress.elapsed_s > 1.0 and progress.totals.ok >= 2


async def test_every_request_is_a_row_and_every_token_the_server_s(
    server: Server, http: httpx.AsyncClient
) -> None:
    before, rows, seen = page(server), list[RequestRow](), list[Progress]()
    result = await run(job(server, 2.0), http, asyncio.Event(), rows.append, seen.append)
    change = page(server).counters[GENERATED] - before.counters[GENERATED]
    assert change == sum(row.completion_tokens or 0 for row in rows)
    assert result.complete
    assert (result.errors, result.cancelled) == (0, 0)
    assert seen[-1].totals.done == len(rows)
    assert seen[-1].draining
    elapsed = [progress.elapsed_s for progress in seen]
    assert elapsed == sorted(elapsed)
    assert elapsed[-1] == 2.0
    assert result.power_w, "the stand-in's own sensor"


async def test_no_usage_is_chunks_and_nothing_is_said_of_others(
    server: Server, http: httpx.AsyncClient
) -> None:
    fault(server, fault="no_usage")
    result = await run(job(server), http, asyncio.Event())
    assert result.output_tok_s is None
    assert result.chunks_s
    assert result.server is not None
    assert result.server.output_tok_s == pytest.approx(result.chunks_s, rel=0.1)  # a token is a chunk here
    assert result.server.others_tokens is None
    assert not flagged(result, "other traffic")


async def test_usage_at_the_end_gives_the_server_s_own_rate(server: Server, http: httpx.AsyncClient) -> None:
    """Answers half as long as the window: tokens told within it are not those that came within it."""
    fault(server, fault="final_usage")
    answers = LoadSpec("chat", 32, 400)
    result = await run(job(server, 4.0, answers, streams=4), http, asyncio.Event())
    assert flagged(result, "token counts come only at each answer's end")
    assert result.server is not None
    assert result.output_tok_s is not None
    assert result.server.output_tok_s is not None
    assert result.output_tok_s == pytest.approx(result.server.output_tok_s, rel=0.03)
    assert result.server.others_tokens is None
    assert not blamed(result)
    assert not flagged(result, "other traffic")
    assert result.power_w is not None
    assert result.joules_per_token == pytest.approx(result.power_w / result.server.output_tok_s, rel=0.04)


async def test_usage_at_the_end_of_answers_that_are_cut(server: Server, http: httpx.AsyncClient) -> None:
    """None gets as far as its count: chunks/s, and nothing is said of others."""
    fault(server, fault="final_usage")
    result = await run(job(server, 1.5, LoadSpec("chat", 32, 8000)), http, asyncio.Event())
    assert result.cancelled == 2
    assert result.output_tok_s is None
    assert result.chunks_s
    assert result.server is not None
    assert result.server.output_tok_s == pytest.approx(result.chunks_s, rel=0.1)  # a token is a chunk here
    assert not flagged(result, "other traffic")
    assert not blamed(result)


async def test_others_traffic_is_counted_and_not_ours(server: Server, http: httpx.AsyncClient) -> None:
    rows: list[RequestRow] = []
    fault(server, fault="foreign_traffic", streams=4, prompt_tokens=16, max_tokens=64)
    result = await run(job(server, 3.0), http, asyncio.Event(), rows.append)
    assert flagged(result, "other traffic: ")
    assert not blamed(result)  # the counter is ahead of us, and others are why
    assert result.server is not None
    assert result.output_tok_s is not None
    assert result.server.output_tok_s is not None
    assert result.server.others_tokens is not None
    theirs = result.server.others_tokens / result.window_s
    assert theirs > result.output_tok_s, "four streams of theirs, two of ours"
    assert result.server.output_tok_s == pytest.approx(result.output_tok_s + theirs, rel=0.25)
    assert result.output_tok_s * result.window_s <= sum(row.completion_tokens or 0 for row in rows)


async def test_counters_that_begin_anew_give_no_server_figures(
    server: Server, http: httpx.AsyncClient
) -> None:
    steps = Steps(lambda now: now.elapsed_s > 1.2, lambda: fault(server, fault="counter_reset"))
    result = await run(job(server, 3.0), http, asyncio.Event(), on_progress=steps)
    assert steps.done
    assert result.server is None
    assert flagged(result, "no server figures: its counters began anew in the window")
    assert result.output_tok_s


@pytest.mark.parametrize("name", ["hanging_metrics", "nonsense_metrics"])
async def test_without_metrics_the_client_s_figures_stand(
    server: Server, http: httpx.AsyncClient, name: str
) -> None:
    fault(server, fault=name)
    result = await run(job(server), http, asyncio.Event())
    assert result.server is None
    assert flagged(result, "no server figures: ")
    assert result.complete
    assert result.output_tok_s


async def test_slow_metrics_hold_nothing_up(server: Server, http: httpx.AsyncClient) -> None:
    """Scrapes of 0.8 s: dated at their middle, and the load's own clock goes on."""
    fault(server, fault="slow_metrics", seconds=0.8)
    seen: list[Progress] = []
    result = await run(job(server, 4.0), http, asyncio.Event(), on_progress=seen.append)
    assert result.complete
    assert result.seconds == pytest.approx(4.0, abs=0.6)
    assert len(seen) >= 15, "five lines a second"
    assert result.server is not None
    assert result.output_tok_s


async def test_metrics_of_a_server_that_is_not_there(server: Server, http: httpx.AsyncClient) -> None:
    elsewhere = Job(server.url, MODEL, SHORT, 1, 1.0, metrics_url=f"http://127.0.0.1:{free_port()}")
    result = await run(elsewhere, http, asyncio.Event())
    assert result.server is None
    assert flagged(result, "no server figures: /metrics: ")
    assert flagged(result, "prompts have about 32 tokens, as estimated from their words: /tokenize: ")
    assert result.output_tok_s


async def test_metrics_of_another_server_are_not_believed(
    server: Server, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    with fast_server(tmp_path) as other:
        beside = Job(server.url, MODEL, SHORT, 2, 2.0, metrics_url=other.url)
        result = await run(beside, http, asyncio.Event())
    assert flagged(result, "tokens aren't in its counters: another server's?")


async def test_prompts_that_can_t_be_as_short_as_asked_are_told(
    server: Server, http: httpx.AsyncClient
) -> None:
    rows: list[RequestRow] = []
    result = await run(job(server, 1.0, LoadSpec("chat", 4, 16)), http, asyncio.Event(), rows.append)
    (length,) = {row.prompt_tokens for row in rows}
    assert flagged(result, f"prompts have {length} tokens: without any text that is already more than 4")


async def test_stopped_before_its_first_request(server: Server, http: httpx.AsyncClient) -> None:
    stop = asyncio.Event()
    stop.set()
    before = page(server)
    with pytest.raises(LoadGone, match="interrupted before its first request"):
        await run(job(server), http, stop)
    assert page(server).counters == before.counters


async def test_stopped_while_prompts_are_counted(server: Server, http: httpx.AsyncClient) -> None:
    """A /tokenize that never answers."""
    stop = asyncio.Event()
    rows: list[RequestRow] = []
    other = await asyncio.start_server(never_answers, "127.0.0.1", 0)
    async with other:
        port = other.sockets[0].getsockname()[1]
        counting = Job(server.url, MODEL, SHORT, 2, 30.0, metrics_url=f"http://127.0.0.1:{port}")
        steps = Steps(lambda _: True, stop.set)
        result = await run(counting, http, stop, rows.append, steps)
    assert steps.done
    assert not rows
    assert not result.complete
    assert result.output_tok_s is None
    assert result.ttft_ms == {}


async def test_stopped_midway_keeps_what_there_is(server: Server, http: httpx.AsyncClient) -> None:
    stop, rows = asyncio.Event(), list[RequestRow]()
    result = await run(
        job(server, 60.0, LoadSpec("chat", 32, 400)), http, stop, rows.append, Steps(answering, stop.set)
    )
    assert not result.complete
    assert result.output_tok_s
    assert result.cancelled == sum(row.cancelled for row in rows) == 2
    assert flagged(result, "ended early, after ")


async def test_stopped_while_it_drains_is_complete(server: Server, http: httpx.AsyncClient) -> None:
    """Answers of half a minute: the drain would take its whole time."""
    stop = asyncio.Event()
    steps = Steps(
        lambda now: now.totals.in_flight > 0 and now.totals.asked == 0 and now.elapsed_s > 0, stop.set
    )
    result = await run(job(server, 1.0, LoadSpec("chat", 32, 8000)), http, stop, on_progress=steps)
    assert steps.done
    assert result.complete
    assert result.cancelled == 2
    assert result.output_tok_s


async def test_a_load_process_that_dies_leaves_a_partial_result(
    server: Server, http: httpx.AsyncClient
) -> None:
    steps = Steps(answering, lambda: load_processes()[0].kill())
    result = await run(job(server, 60.0), http, asyncio.Event(), on_progress=steps)
    assert not result.complete
    assert flagged(result, "the load process failed: the load process ended")
    assert result.output_tok_s


async def test_a_load_process_that_hangs_is_told_and_ended(
    server: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loadrun, "_SILENT_S", 1.0)
    monkeypatch.setattr(loader, "_END_S", 0.5)
    steps = Steps(answering, lambda: load_processes()[0].suspend())
    result = await run(job(server, 60.0), http, asyncio.Event(), on_progress=steps)
    assert steps.done
    assert not result.complete
    assert flagged(result, "the load process failed: the load process said nothing for 1 s")
    assert result.output_tok_s


async def test_prompts_that_take_for_ever_are_told(
    server: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load process gives up on /tokenize after seconds; here its host does before."""
    monkeypatch.setattr(loadrun, "_PREPARE_S", 0.5)
    other = await asyncio.start_server(never_answers, "127.0.0.1", 0)
    async with other:
        port = other.sockets[0].getsockname()[1]
        counting = Job(server.url, MODEL, SHORT, 2, 30.0, metrics_url=f"http://127.0.0.1:{port}")
        with pytest.raises(LoadGone, match=r"the load process sent no request for 0\.5 s"):
            await run(counting, http, asyncio.Event())


async def test_cancelling_ends_the_load_process(server: Server, http: httpx.AsyncClient) -> None:
    going = asyncio.Event()
    task = asyncio.create_task(
        run(job(server, 60.0), http, asyncio.Event(), on_progress=Steps(answering, going.set))
    )
    await going.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not load_processes()


async def test_the_key_is_in_the_environment_only(
    server: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-not-for-your-eyes")
    told: list[tuple[list[str], dict[str, str]]] = []
    steps = Steps(answering, lambda: told.extend((p.cmdline(), p.environ()) for p in load_processes()))
    await run(job(server), http, asyncio.Event(), on_progress=steps)
    ((command, environment),) = told
    assert environment["VLLM_API_KEY"] == "sk-not-for-your-eyes"
    assert "sk-not" not in " ".join(command)


def test_gpus_are_read_where_the_server_is(server: Server) -> None:
    assert sampler_beside("http://gpu-box:8000") is None
    assert sampler_beside("http://192.0.2.1:8000") is None
    assert isinstance(sampler_beside(f"http://localhost:{free_port()}"), GpuSampler)
    assert isinstance(sampler_beside(server.url), GpuSampler)

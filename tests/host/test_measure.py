"""Warm-up, settle and window on a scripted load process: virtual time, no server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sparktui.host.cell import Energy, Foreign, Measured, Place, cell
from sparktui.host.live import Live
from sparktui.host.measure import Bench, Unmeasurable, Void
from sparktui.metrics.page import Page
from sparktui.schema.launch import MeasureSpec
from sparktui.schema.messages import LoadTarget, LoadTotals
from sparktui.schema.records import Batch, RequestRow, Usage

TICK = 0.2
ON = Place(1, "on", 0, 1, True)


@dataclass
class Script:
    """Totals every 0.2 s of its own time; ``rate`` gives tok/s per stream at a time."""

    rate: Callable[[float], float] = lambda t: 100.0
    errors_per_tick: int = 0
    lag_ms: float = 0.5
    cpu: float = 0.1
    on_tick: Callable[[float], None] = lambda t: None
    t: float = 0.0
    targets: list[LoadTarget] = field(default_factory=list)
    tokens: float = 0.0
    stream_s: float = 0.0
    ok: int = 0
    errors: int = 0

    async def aim(self, target: LoadTarget) -> None:
        self.targets.append(target)

    async def next_totals(self) -> LoadTotals:
        self.t += TICK
        streams = self.targets[-1].concurrency if self.targets else 1
        self.tokens += self.rate(self.t) * TICK * streams
        self.stream_s += TICK * streams
        self.errors += self.errors_per_tick
        self.ok += 0 if self.errors_per_tick else streams
        self.on_tick(self.t)
        tokens = round(self.tokens)
        return LoadTotals(
            self.t, streams, streams, self.ok + self.errors, self.ok, self.errors, 0, tokens, tokens,
            self.stream_s, self.lag_ms, self.cpu, "HTTP 401: Unauthorized" if self.errors else "",
            usage="continuous",
        )  # fmt: skip


def bench(script: Script, *, jit: Callable[[], int] = lambda: 0, **spec: float) -> Bench:
    times = {"settle_s": 6.0, "batch_s": 1.0, "min_window_s": 5.0, "max_window_s": 20.0, **spec}
    return Bench(script, Live(lambda _: None), MeasureSpec(**times), 8, jit)


def page(t: float, tokens: float, running: float = 1.0) -> Page:
    return Page(t, {"generation_tokens_total": tokens}, {}, (), running, 0.0, 0.1, 1)


async def test_warm_up_asks_twice_min_of_load_and_max_num_seqs() -> None:
    script = Script()
    await bench(script).warm_up(32, ignore_eos=True)
    assert script.ok >= 16
    assert script.targets[0].ignore_eos is False
    assert script.targets[1].ignore_eos is True
    first, second = (target.next_prompt for target in script.targets)
    assert first is not None
    assert second == 0
    assert first > 1000, "a prompt of the warm-up must not come again: it would hit the prefix cache"


async def test_warm_up_names_what_the_server_said() -> None:
    with pytest.raises(Unmeasurable, match="requests fail: HTTP 401: Unauthorized"):
        await bench(Script(errors_per_tick=1)).warm_up(1, ignore_eos=True)


async def test_warm_up_notes_answers_that_end_early() -> None:
    script = Script()
    made = bench(script)
    rows = iter(range(100))

    def on_tick(t: float) -> None:
        made.live.add_row(RequestRow(next(rows), t, True, finish_reason="stop"))

    script.on_tick = on_tick
    await made.warm_up(1, ignore_eos=True)
    assert len(made.notes) == 1
    assert "past the natural end" in made.notes[0]


async def test_settle_ends_with_a_flat_rate_and_gives_up_on_a_rising_one() -> None:
    flat = Script(rate=lambda t: 100.0 + (1 if round(t) % 2 else -1))
    assert await bench(flat).settle() is True
    assert 5.5 <= flat.t <= 8

    rising = Script(rate=lambda t: 100.0 + 5 * t)
    assert await bench(rising).settle() is False
    assert rising.t == pytest.approx(12.0, abs=0.5)  # twice settle_s, then measured anyway


async def test_window_ends_by_precision_or_by_time() -> None:
    steady = await bench(Script(rate=lambda t: 100.0)).window(1)
    assert steady.ended.t - steady.begun.t == pytest.approx(5.0, abs=0.3)
    shaky = await bench(Script(rate=lambda t: 100.0 + (40 if int(t) % 2 else -40))).window(1)
    assert shaky.ended.t - shaky.begun.t == pytest.approx(20.0, abs=0.6)


async def test_window_is_void_when_a_kernel_compiles() -> None:
    count = 0

    def on_tick(t: float) -> None:
        nonlocal count
        count = int(t > 2)

    with pytest.raises(Void, match="compiled"):
        await bench(Script(on_tick=on_tick), jit=lambda: count).window(1)


async def test_window_is_void_after_three_scrapes_with_more_requests_than_ours() -> None:
    script = Script()
    made = bench(script)

    def on_tick(t: float) -> None:
        made.live._take(page(t, t * 100, running=3.0))

    script.on_tick = on_tick
    with pytest.raises(Void, match="3 requests on the server, 1 are ours"):
        await made.window(1)
    assert script.t == pytest.approx(4 * TICK)


def measured(
    *,
    server_tokens: float,
    lag_ms: float = 0.5,
    errors: int = 0,
    hits: float = 0.0,
    usage: Usage = "continuous",
    share: float = 1.0,
) -> Measured:
    """Ten seconds at 100 tok/s as we saw it; the server counted ``server_tokens`` between its scrapes.
    ``share``: of those tokens, what was told of within the window."""
    series = [
        LoadTotals(
            t,
            1,
            1,
            0,
            0,
            errors if t else 0,
            0,
            round(100 * share * t),
            round(98 * share * t),
            t * share,
            lag_ms,
            0.1,
            chunks=round(100 * t),
            usage=usage,
        )
        for t in (i * TICK for i in range(51))
    ]
    counters = {"prefix_cache_queries_total": 0.0, "prefix_cache_hits_total": 0.0}
    pages = [
        Page(0.0, {"generation_tokens_total": 0.0, **counters}, {}, (), 1.0, 0.0, 0.1, 1),
        Page(
            10.0,
            {
                "generation_tokens_total": server_tokens,
                "prefix_cache_queries_total": 100.0,
                "prefix_cache_hits_total": hits,
            },
            {}, (), 1.0, 0.0, 0.1, 1,
        ),
    ]  # fmt: skip
    batches = tuple(Batch(1.0, round(100 * share), round(98 * share), share) for _ in range(10))
    rows = [RequestRow(i, 0.0, True, ttft_ms=50.0 + i, decode_tokens=60) for i in range(3)]
    return Measured(batches, series[0], series[-1], series, pages, rows, 0.25)


def test_cell_holds_the_windows_figures() -> None:
    made = cell(measured(server_tokens=1000), ON, Energy(200.0, 2000.0))
    assert made.decode_tok_s == pytest.approx(98.0)
    assert made.output_tok_s == pytest.approx(100.0)
    assert made.server_output_tok_s == pytest.approx(100.0)
    assert made.joules_per_token == pytest.approx(2.0)
    assert made.power_w == 200.0
    assert made.ttft_ms == {"p50": 51.0}  # three requests have no p95
    assert made.kv_usage_max == 0.25
    assert (made.requests, made.errors, made.excluded) == (3, 0, 0)
    assert made.flags == ()


def test_tokens_that_are_not_ours_void_the_window() -> None:
    with pytest.raises(Foreign, match="the server made 1100 tokens, 1000 are ours"):
        cell(measured(server_tokens=1100), ON, Energy(None, None))


def test_flags() -> None:
    def flags(made: Measured, place: Place = ON) -> tuple[str, ...]:
        return cell(made, place, Energy(None, None)).flags

    assert flags(measured(server_tokens=1000, lag_ms=9.0)) == ("client-limited",)
    assert flags(measured(server_tokens=1019)) == ("client-limited",)  # 1.9 % behind the server
    assert flags(measured(server_tokens=1000, errors=2)) == ("failed requests",)
    assert flags(measured(server_tokens=1000, hits=5.0)) == ("prefix hits 5%",)
    assert flags(measured(server_tokens=1000), Place(1, "on", 0, 1, steady=False)) == ("not steady",)


@pytest.mark.parametrize(("usage", "share"), [("final", 0.85), ("none", 0.0), ("", 0.0)])
def test_counts_that_come_late_are_no_others_traffic_and_the_servers_stand(
    usage: Usage, share: float
) -> None:
    """Through a proxy: by our count 150 or all of 1000 tokens were somebody else's, and the client late."""
    made = cell(measured(server_tokens=1000, usage=usage, share=share), ON, Energy(200.0, 2000.0))
    assert made.output_tok_s == pytest.approx(100.0)
    assert made.joules_per_token == pytest.approx(2.0)
    assert made.flags == ("token counts don't come in time: output tok/s is the server's",)
    assert made.decode_tok_s == (pytest.approx(98.0, rel=0.02) if share else None)


def test_counts_that_come_late_without_a_counter_of_the_server() -> None:
    bare = measured(server_tokens=1000, usage="final", share=0.85)
    bare.pages.clear()
    made = cell(bare, ON, Energy(None, None))
    assert made.output_tok_s == pytest.approx(85.0)
    assert made.flags == ("token counts don't come in time",)


@pytest.mark.parametrize("workload", ["shared-prefix", "repeat"])
def test_prefix_hits_of_a_workload_that_is_meant_to_hit_are_no_flag(workload: str) -> None:
    place = Place(1, "on", 0, 1, True, workload)
    made = cell(measured(server_tokens=1000, hits=90.0), place, Energy(None, None))
    assert made.prefix_hit_rate == pytest.approx(0.9)
    assert made.flags == ()


def test_a_restart_inside_the_window_voids_it() -> None:
    made = measured(server_tokens=1000)
    made.pages.append(page(10.5, 3.0))
    with pytest.raises(Foreign, match="began anew"):
        cell(made, ON, Energy(None, None))

"""How evenly the stand-in streams: python benchmarks/sim_pacing.py [STREAMS = 256] [SECONDS = 20].

The stand-in runs with steps of exactly 20 ms on one core, a client that only cuts chunks apart and takes the
time runs on another; both are pinned. Each stream's chunks should arrive on a grid of 20 ms: its phase is the
median, what is left is the pacing error. A timer in the client's loop tells how much of that is the client's
own lateness. On a machine that others use too, --realtime gives both the scheduler's FIFO class, so that what
is measured is this program and not the neighbours; --usage asks for continuous usage, as sparktui does.
Exits 1 when p99 of the pacing error is 5 ms or more, when less than 99 % of the chunks come, or when a stream
has none.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import psutil

STEP_S = 0.02
WARM_UP_S = 3.0
P99_BELOW_S = 0.005
RATE_FROM = 0.99
MODEL = """\
name: pacing
about: steps of 20 ms at any load
decode:
  off:
    step_ms: {1: 20}
  on:
    step_ms: {1: {1: 20}}
  context_ms: 0
prefill:
  tokens_per_s: 100000000
acceptance:
  measured: {1: [0.5]}
kv_cache:
  tokens: 100000000
"""


@dataclass(slots=True)
class Reader(asyncio.Protocol):
    """One stream: when each of its events came. Several that came in one read share its time."""

    request: bytes
    times: list[float] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self.times.extend([now] * data.count(b'"token_ids":null}]'))

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


def realtime(pid: int, priority: int) -> None:
    """Before everything else on that core."""
    os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(priority))


def start(cpu: int, folder: Path, *more: str) -> tuple[subprocess.Popen[str], int]:
    """The stand-in on that core, and its port. ``more``: further flags."""
    model = folder / "pacing.yaml"
    model.write_text(MODEL)
    flags = ["--sim-model", str(model), "--sim-noise", "0", "--sim-restart-noise", "0"]
    argv = [sys.executable, "-m", "sparktui.sim", "serve", "pacing", "--host", "127.0.0.1", "--port", "0"]
    argv += [
        *flags,
        "--sim-boot-seconds",
        "0",
        "--max-num-seqs",
        "1024",
        "--disable-uvicorn-access-log",
        *more,
    ]
    pin = ["taskset", "-c", str(cpu)]
    server = subprocess.Popen(
        [*pin, *argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert server.stdout is not None
    port = 0
    for line in server.stdout:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
            port = int(found[1])
        if "Application startup complete" in line:
            threading.Thread(target=drain, args=(server.stdout,), daemon=True).start()
            return server, port
    raise SystemExit("the stand-in did not start")


def drain(output: TextIO) -> None:
    """A full pipe would stop the server."""
    for _ in output:
        pass


def request(tokens: int, number: int, *, usage: bool) -> bytes:
    """A chat completion that streams."""
    body: dict[str, object] = {
        "messages": [{"role": "user", "content": f"stream {number}"}],
        "max_tokens": tokens,
        "ignore_eos": True,
        "stream": True,
    }
    if usage:
        body["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
    raw = json.dumps(body).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(raw)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + raw


async def lag(into: list[float], stop: asyncio.Event) -> None:
    """How late a timer of 5 ms comes, in seconds."""
    while not stop.is_set():
        due = time.perf_counter() + 0.005
        await asyncio.sleep(0.005)
        into.append(time.perf_counter() - due)


async def measure(port: int, pid: int, streams: int, seconds: float, *, usage: bool) -> bool:
    """Read for so long and print what was seen. Whether it is good enough."""
    loop, lags, stop = asyncio.get_running_loop(), list[float](), asyncio.Event()
    tokens = int((seconds + 2 * WARM_UP_S) / STEP_S)
    readers = [Reader(request(tokens, i, usage=usage)) for i in range(streams)]
    for reader in readers:
        await loop.create_connection(lambda reader=reader: reader, "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.sleep(WARM_UP_S)
    timer = asyncio.ensure_future(lag(lags, stop))
    server, begun = psutil.Process(pid), time.perf_counter()
    before = (sum(server.cpu_times()[:2]), time.process_time())
    await asyncio.sleep(seconds)
    spent = time.perf_counter() - begun
    used = (sum(server.cpu_times()[:2]) - before[0], time.process_time() - before[1])
    stop.set()
    await timer
    window = [[t for t in reader.times if begun <= t < begun + spent] for reader in readers]
    return report(window, spent, used, lags)


def report(window: list[list[float]], spent: float, used: tuple[float, float], lags: list[float]) -> bool:
    """Three lines: rates and load, errors, what is not good enough."""
    count, expected = sum(map(len, window)), len(window) * spent / STEP_S
    silent = sum(not times for times in window)
    errors = [abs(error) for times in window for error in deviations(times)]
    gaps = [abs(b - a - STEP_S) for times in window for a, b in itertools.pairwise(times)]
    print(
        f"{count / spent:,.0f} chunks/s of {expected / spent:,.0f}; "
        f"CPU: server {100 * used[0] / spent:.0f} %, client {100 * used[1] / spent:.0f} %; "
        f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    print(
        f"pacing error p50 {ms(errors, 50)} p99 {ms(errors, 99)} max {ms(errors, 100)}; "
        f"gap error p50 {ms(gaps, 50)} p99 {ms(gaps, 99)}; "
        f"client's lag p50 {ms(lags, 50)} p99 {ms(lags, 99)} (ms)"
    )
    bad = complaints(count / expected, silent, percentile(errors, 99))
    print("; ".join(bad) or "good")
    return not bad


def complaints(rate: float, silent: int, p99: float | None) -> list[str]:
    """What is not good enough. ``rate``: share of the chunks that came; ``p99``: of the pacing error, s."""
    found = []
    if silent:
        found.append(f"{silent} streams without a chunk")
    if rate < RATE_FROM:
        found.append(f"{100 * rate:.1f} % of the chunks: less than {100 * RATE_FROM:.0f} %")
    if p99 is None or p99 >= P99_BELOW_S:
        found.append(f"p99 of the pacing error is not below {1000 * P99_BELOW_S:.0f} ms")
    return found


def deviations(times: list[float]) -> list[float]:
    """Each arrival's distance from a grid of STEP_S through the stream's median phase."""
    if not times:
        return []
    offsets = [t - times[0] - STEP_S * i for i, t in enumerate(times)]
    middle = statistics.median(offsets)
    return [offset - middle for offset in offsets]


def percentile(values: list[float], percent: int) -> float | None:
    """None without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else None


def ms(values: list[float], percent: int) -> str:
    """A percentile in milliseconds."""
    found = percentile(values, percent)
    return "-" if found is None else f"{1000 * found:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("streams", type=int, nargs="?", default=256)
    parser.add_argument("seconds", type=float, nargs="?", default=20.0)
    parser.add_argument("--usage", action="store_true", help="ask for continuous usage")
    parser.add_argument("--realtime", action="store_true", help="FIFO scheduling; needs the right to it")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(cores[0], Path(folder))
        try:
            if options.realtime:
                realtime(server.pid, 60)
                realtime(0, 50)
            good = asyncio.run(
                measure(port, server.pid, options.streams, options.seconds, usage=options.usage)
            )
        finally:
            os.killpg(server.pid, signal.SIGKILL)  # its engine too
            server.wait()
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()

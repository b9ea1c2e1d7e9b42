"""Canned runs for the screens: plans, snapshots and events as a host would send them; no process."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.message import Message

from sparktui.bootlog.lines import LineSplitter
from sparktui.compare import report as reporting
from sparktui.rundir import RunDir
from sparktui.schema.codec import SCHEMA_VERSION, to_plain
from sparktui.schema.launch import LaunchSpec, LoadSpec, MeasureSpec, Plan
from sparktui.schema.live import (
    BootPhase,
    Driver,
    Event,
    Expectation,
    ExperimentView,
    Figures,
    Finding,
    GpuView,
    GraphSteps,
    LoadView,
    ServerView,
    Silence,
    Snapshot,
)
from sparktui.schema.records import ArmReport, Batch, Cell, Report
from sparktui.ui.backend import CannotDo, Card, SheetFacts
from sparktui.ui.follower import Follower
from tests.ui.logs.looking import w1_findings

LOGS = Path(__file__).parents[1] / "fixtures"
T0 = 1_796_060_000.0
ON_LOG = (LOGS / "vllm-0.24.0-h200-flashinfer/boot_fi_ngram.log").read_bytes()


def spec(variant: str) -> LaunchSpec:
    return LaunchSpec(
        "nemotron", variant, "sim", ("vllm", "serve", "m"), "127.0.0.1", 8000, "m", variant != "off",
        max_num_seqs=32,
    )  # fmt: skip


PLAN = Plan(
    SCHEMA_VERSION, "nemotron", "nemotron.yaml", (spec("off"), spec("on")), LoadSpec(), MeasureSpec(), first=1
)
PHASES = (
    BootPhase("launch", 0.0, 5.1),
    BootPhase("config", 5.1, 0.4),
    BootPhase("engine", 5.5, 12.0),
    BootPhase("weights", 17.5, 41.2),
    BootPhase("compile", 58.7, 9.9),
    BootPhase("capture", 68.6, 3.0),
    BootPhase("ready", 71.6, 0.0),
)
GPU = GpuView(0, "NVIDIA H200", 215.0, 700.0, 61.0, 1890.0, 1980.0, 40960.0, 143770.0, 54.0, 12345.0)
RUNNING = ServerView("ready", "on", True, "http://127.0.0.1:8000", 4127, T0, 71.6, "0.27.1")
LOADED = Figures(
    window_s=5.0, output_tok_s=318.4, client_output_tok_s=317.9, decode_tok_s=41.0, ttft_ms=129.0,
    server_ttft_ms=131.0, step_ms=63.7, tokens_per_step=2.61, acceptance_rate=0.537,
    acceptance_by_position=(0.75, 0.52, 0.341), mean_acceptance_length=2.61, drafted=True, kv_usage=0.121,
    running=8, waiting=0, scrape_age_s=0.4, chunk_gap_ms=63.9, chunk_gap_p99_ms=141.0, server_tpot_ms=24.4,
    others_running=0, others_tok_s=0.0, prefix_hit_rate=0.0, preemptions=0.0,
)  # fmt: skip
LOADED_BY_US = LoadView(8, 8, 120, workload="chat", sampling="temperature 1.0, top_p 0.95 (profile)")
QUIET = Silence(38.0, "kernels are compiled, and nothing is printed until they are", 95.0)
STEPS = GraphSteps(full=40, piecewise=930, none=30, beyond=12)
EXPECTED = (
    Expectation("Using AttentionBackendEnum.FLASHINFER backend", True, 26),
    Expectation("Using 'MARLIN' NvFp4 MoE backend [/x]", False),
)
IDLE = Figures(5.0, 0.0, None, None, kv_usage=0.0, running=0, waiting=0, scrape_age_s=0.4, drafted=False)


def snapshot(seq: int = 1, **changes: Any) -> Snapshot:
    """A loaded server that speculates, with what a test wants otherwise."""
    made = Snapshot(
        SCHEMA_VERSION, seq, T0 + 42 + seq * 0.5, "nemotron-1", RUNNING, LOADED_BY_US, LOADED, PHASES,
        (GPU,), None, None, Driver(1, "pts/0", T0), 100, 4, 10,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def findings() -> tuple[Finding, ...]:
    """What the recorded boot with W1's warning holds, whatever the rules say today."""
    return w1_findings()


def log_lines() -> tuple[str, ...]:
    """The recorded boot's lines, cleaned."""
    return tuple(line.text for line in LineSplitter().feed(ON_LOG))


def events(variant: str = "on") -> tuple[Event, ...]:
    """The start of a boot and its findings."""
    started = Event(1, T0, "server", "info", f"{variant}: started", {"started": variant})
    found = findings() if variant == "on" else ()
    return (started, *(
        Event(i, T0, "finding", "warning", f.text, to_plain(f)) for i, f in enumerate(found, 2)
    ))  # fmt: skip


def cell(
    variant: str, decode: float, output: float, *, step: float, accepted: tuple[float, ...] = ()
) -> Cell:
    batches = tuple(
        Batch(5.0, round(output * 5), round(decode * 5), 5.0 * (1 + (i % 3 - 1) * 0.004)) for i in range(12)
    )
    return Cell(
        0 if variant == "off" else 1, variant, 0 if variant == "off" else 1, 1, 60.0, batches, decode, output,
        {"p50": 76.0 if variant == "off" else 129.0},
        acceptance_rate=0.537 if accepted else None, acceptance_by_position=accepted,
        tokens_per_step=2.61 if accepted else 1.0, step_ms=step, power_w=31.0, requests=20,
    )  # fmt: skip


OFF_CELL = cell("off", 77.5, 71.2, step=12.9)
ON_CELL = cell("on", 41.0, 38.1, step=63.7, accepted=(0.75, 0.52, 0.341))


def report() -> Report:
    """W1's verdict from those two cells."""
    arms = [
        ArmReport("off", False, ("vllm",), "0.27.1", 70.0, (), {"cudagraph_mode": "FULL"}, (OFF_CELL,)),
        ArmReport(
            "on", True, ("vllm",), "0.27.1", 72.0, findings(), {"cudagraph_mode": "PIECEWISE"}, (ON_CELL,)
        ),
    ]
    return reporting.build(
        profile="nemotron", created=T0, run_id="nemotron-1", workload="chat", arms=arms, outcome="done",
        after="Serving: on at http://127.0.0.1:8000.",
    )  # fmt: skip


def experiment(stage: str, arm: str, step: int = 1, remaining: float | None = 17.0) -> ExperimentView:
    return ExperimentView(stage, arm, 1 if stage != "boot" else None, remaining, "precision", step, 2)


class FakeFollower(Follower):
    """Connects to nothing; keeps the intents."""

    def __init__(self, run: RunDir, post: Callable[[Message], object]) -> None:
        super().__init__(run, post)
        self.sent: list[Any] = []
        self.took_over = 0

    @property
    def number(self) -> int | None:
        return 1

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def send(self, intent: Any) -> None:
        self.sent.append(intent)

    async def take_over(self) -> None:
        self.took_over += 1


CARDS = (
    Card("run", "nemotron-1", "nemotron-1130-2033-ab12", "running :8000", "run of nemotron"),
    Card("server", "http://127.0.0.1:9000", "[/x] someone's model", ":9000 pid 99", "user [red]root"),
    Card("profile", "p/nemotron.yaml", "nemotron", "local", "Nemotron [EngineCore] 30B", ("off", "on", "k2"),
         "vllm serve m", "Turn speculation OFF: 1.89x faster without [1.81, 1.97]", "on 72 s"),
    Card("profile", "p/demo.yaml", "demo", "sim", "Stand-in", ("off", "on")),
    Card("broken", "p/bad.yaml", "bad", "broken", "p/bad.yaml:3: unknown key 'prot'; did you mean 'port'?"),
)  # fmt: skip


class FakeBackend:
    """Canned cards; keeps what was asked."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self.opened: list[tuple[str, str | None]] = []
        self.relaunched = 0

    def cards(self) -> tuple[Card, ...]:
        return CARDS

    def open(self, card: Card, variant: str | None) -> RunDir:
        self.opened.append((card.key, variant))
        if card.kind == "broken":
            raise CannotDo("[/x] broken")
        return self._run

    def relaunch(self, run: RunDir) -> RunDir:
        self.relaunched += 1
        return self._run

    def past(self, run: RunDir) -> str:
        return "Last verdict [/x]"

    def boot_phases(self, run: RunDir) -> dict[str, dict[str, float]]:
        seconds = {
            "launch": 5.0,
            "config": 1.0,
            "engine": 11.0,
            "weights": 55.0,
            "compile": 18.2,
            "capture": 3.0,
        }
        return {"on": seconds}

    def sheet(self, run: RunDir, arms: tuple[int, int], loads: tuple[int, ...]) -> SheetFacts:
        return SheetFacts(6.2)

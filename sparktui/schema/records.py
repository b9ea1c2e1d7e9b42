"""What lands on disk: run.json, request rows, measured cells, verdicts, the A/B report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sparktui.schema.live import BootPhase, Finding

RunState = Literal["starting", "running", "done", "failed", "cancelled", "stopped"]
Call = Literal["faster", "slower", "no difference", "not settled", "could not measure"]
Metric = Literal["decode_tok_s", "output_tok_s"]


@dataclass(frozen=True, slots=True)
class ProcessRef:
    """A process by pid *and* start time (seconds since the epoch): a reused pid is another process."""

    pid: int
    start_time: float


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """The server a run owns. ``tree`` holds every descendant seen alive, for stopping and adopting."""

    process: ProcessRef
    arm: int  # index into Plan.arms
    host: str
    port: int
    started: float  # unix seconds
    log_offset: int = 0  # where this boot begins in server.log
    log_line: int = 0  # lines of server.log before it
    tree: tuple[ProcessRef, ...] = ()
    exit_code: int | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """``run.json``."""

    schema: int
    id: str
    kind: Literal["run", "ab"]
    profile: str
    created: float
    state: RunState = "starting"
    host: ProcessRef | None = None
    server: ServerRecord | None = None
    reason: str = ""
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One finished request. Times in ms from the instant before it was handed to the HTTP client."""

    index: int  # prompt number
    start: float  # CLOCK_MONOTONIC seconds
    ok: bool
    ttft_ms: float | None = None
    ttfc_ms: float | None = None  # first content, where reasoning came before it
    total_ms: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    decode_tokens: int | None = None  # completion_tokens less those of the first token chunk
    decode_s: float | None = None
    chunks: int = 0
    cached_tokens: int | None = None
    finish_reason: str | None = None
    cancelled: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Differences over one wall-clock batch, across all streams."""

    seconds: float
    output_tokens: int
    decode_tokens: int
    stream_seconds: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One measured window: an arm at one load in one server start. None: not known."""

    arm: int
    variant: str
    start: int  # which boot of the experiment, from 0
    concurrency: int
    seconds: float
    batches: tuple[Batch, ...]
    decode_tok_s: float | None
    output_tok_s: float | None
    ttft_ms: dict[str, float] = field(default_factory=dict)  # p50, p95 (p95 from 100 requests on)
    acceptance_rate: float | None = None
    acceptance_by_position: tuple[float, ...] = ()
    mean_acceptance_length: float | None = None
    tokens_per_step: float | None = None
    step_ms: float | None = None
    kv_usage_max: float | None = None
    power_w: float | None = None
    joules_per_token: float | None = None
    server_output_tok_s: float | None = None
    requests: int = 0
    errors: int = 0
    excluded: int = 0  # under 32 decode tokens
    prefix_hit_rate: float | None = None
    flags: tuple[str, ...] = ()  # not steady, client-limited, foreign traffic, prefix hits, …


@dataclass(frozen=True, slots=True)
class ArmReport:
    name: str
    speculating: bool
    argv: tuple[str, ...]
    vllm_version: str | None
    boot_s: float | None
    findings: tuple[Finding, ...]
    facts: dict[str, Any]
    cells: tuple[Cell, ...]
    phases: tuple[BootPhase, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """B over A for one metric at one load. ``ci95`` is the 95 % interval of ``ratio``."""

    load: int
    metric: Metric
    headline: bool
    ratio: float | None
    ci95: tuple[float, ...]  # (low, high), empty when it could not be measured
    call: Call
    starts: tuple[int, ...]  # server starts behind each arm
    provisional: bool
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """What ``sparktui ab --json`` writes."""

    schema: int
    profile: str
    created: float
    run_id: str
    arms: tuple[ArmReport, ...]
    verdicts: tuple[Verdict, ...]
    why: tuple[str, ...]
    outcome: str  # done, cancelled, or what went wrong
    after: str = ""  # what serves now

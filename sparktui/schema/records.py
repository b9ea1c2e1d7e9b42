"""What lands on disk: run.json, request rows, measured cells, verdicts, the A/B report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sparktui.schema.live import BootPhase, Finding

RunState = Literal["starting", "running", "done", "failed", "cancelled", "stopped"]
Call = Literal["faster", "slower", "no difference", "not settled", "could not measure"]
Metric = Literal["decode_tok_s", "output_tok_s"]
Usage = Literal["", "continuous", "final", "none"]
"""Where an answer's token counts come from: a count in every chunk, one at the end, nowhere."""


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
class ServerTimes:
    """What vLLM itself says of a request in its last chunk (``metrics``: --enable-per-request-metrics and
    --per-request-spec-decode-metrics). None: this version or these flags don't say."""

    ttft_ms: float | None = None
    queue_ms: float | None = None
    generation_ms: float | None = None
    mean_itl_ms: float | None = None
    tok_s: float | None = None
    mean_acceptance_length: float | None = None
    acceptance_rate: float | None = None


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
    status: int | None = None  # of a refusal: 429, 503, …
    usage: Usage = ""
    gap_max_ms: float | None = None  # the longest time between two chunks
    server: ServerTimes | None = None


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
    chunk_gap_ms: dict[str, float] = field(default_factory=dict)  # p50, p95, p99
    read_gb_s: float | None = None  # achieved, from --enable-mfu-metrics
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


@dataclass(frozen=True, slots=True)
class ClientHealth:
    """Of the load process: p99 of its loop lag, its share of a core, and whether it was the limit."""

    lag_ms_p99: float
    cpu: float
    limited: bool


@dataclass(frozen=True, slots=True)
class ServerWindow:
    """The server's own counters over a window. None: not known."""

    output_tok_s: float | None = None
    ttft_ms: float | None = None
    step_ms: float | None = None
    tokens_per_step: float | None = None
    acceptance_rate: float | None = None
    acceptance_by_position: tuple[float, ...] = ()
    mean_acceptance_length: float | None = None
    prefix_hit_rate: float | None = None
    kv_usage_max: float | None = None
    preemptions: float | None = None
    read_gb_s: float | None = None
    others_tokens: float | None = None  # generated and not ours


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What ``sparktui load --json`` writes. Percentiles are p50, p95, p99; empty or None: not known."""

    schema: int
    url: str
    model: str
    workload: str
    input_tokens: int
    output_tokens: int  # asked for
    concurrency: int
    started: float  # unix seconds
    seconds: float  # of load
    window_s: float  # of that, at full concurrency and after the first answers: the figures' window
    requests: int  # finished in the window
    errors: int
    cancelled: int
    excluded: int  # under 32 decode tokens: not in decode_tok_s
    ttft_ms: dict[str, float]
    chunk_gap_ms: dict[str, float]
    decode_tok_s: dict[str, float]  # per request; plus ``pooled``: Σ decode tokens / Σ stream-seconds
    output_tok_s: float | None
    chunks_s: float | None  # where the server sends no usage
    client: ClientHealth
    server: ServerWindow | None = None
    ttfc_ms: dict[str, float] = field(default_factory=dict)  # first content, where reasoning came before it
    server_ttft_ms: dict[str, float] = field(default_factory=dict)  # from the answers' own metrics
    error_kinds: dict[str, int] = field(default_factory=dict)
    sampling: dict[str, Any] = field(default_factory=dict)  # sent; what is absent is the server's default
    power_w: float | None = None
    joules_per_token: float | None = None
    flags: tuple[str, ...] = ()  # not steady, foreign traffic, client-limited, …
    complete: bool = True  # False: ended before its time


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """One request of a prefix-cache probe. ``hits``, ``queries``: tokens by the server's counters."""

    ttft_ms: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    hits: float | None
    queries: float | None


@dataclass(frozen=True, slots=True)
class PrefixProbe:
    """The same request three times, with what follows from it in words."""

    call: Literal["works", "useless", "off", "not known"]
    text: str
    answers: tuple[ProbeAnswer, ...]

"""What a screen needs: the snapshot (state now) and the events (what happened), both from the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["boot fails", "wrong results possible", "costs speed", "costs memory", "note", "harmless"]
ServerPhase = Literal["idle", "booting", "ready", "stopping", "stopped", "failed", "lost"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A log line that matters, explained. ``line`` counts from 1 in server.log; 0: no single line says it."""

    id: str
    severity: Severity
    line: int
    text: str
    meaning: str
    cost: str = ""
    remedy: str = ""
    flag: str = ""
    source: str = ""  # where the cost was measured, and whether one report or several say so
    cause: str = ""  # id of the finding that this one follows from
    lines: int = 1  # of the whole record, from ``line`` on
    count: int = 1  # how often it was said, with other names or numbers


@dataclass(frozen=True, slots=True)
class BootPhase:
    """One boot phase: seconds since the server's start, and how long it took (None while it lasts)."""

    name: str
    start_s: float
    seconds: float | None = None
    progress: float | None = None  # 0..1, from the phase's own progress bar
    quiet_s: float = 0.0  # its longest silence


@dataclass(frozen=True, slots=True)
class Expectation:
    """A text that the profile expects in the boot log. ``met``: None until the boot is over, either way."""

    text: str
    met: bool | None = None
    line: int = 0  # where it stands, from 1 in server.log


@dataclass(frozen=True, slots=True)
class GraphSteps:
    """Engine steps by the CUDA graph mode they ran in, from a ``--cudagraph-metrics`` table.

    ``beyond``: steps larger than the largest captured size, prefill mostly: no graph could hold them.
    """

    full: int = 0
    piecewise: int = 0
    none: int = 0
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class Silence:
    """A booting server that prints nothing: for how long, why that may be, and how long it took before."""

    seconds: float
    reason: str
    before_s: float | None = None  # the longest silence of this phase in earlier boots


@dataclass(frozen=True, slots=True)
class ServerView:
    state: ServerPhase = "idle"
    variant: str = ""
    speculating: bool = False
    url: str = ""
    pid: int | None = None
    since: float = 0.0  # unix seconds of the last state change
    boot_s: float | None = None
    version: str | None = None
    exit_code: int | None = None
    reason: str = ""
    stalled_s: float | None = None  # requests run and no counter has moved for so long; None: it lives


@dataclass(frozen=True, slots=True)
class LoadView:
    asked: int = 0
    in_flight: int = 0
    done: int = 0
    errors: int = 0
    last_error: str = ""
    client_limited: bool = False
    waiting: int = 0  # in flight, without a first text yet
    longest_wait_s: float = 0.0  # of those
    workload: str = ""
    sampling: str = ""  # what the server will use, and whose choice that is
    no_usage: bool = False  # the server counts no tokens for us: chunks only
    failed_lately: int = 0  # of the last seconds


@dataclass(frozen=True, slots=True)
class Figures:
    """Differences over one window. None means not known (yet): never shown as 0. ms, tok/s, 0..1."""

    window_s: float
    output_tok_s: float | None = None  # server: Δgeneration_tokens / Δt
    client_output_tok_s: float | None = None
    decode_tok_s: float | None = None  # per stream
    decode_source: Literal["client", "server"] = "client"
    ttft_ms: float | None = None  # client, median of the window
    server_ttft_ms: float | None = None
    step_ms: float | None = None
    tokens_per_step: float | None = None
    acceptance_rate: float | None = None
    acceptance_by_position: tuple[float, ...] = ()
    mean_acceptance_length: float | None = None
    drafted: bool | None = None  # None: speculation off; False: on, and nothing was drafted
    kv_usage: float | None = None
    running: int | None = None
    waiting: int | None = None
    scrape_age_s: float | None = None
    client_chunks_s: float | None = None  # where the server sends no usage: chunks, not tokens
    chunk_gap_ms: float | None = None  # client, median
    chunk_gap_p99_ms: float | None = None
    server_ttft_bound: bool = False  # one bucket moved: server_ttft_ms is an upper bound
    server_tpot_ms: float | None = None  # request_time_per_output_token, median
    server_tpot_bound: bool = False
    kv_usage_each: tuple[float, ...] = ()  # by engine, where there are several
    others_running: int | None = None  # requests on the server that are not ours
    others_tok_s: float | None = None
    prefix_hit_rate: float | None = None
    preemptions: float | None = None
    read_gb_s: float | None = None  # memory reads a second and GPU (--enable-mfu-metrics)
    roof_share: float | None = None  # c=1: of what memory bandwidth allows, an estimate; 0..1
    server_source: Literal["metrics", "log"] = (
        "metrics"  # the log's own figures where /metrics is out of reach
    )


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process with memory on a GPU."""

    pid: int
    used_mib: float


@dataclass(frozen=True, slots=True)
class GpuView:
    """One GPU; any field may be missing by itself. W, %, MHz, MiB, °C, J."""

    index: int
    name: str | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    utilization_pct: float | None = None
    sm_mhz: float | None = None
    sm_max_mhz: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    temperature_c: float | None = None
    energy_j: float | None = None  # counter, joules since the driver loaded
    unified: bool = False  # its memory is the host's: GB10, Thor
    processes: tuple[GpuProcess, ...] = ()
    throttle: tuple[str, ...] = ()  # clocks event reasons that lower the clocks now
    throttled_ms: dict[str, float] = field(default_factory=dict)  # by reason, since the reading before


@dataclass(frozen=True, slots=True)
class HostMemory:
    """MiB; ``pressure``: PSI, share of the last 10 s in which some task waited for memory, in %."""

    total_mib: float
    available_mib: float
    swap_used_mib: float = 0.0
    free_mib: float | None = None
    page_cache_mib: float | None = None
    swap_total_mib: float | None = None
    pressure: float | None = None


@dataclass(frozen=True, slots=True)
class ExperimentView:
    """Where an A/B stands. ``remaining_s`` counts to the end of this stage, where that is known."""

    stage: str
    arm: str
    concurrency: int | None
    remaining_s: float | None
    ends_by: Literal["time", "precision", "event"]
    step: int
    steps: int


@dataclass(frozen=True, slots=True)
class Driver:
    """The client whose load and server keys count; the others look on."""

    client: int
    label: str  # pts/3
    since: float  # unix seconds


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of a run at one instant, twice a second. Scalars and cursors; logs and rows travel apart."""

    schema: int
    seq: int
    t: float  # unix seconds
    run_id: str
    server: ServerView
    load: LoadView
    figures: Figures
    phases: tuple[BootPhase, ...] = ()
    gpus: tuple[GpuView, ...] = ()
    memory: HostMemory | None = None
    experiment: ExperimentView | None = None
    driver: Driver | None = None
    log_lines: int = 0
    findings: int = 0
    events: int = 0
    expected: tuple[Expectation, ...] = ()
    graph_steps: GraphSteps | None = None  # of the newest table in the log
    silence: Silence | None = None
    log_partial: str = ""  # the progress bar that is being rewritten now
    repeats: dict[str, int] = field(default_factory=dict)  # findings said more than once, by id
    gpu_age_s: float | None = None  # of the last reading; None: never read
    gpu_problem: str = ""  # why the GPUs can't be read
    server_gpu_mib: float | None = None  # GPU memory of the server's own processes


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, append-only, numbered from 1; ``events.jsonl`` and the socket carry it."""

    seq: int
    t: float  # unix seconds
    kind: Literal["server", "phase", "finding", "load", "experiment", "verdict", "note", "host"]
    level: Literal["info", "warning", "error"]
    text: str
    data: dict[str, Any] = field(default_factory=dict)

"""Lines on the host's socket and on the load process's pipes: one JSON object a line, tagged by ``type``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from sparktui.schema.codec import SCHEMA_VERSION, SchemaError, dumps, from_plain
from sparktui.schema.launch import After, LoadSpec
from sparktui.schema.live import Event, Snapshot
from sparktui.schema.records import Report, RequestRow, Usage

TOKENIZE_KEY = "SPARKTUI_TOKENIZE_KEY"


@dataclass(frozen=True, slots=True)
class Hello:
    """First line from the host."""

    run_id: str
    pid: int
    client: int  # number of this connection
    schema: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Subscribe:
    """First line from a client: what it has already. Cursors count events and log lines seen."""

    events_from: int = 0
    log_from: int | None = None  # None: no log lines
    snapshots: bool = True


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines of server.log, cleaned for a terminal; ``first`` is the number of the first, from 1."""

    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The run has ended; the last line of the host."""

    state: str
    reason: str
    report: Report | None = None


@dataclass(frozen=True, slots=True)
class SetLoad:
    """Intent: this many streams in a closed loop; 0 drains to idle."""

    concurrency: int
    cut: bool = False  # close the streams above it instead of draining them


@dataclass(frozen=True, slots=True)
class SetWindow:
    """Intent: live figures over this many seconds."""

    seconds: int


@dataclass(frozen=True, slots=True)
class StopRun:
    """Intent: stop load and server, verify, end the run."""

    reason: str = "stopped by the user"


@dataclass(frozen=True, slots=True)
class Drive:
    """Intent: from now on this client's keys count. ``label`` is what the others are told."""

    label: str


@dataclass(frozen=True, slots=True)
class SwitchArm:
    """Intent: stop the server, boot another arm of the plan."""

    arm: int


@dataclass(frozen=True, slots=True)
class StartExperiment:
    """Intent: an A/B between two arms of the plan, A first; ``after`` says what serves at the end."""

    arms: tuple[int, ...]
    loads: tuple[int, ...]
    rounds: int = 1
    after: After = "original"


@dataclass(frozen=True, slots=True)
class SetWorkload:
    """Intent: other requests from now on; a name of WORKLOADS."""

    workload: str


@dataclass(frozen=True, slots=True)
class ProbePrefixCache:
    """Intent: the same request three times; an event with a PrefixProbe says whether the cache serves."""


@dataclass(frozen=True, slots=True)
class CancelExperiment:
    """Intent: end the A/B with what it has."""


@dataclass(frozen=True, slots=True)
class LoadConfig:
    """First line to the load process. Its environment has the API keys: VLLM_API_KEY for ``url``, and
    TOKENIZE_KEY for ``tokenize_url`` where that is another server."""

    url: str
    model: str
    spec: LoadSpec
    nonce: str
    interval_s: float = 0.2
    stall_s: float = 120.0  # a stream silent for so long has failed
    tokenize_url: str | None = None  # base URL of the vLLM whose /tokenize counts prompts; None: ``url``


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """To the load process. ``next_prompt``: the number of the prompt that the next request takes."""

    concurrency: int
    cut: bool = False  # close the streams above the target instead of draining them
    next_prompt: int | None = None
    ignore_eos: bool | None = None


@dataclass(frozen=True, slots=True)
class LoadTotals:
    """From the load process, at ``interval_s``: cumulative counts since it began."""

    t: float  # CLOCK_MONOTONIC seconds
    asked: int
    in_flight: int
    done: int
    ok: int
    errors: int
    cancelled: int
    output_tokens: int
    decode_tokens: int
    stream_seconds: float
    lag_ms_p99: float
    cpu: float  # share of one core since the last line
    last_error: str = ""
    chunks: int = 0  # chunks with text or tokens
    usage: Usage = ""  # the poorest kind of the last schema.usage.USAGE_S; the last known where none ended
    waiting: int = 0  # in flight, without a first text yet
    longest_wait_s: float = 0.0  # of those
    ttft_ms: tuple[float, ...] = ()  # of the first texts that came since the last line
    gaps: dict[str, int] = field(default_factory=dict)  # chunk gaps since the last line: schema.gaps
    note: str = ""  # what to know of the prompts' lengths; they are made before the first request


@dataclass(frozen=True, slots=True)
class LoadRow:
    """From the load process: a finished request."""

    row: RequestRow


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """From the load process: it can't work at all (bad config)."""

    error: str


@dataclass(frozen=True, slots=True)
class Problem:
    """From the host: an intent it could not carry out, or a client that speaks another schema."""

    error: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SnapshotMessage:
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class EventMessage:
    event: Event


_TYPES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Hello, Subscribe, LogLines, Finished, SetLoad, StopRun, CancelExperiment, Problem,
        Drive, SwitchArm, StartExperiment, SetWindow, SetWorkload, ProbePrefixCache,
        SnapshotMessage, EventMessage, LoadConfig, LoadTarget, LoadTotals, LoadRow, LoadFailed,
    )
}  # fmt: skip


def to_line(message: Any) -> bytes:
    """One message as a line, newline included."""
    name = type(message).__name__
    if name not in _TYPES:
        raise SchemaError(f"{name} is not a message")
    return b'{"type":"' + name.encode() + b'","body":' + dumps(message) + b"}\n"


def from_line(line: bytes) -> Any:
    """The message of a line. Raises SchemaError on anything else."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise SchemaError(f"not JSON: {exc}") from None
    if not isinstance(value, dict) or value.keys() != {"type", "body"}:
        raise SchemaError("a message is an object of type and body")
    cls = _TYPES.get(value["type"]) if isinstance(value["type"], str) else None
    if cls is None:
        raise SchemaError(f"unknown message type {value['type']!r}")
    return from_plain(cls, value["body"])

"""What to run and how to measure it: the resolved form of a profile and one of its variants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

After = Literal["original", "winner", "last", "stop"]
Runner = Literal["local", "docker", "command", "attach", "sim"]


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One server to start. ``argv`` is complete and goes to the kernel as it is, never to a shell."""

    profile: str
    variant: str  # label of the arm: off, on, k2, …
    runner: Runner
    argv: tuple[str, ...]
    host: str
    port: int
    model: str  # what requests name: the first --served-model-name, else the model
    speculating: bool
    env: dict[str, str] = field(default_factory=dict)  # secrets excluded: see env_file
    env_file: str | None = None  # absolute path; read when the server starts, never stored
    added: tuple[int, ...] = ()  # indexes into argv of the tokens that sparktui added (observe:)
    expected_version: str | None = None
    max_num_seqs: int | None = None
    ready_timeout_s: float = 1800.0
    expect: tuple[str, ...] = ()  # texts that its boot log should hold
    quiet_s: dict[str, float] = field(default_factory=dict)  # longest silence of earlier boots, by phase

    @property
    def url(self) -> str:
        """Base URL for clients on this machine, without a trailing slash."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """The requests that measure a server. Sampling parameters are sent only when set."""

    workload: str = "chat"  # a name of schema.workloads.WORKLOADS, or file:PATH (absolute in a plan)
    input_tokens: int | None = None  # None: the workload's own
    output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)
    ignore_eos: bool = True
    seed: int = 1  # picks the prompts; not sent to the server
    url: str | None = None  # a proxy in front of the server; metrics still come from the server
    model: str | None = None  # the name that the proxy knows the model by, where it is another


@dataclass(frozen=True, slots=True)
class MeasureSpec:
    """Timing of one measurement. Seconds, except ``precision`` (half-width of the run, relative)."""

    settle_s: float = 30.0  # six batches whose slope decides; measured anyway after twice this
    batch_s: float = 5.0
    min_window_s: float = 60.0
    max_window_s: float = 240.0
    precision: float = 0.015
    stall_s: float = 120.0  # a stream silent for so long has failed


@dataclass(frozen=True, slots=True)
class Roof:
    """What memory bandwidth allows at one stream: GB/s of the machine, GB read for one decode step."""

    bandwidth_gb_s: float
    gb_per_step: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a host needs to do its work, resolved; ``plan.json`` in the run folder."""

    schema: int
    profile: str
    profile_path: str
    arms: tuple[LaunchSpec, ...]
    load: LoadSpec
    measure: MeasureSpec
    loads: tuple[int, ...] = ()  # concurrencies to measure in each boot; empty: watch only
    rounds: int = 1
    after: After = "original"
    first: int = 0  # the arm that a watched run boots
    roof: Roof | None = None

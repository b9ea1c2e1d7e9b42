"""A profile, decoded and checked: what its file says, with defaults filled in and nothing resolved yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from sparktui.schema.launch import LoadSpec, MeasureSpec, Roof, Runner

JsonObject: TypeAlias = dict[str, Any]
# A flag's value: source text, a switch, several tokens, an object for JSON; None leaves the flag out.
ArgValue: TypeAlias = str | bool | tuple[str, ...] | JsonObject | None
Args: TypeAlias = dict[str, ArgValue]  # by flag name: dashes, without the leading ones


@dataclass(frozen=True, slots=True)
class Docker:
    """How a container runs the server: words of ``docker run``."""

    image: str
    ipc: str | None = None
    gpus: str | None = None
    volumes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Expectation:
    """A piece of a line that the boot log should have; ``when`` says in which arms."""

    line: str
    when: Literal["always", "spec", "off"] = "always"


@dataclass(frozen=True, slots=True)
class Slo:
    """Limits that a measurement is held to. Seconds."""

    ttft_s: float | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """What one variant changes; None (or empty) leaves the profile's own."""

    name: str
    speculative: JsonObject | Literal[False] | None = None  # False: leave speculation out
    args: Args = field(default_factory=dict)
    env: dict[str, str | None] = field(default_factory=dict)  # None removes
    model: str | None = None
    vllm_bin: str | None = None
    vllm: str | None = None
    docker: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile file. Paths are as written; GiB and seconds where the name says so."""

    name: str
    path: str  # of the file, absolute
    model: str  # empty only for runner attach
    about: str = ""
    runner: Runner = "local"
    vllm_bin: str | None = None
    vllm: str | None = None
    port: int = 8000
    host: str = "127.0.0.1"
    env: dict[str, str] = field(default_factory=dict)
    env_file: str | None = None
    args: Args = field(default_factory=dict)
    speculative: JsonObject | None = None
    variants: dict[str, Variant] = field(default_factory=dict)
    docker: JsonObject = field(default_factory=dict)
    start: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    url: str | None = None
    expect: tuple[Expectation, ...] = ()
    observe: Args = field(default_factory=dict)
    roof: Roof | None = None
    load: LoadSpec = field(default_factory=LoadSpec)
    measure: MeasureSpec = field(default_factory=MeasureSpec)
    slo: Slo = field(default_factory=Slo)
    memory_floor_gib: float | None = None
    ready_timeout_s: float = 1800.0
    lines: dict[str, int] = field(default_factory=dict)  # line of each top-level key in the file

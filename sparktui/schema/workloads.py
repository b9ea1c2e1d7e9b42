"""The workloads: what kind of requests a load sends. Their texts are the load process's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparktui.schema.launch import LoadSpec

FILE = "file:"


@dataclass(frozen=True, slots=True)
class Workload:
    """Lengths in tokens; the input is the whole prompt, chat template and all.

    ``nonce``: no prefix repeats, since each prompt begins with a number of its own.
    """

    name: str
    about: str
    input_tokens: int
    output_tokens: int
    text: Literal["prose", "code"] = "prose"
    nonce: bool = True
    prefix_tokens: int = 0  # of a system prompt that every request shares, within input_tokens
    identical: bool = False  # every request is the same, byte for byte


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("chat", "a page of prose to continue", 512, 256),
        Workload("code", "a short request for code", 160, 250, "code"),
        Workload("long", "a short request for a long text", 160, 300),
        Workload("coder", "a large source file to go on with, as coding agents send", 4096, 512, "code"),
        Workload("shared-prefix", "one system prompt of 900 tokens, many users", 1024, 256, nonce=False,
                 prefix_tokens=900),
        Workload("repeat", "the same request again and again, byte for byte", 512, 256, nonce=False,
                 identical=True),
    )
}  # fmt: skip


def known(name: str) -> bool:
    """Whether a load can send it; whether a file is there and is right, schema.promptfile tells."""
    return name in WORKLOADS or file_of(name) is not None


def file_of(name: str) -> Path | None:
    """The path in ``file:PATH`` as it is written, or None for any other name."""
    path = name.removeprefix(FILE)
    return Path(path) if path and path != name else None


def lengths(spec: LoadSpec) -> tuple[int, int]:
    """Input and output tokens of a request; of a file's prompts the input is what it is (0)."""
    workload = WORKLOADS.get(spec.workload)
    own = (workload.input_tokens, workload.output_tokens) if workload else (0, 256)
    return (
        own[0] if spec.input_tokens is None else spec.input_tokens,
        own[1] if spec.output_tokens is None else spec.output_tokens,
    )


SAMPLING = (
    "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty",
)  # fmt: skip


def sampling(spec: LoadSpec) -> dict[str, float]:
    """The sampling parameters that are sent: those that are set."""
    return {name: value for name in SAMPLING if (value := getattr(spec, name)) is not None}

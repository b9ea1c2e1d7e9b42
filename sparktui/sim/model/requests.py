"""What goes into the engine and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from sparktui.sim.model.capture import RunMode
from sparktui.sim.model.truth import Chain, GraphMode, Truth

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """``k``: num_speculative_tokens, 0 = off. Noise: relative standard deviations."""

    k: int = 0
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    graphs: GraphMode | None = None  # how decode steps run; None: as the model's figures were measured
    prefix_caching: bool = True
    noise: float = 0.01  # from step to step
    restart_noise: float = 0.005  # drawn once a process
    truth: Truth = field(default_factory=Truth)


@dataclass(slots=True, eq=False)
class Request:
    """One request. ``stop_after``: natural length in tokens, None with ignore_eos. Engine's seconds.

    ``blocks``: prefix.block_keys of the prompt; with them the engine sets ``cached_tokens`` at admission.
    """

    id: str
    prompt_tokens: int
    max_tokens: int
    stop_after: int | None = None
    cached_tokens: int = 0
    arrived: float = 0.0
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    generated: int = 0
    preemptions: int = 0
    temperature: float | None = None
    blocks: tuple[int, ...] = ()
    gains: list[int] | None = None  # accepted drafts of each step, where somebody wants to know
    seat: Seat | None = field(default=None, repr=False)  # the engine's own notes, while it runs

    @property
    def context(self) -> int:
        """Tokens in the KV cache while it decodes."""
        return self.prompt_tokens + self.generated


@dataclass(slots=True, eq=False)
class Seat:
    """What the engine keeps of a running request."""

    chain: Chain
    pending: int  # tokens of its context still to be computed
    room: int  # tokens that its blocks hold
    private: int = 0  # blocks of its own, recurrent states among them
    shared: list[int] = field(default_factory=list)  # keys of cached blocks that it holds


class Output(NamedTuple):  # made for every request in every step: half the cost of a frozen dataclass
    """What one step gave one request. ``gap``: seconds since its previous output, None for the first."""

    request: Request
    tokens: int
    gap: float | None
    finish_reason: FinishReason | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One completed step. ``accepted``: drafts whose position i was accepted, by i.

    ``prefilled``: requests whose prompt is complete with this step; ``admitted``: those looked up in the
    prefix cache for it; ``prompt_tokens``: computed in it, chunks of longer prompts among them. Scheduled and
    padded tokens and ``mode`` are what the CUDA graph table counts. ``context``: tokens that the decoding
    requests had in the KV cache, summed.
    """

    at: float
    duration: float
    outputs: tuple[Output, ...]
    prefilled: tuple[Request, ...]
    preempted: int
    drafts: int
    draft_tokens: int
    accepted: tuple[int, ...]
    admitted: tuple[Request, ...] = ()
    prompt_tokens: int = 0
    scheduled_tokens: int = 0
    padded_tokens: int = 0
    mode: RunMode = "NONE"
    context: int = 0

    @property
    def generated(self) -> int:
        """Tokens that all requests got."""
        return sum(output.tokens for output in self.outputs)

    @property
    def first(self) -> list[Request]:
        """Requests whose first token this is: one that was preempted has had its own."""
        return [output.request for output in self.outputs if output.gap is None]

    @property
    def cache_queries(self) -> int:
        """Prompt tokens looked up in the prefix cache."""
        return sum(request.prompt_tokens for request in self.admitted)

    @property
    def cache_hits(self) -> int:
        """Prompt tokens found there."""
        return sum(request.cached_tokens for request in self.admitted)


def deliver(request: Request, tokens: int, at: float) -> Output:
    """Give ``tokens`` to the request, cut at its end."""
    limit, stop = request.max_tokens, request.stop_after
    natural = stop is not None and stop <= limit
    if stop is not None and natural:
        limit = stop
    left = limit - request.generated
    finish: FinishReason | None = None
    if tokens >= left:
        tokens = left
        finish = "stop" if natural else "length"
    request.generated += tokens
    before, request.last_token = request.last_token, at
    if before is None:
        request.first_token = at
        return Output(request, tokens, None, finish)
    return Output(request, tokens, at - before, finish)

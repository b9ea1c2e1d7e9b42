"""What an answer tells of itself: ``metrics`` of its last chunk, or of its body.

Fields and arithmetic as build_per_request_timing_metrics and RequestSpecDecodeMetrics in vLLM 0.32.0 have
them; 0.27.1 has the times alone. Their time to first token begins when the request is scheduled, not when it
comes. Only where one answer was asked for: several prompts or choices have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sparktui.sim.model.requests import Request

Level = Literal["none", "summary", "detailed"]


@dataclass(frozen=True, slots=True)
class Told:
    """``times``: --enable-per-request-metrics; ``drafts``: --per-request-spec-decode-metrics."""

    times: bool = False
    drafts: Level = "none"
    k: int = 0

    def of(self, request: Request) -> dict[str, Any] | None:
        """The metrics of a finished request; None when the flags ask for none."""
        if not self.times and request.gains is None:
            return None
        told = _times(request) if self.times else {}
        if request.gains is not None:
            told["speculative_decoding"] = _drafts(request.gains, self.k, self.drafts == "detailed")
        return told

    def gains(self) -> list[int] | None:
        """Where a new request notes its accepted drafts, step by step."""
        return [] if self.drafts != "none" else None


def _times(request: Request) -> dict[str, Any]:
    scheduled, first, last = request.scheduled, request.first_token, request.last_token
    if scheduled is None or first is None or last is None:
        return {}
    told = {
        "time_to_first_token_ms": (first - scheduled) * 1000,
        "generation_time_ms": (last - first) * 1000,
        "queue_time_ms": (scheduled - request.arrived) * 1000,
    }
    if request.generated > 1:
        told["mean_itl_ms"] = (last - first) / (request.generated - 1) * 1000
    if last > scheduled:
        told["tokens_per_second"] = request.generated / (last - scheduled)
    return told


def _drafts(gains: list[int], k: int, detailed: bool) -> dict[str, Any]:
    steps, accepted = len(gains), sum(gains)
    told: dict[str, Any] = {
        "mean_acceptance_length": 1.0 + accepted / steps if steps else 1.0,
        "draft_acceptance_rate": accepted / (steps * k) if steps else 0.0,
        "acceptance_histogram": [gains.count(count) for count in range(k + 1)],
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": steps * k,
        "num_spec_tokens": k,
    }
    if detailed and gains:
        told |= {"per_step_accepted": gains, "per_step_drafted": [k] * steps}
    return told

"""vLLM's own figures of one request, from the ``metrics`` of its last chunk.

Format: ``PerRequestMetrics`` and ``SpeculativeDecodingMetrics`` of vLLM 0.32
(vllm/entrypoints/generate/base/protocol.py); marked experimental there, so nothing of it is relied on.
"""

from __future__ import annotations

import math
from typing import Any

from sparktui.schema.records import ServerTimes


def server_times(metrics: Any) -> ServerTimes | None:
    """None when it holds nothing that we know; a field that is missing or nonsense is None by itself.

    Its TTFT begins when the request is scheduled: the time in vLLM's queue is not in it but in ``queue_ms``.
    """
    if not isinstance(metrics, dict):
        return None
    speculation = metrics.get("speculative_decoding")
    speculation = speculation if isinstance(speculation, dict) else {}
    times = ServerTimes(
        ttft_ms=_number(metrics.get("time_to_first_token_ms")),
        queue_ms=_number(metrics.get("queue_time_ms")),
        generation_ms=_number(metrics.get("generation_time_ms")),
        mean_itl_ms=_number(metrics.get("mean_itl_ms")),
        tok_s=_number(metrics.get("tokens_per_second")),
        mean_acceptance_length=_number(speculation.get("mean_acceptance_length")),
        acceptance_rate=_share(speculation.get("draft_acceptance_rate")),
    )
    return None if times == ServerTimes() else times


def _number(value: object) -> float | None:
    """A finite number from 0 on: a clock that ran backwards is no figure."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < math.inf else None


def _share(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and number <= 1 else None

"""vLLM's own figures of a request, in the last chunk."""

from __future__ import annotations

import pytest

from sparktui.load.servertimes import server_times
from sparktui.schema.records import ServerTimes
from tests.load.timeline import chunk, play, usage_only

# The fields of PerRequestMetrics and SpeculativeDecodingMetrics of vLLM 0.32.
METRICS = {
    "time_to_first_token_ms": 41.5,
    "generation_time_ms": 1260.0,
    "queue_time_ms": 3,
    "mean_itl_ms": 20.0,
    "tokens_per_second": 49.25,
    "speculative_decoding": {
        "mean_acceptance_length": 2.5,
        "draft_acceptance_rate": 0.5,
        "acceptance_histogram": [5, 5, 10, 5],
        "num_spec_steps": 25,
        "num_accepted_draft_tokens": 40,
        "num_draft_tokens": 75,
        "num_spec_tokens": 3,
    },
}


def test_they_come_with_the_last_chunk() -> None:
    row = play(chunk(1.0, "a", 1), chunk(2.0, "b", 2, "stop"), usage_only(2.0, 2, metrics=METRICS)).row(3.0)
    assert row.server == ServerTimes(
        ttft_ms=41.5, queue_ms=3.0, generation_ms=1260.0, mean_itl_ms=20.0, tok_s=49.25,
        mean_acceptance_length=2.5, acceptance_rate=0.5,
    )  # fmt: skip


def test_most_servers_say_nothing() -> None:
    assert play(chunk(1.0, "a", 1), usage_only(2.0, 1)).row(3.0).server is None


@pytest.mark.parametrize("level", ["timing", "speculation"])
def test_each_flag_gives_its_own_half(level: str) -> None:
    """--enable-per-request-metrics, --per-request-spec-decode-metrics: either may be off."""
    spec = {"speculative_decoding": METRICS["speculative_decoding"]}
    found = server_times(spec if level == "speculation" else {**METRICS, "speculative_decoding": None})
    assert found is not None
    assert (found.ttft_ms is None, found.acceptance_rate is None) == (
        level == "speculation",
        level == "timing",
    )


@pytest.mark.parametrize(
    "nonsense",
    [None, 3, "fast", [], {}, {"speculative_decoding": 3}, {"time_to_first_token_ms": "soon"},
     {"queue_time_ms": -1.0}, {"mean_itl_ms": True}, {"tokens_per_second": float("inf")},
     {"tokens_per_second": float("nan")}, {"speculative_decoding": {"draft_acceptance_rate": 1.5}}],
    ids=str,
)  # fmt: skip
def test_nonsense_is_nothing(nonsense: object) -> None:
    assert server_times(nonsense) is None


def test_one_field_that_is_nonsense_leaves_the_others() -> None:
    assert server_times({"queue_time_ms": -2, "mean_itl_ms": 0}) == ServerTimes(mean_itl_ms=0.0)

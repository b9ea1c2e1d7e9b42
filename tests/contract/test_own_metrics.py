"""What vLLM says of a request in its last chunk, against our own clock and against its counters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparktui.schema.launch import LoadSpec
from tests.contract.closed import closed_run
from tests.contract.launcher import K
from tests.contract.server import Server

LOAD = LoadSpec("chat", 96, 48, temperature=0.0)
CLOCKS_MS = 5.0  # rounding, and two readings of a clock that are not the same instant


async def test_the_server_s_times_lie_within_ours(telling: Server) -> None:
    """Its TTFT is without its queue, the network and the API server: shorter than ours, never longer."""
    rows, _, _ = await closed_run(telling, LOAD, 4, 12)
    for row in rows:
        told = row.server
        assert row.ok
        assert told is not None
        assert None not in (told.ttft_ms, told.queue_ms, told.generation_ms, row.ttft_ms, row.total_ms)
        assert (told.ttft_ms or 0.0) + (told.queue_ms or 0.0) <= (row.ttft_ms or 0.0) + CLOCKS_MS
        within = (told.queue_ms or 0.0) + (told.ttft_ms or 0.0) + (told.generation_ms or 0.0)
        assert within <= (row.total_ms or 0.0) + CLOCKS_MS
        assert (told.generation_ms or 0.0) > 0.5 * (row.decode_s or 0.0) * 1000


async def test_acceptance_of_one_request_is_that_of_the_counters(telling: Server, release: str) -> None:
    longer = replace(LOAD, output_tokens=400)  # or a second one begins before the load is lowered
    (row,), _, change = await closed_run(telling, longer, 1, 1)
    assert row.server is not None
    drafts = change["spec_decode_num_drafts_total"]
    accepted = change["spec_decode_num_accepted_tokens_total"]
    assert drafts > 0
    if release == "0.27.1":
        assert (row.server.acceptance_rate, row.server.mean_acceptance_length) == (None, None)
    else:
        assert row.server.acceptance_rate == pytest.approx(accepted / (K * drafts), abs=1e-3)
        assert row.server.mean_acceptance_length == pytest.approx(1 + accepted / drafts, abs=1e-3)

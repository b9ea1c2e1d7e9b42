"""Our own load process against the server's counters: over a closed run both count the same, exactly."""

from __future__ import annotations

import pytest

from sparktui.schema.launch import LoadSpec
from tests.contract.closed import closed_run
from tests.contract.server import Server

STREAMS, REQUESTS = 4, 12
INPUT, OUTPUT = 96, 48


@pytest.mark.parametrize("workload", ["chat", "repeat", "shared-prefix"])
async def test_tokens_requests_and_prompts_are_the_server_s_own(server: Server, workload: str) -> None:
    spec = LoadSpec(workload, None if workload == "shared-prefix" else INPUT, OUTPUT, temperature=0.0)
    rows, totals, change = await closed_run(server, spec, STREAMS, REQUESTS)
    assert [row.error for row in rows if not row.ok] == []
    assert len(rows) >= REQUESTS
    assert totals.usage == "continuous"
    assert totals.output_tokens == sum(row.completion_tokens or 0 for row in rows)
    assert totals.output_tokens == change["generation_tokens_total"]
    assert sum(row.prompt_tokens or 0 for row in rows) == change["prompt_tokens_total"]
    assert totals.decode_tokens == sum(row.decode_tokens or 0 for row in rows)
    assert totals.stream_seconds == pytest.approx(sum(row.decode_s or 0.0 for row in rows), abs=1e-6)


async def test_a_prompt_is_as_long_as_asked_by_the_server_s_own_tokenizer(server: Server) -> None:
    rows, _, _ = await closed_run(server, LoadSpec("chat", INPUT, OUTPUT), STREAMS, REQUESTS)
    assert {row.prompt_tokens for row in rows} == {INPUT}


async def test_each_answer_has_the_length_asked_for(server: Server) -> None:
    """ignore_eos: all of max_tokens, which varies by a tenth."""
    rows, _, _ = await closed_run(server, LoadSpec("chat", INPUT, OUTPUT), STREAMS, REQUESTS)
    assert {row.finish_reason for row in rows} == {"length"}
    assert all(OUTPUT * 0.9 <= (row.completion_tokens or 0) <= OUTPUT * 1.1 for row in rows)

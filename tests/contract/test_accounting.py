"""Tokens, requests and steps: what the counters say of requests whose size is known."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.contract.launcher import MAX_NUM_SEQS, K
from tests.contract.page import Counts, counts, finished, is_idle, settled
from tests.contract.server import Server
from tests.contract.wire import (
    CHAT,
    COMPLETIONS,
    USAGE,
    chat,
    client,
    completion,
    post,
    stream,
    streaming,
    usage_of,
)
from tests.support import until

SIZES = (24, 1, 64, 33)
REQUEST_HISTOGRAMS = (
    "time_to_first_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_inference_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_time_per_output_token_seconds",
    "request_prompt_tokens",
    "request_generation_tokens",
    "request_params_max_tokens",
    "request_params_n",
    "request_prefill_kv_computed_tokens",
)


def run_requests(server: Server) -> tuple[int, int, Counts]:
    """Some requests one after the other: their prompt and output tokens, and how the counters moved."""
    before = counts(server)
    used = [usage_of(post(server, CHAT, chat(f"Request {n}.", max_tokens=n)).json()) for n in SIZES]
    change = settled(server, before, len(SIZES))
    return sum(prompt for prompt, _ in used), sum(output for _, output in used), change


def test_totals_are_the_usage_that_clients_saw(server: Server) -> None:
    prompt, output, change = run_requests(server)
    assert output == sum(SIZES)
    assert change["generation_tokens_total"] == output
    assert change["prompt_tokens_total"] == prompt
    assert sum(change.all_of("prompt_tokens_by_source_total").values()) == prompt
    assert change["iteration_tokens_total_sum"] == prompt + output
    assert change["request_generation_tokens_sum"] == change["request_params_max_tokens_sum"] == output
    assert change["request_prompt_tokens_sum"] == change["prefix_cache_queries_total"] == prompt
    assert change.all_of("request_success_total")["length"] == len(SIZES)
    assert {family: change[f"{family}_count"] for family in REQUEST_HISTOGRAMS} == dict.fromkeys(
        REQUEST_HISTOGRAMS, len(SIZES)
    )


def test_without_speculation_each_further_token_is_a_step(off: Server) -> None:
    _, output, change = run_requests(off)
    assert change["inter_token_latency_seconds_count"] == output - len(SIZES)
    assert change["iteration_tokens_total_count"] == output
    assert not [name for name in change.values if name.startswith("spec_decode")]


def test_with_speculation_each_step_is_a_draft(spec: Server) -> None:
    _, output, change = run_requests(spec)
    drafts = change["spec_decode_num_drafts_total"]
    accepted = change["spec_decode_num_accepted_tokens_total"]
    by_position = change.all_of("spec_decode_num_accepted_tokens_per_pos_total")
    assert list(by_position) == [str(position) for position in range(K)]
    falling = list(by_position.values())
    assert falling == sorted(falling, reverse=True)
    assert sum(falling) == accepted > 0
    assert falling[0] <= drafts
    assert change["spec_decode_num_draft_tokens_total"] == K * drafts
    assert change["inter_token_latency_seconds_count"] == drafts
    cut = len(SIZES) + drafts + accepted - output  # accepted after max_tokens: counted, not sent
    assert 0 <= cut <= K * len(SIZES)


def test_parallel_requests_are_counted_one_by_one(off: Server) -> None:
    before = counts(off)
    with ThreadPoolExecutor(4) as threads:
        bodies = [completion(f"Prompt {n}", max_tokens=20 + n) for n in range(4)]
        outputs = list(threads.map(lambda body: stream(off, COMPLETIONS, body, USAGE), bodies))
    total = sum(usage_of(events[-1])[1] for events in outputs)
    change = settled(off, before, 4)
    assert change["generation_tokens_total"] == total == 86
    assert change["inter_token_latency_seconds_count"] == total - 4
    assert change["iteration_tokens_total_count"] < total  # they shared steps


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_choices_are_requests_that_share_two_figures(off: Server, streamed: bool) -> None:
    before = counts(off)
    body = chat(max_tokens=5, n=2, temperature=1)
    if streamed:
        used = usage_of(stream(off, CHAT, body, USAGE)[-1])
    else:
        used = usage_of(post(off, CHAT, body).json())
    change = settled(off, before, 2)
    assert used[1] == change["generation_tokens_total"] == 10
    assert change["prompt_tokens_total"] == 2 * used[0]
    assert (change["request_params_n_count"], change["request_params_n_sum"]) == (1, 2)
    longest = "request_max_num_generation_tokens"
    assert (change[f"{longest}_count"], change[f"{longest}_sum"]) == (1, 5)
    for family in ("request_params_max_tokens", "request_generation_tokens"):
        assert (change[f"{family}_count"], change[f"{family}_sum"]) == (2, 10)


def test_a_repeated_prompt_comes_from_the_cache(off: Server) -> None:
    body = completion("one two three four " * 150, max_tokens=2)
    first, again = counts(off), None
    prompt, _ = usage_of(post(off, COMPLETIONS, body).json())
    cold = settled(off, first, 1)
    again = counts(off)
    post(off, COMPLETIONS, body)
    warm = settled(off, again, 1)
    hits = warm["prefix_cache_hits_total"]
    assert cold["prefix_cache_hits_total"] == 0
    assert cold["request_prefill_kv_computed_tokens_sum"] == prompt
    assert prompt / 2 < hits < prompt
    assert warm["prompt_tokens_total"] == warm["prefix_cache_queries_total"] == prompt
    assert warm["prompt_tokens_cached_total"] == hits
    by_source = warm.all_of("prompt_tokens_by_source_total")
    assert by_source == {"local_compute": prompt - hits, "local_cache_hit": hits, "external_kv_transfer": 0}
    assert warm["request_prefill_kv_computed_tokens_sum"] == prompt - hits


def crowd(server: Server) -> Counts | None:
    """Two streams more than there are seats, seen so, then gone: the counts before them. None when it was not
    seen while they lasted, as on a machine that stood still."""
    before = counts(server)
    with client(server) as made, ExitStack() as open_streams:
        for n in range(MAX_NUM_SEQS + 2):
            body = streaming(chat(f"Stream {n}.", max_tokens=4000))
            open_streams.enter_context(made.stream("POST", CHAT, json=body))
        end = until(lambda: seated_or_over(server, before), server.limits.answer, "all seats taken")
    until(lambda: is_idle(server), server.limits.answer, "all gone")
    return before if end == "seated" else None


def seated_or_over(server: Server, before: Counts) -> str | None:
    now = counts(server)
    if (now["num_requests_running"], now["num_requests_waiting"]) == (MAX_NUM_SEQS, 2):
        assert now["kv_cache_usage_perc"] > 0
        return "seated"
    return "over" if finished(now - before) else None


def test_requests_beyond_max_num_seqs_wait_and_clients_that_leave_free_them(off: Server) -> None:
    before = until(lambda: crowd(off), 3 * off.limits.answer, "all seats taken, two waiting")
    assert before is not None
    change = counts(off) - before
    assert finished(change) == 0  # an abort is in no request_success reason
    assert change["e2e_request_latency_seconds_count"] == 0
    assert 0 < change["generation_tokens_total"] < (MAX_NUM_SEQS + 2) * 4000
    assert counts(off)["kv_cache_usage_perc"] == 0

"""The metric families of a page, all of them: names, types, label names, bucket bounds, label values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.launcher import K
from tests.contract.page import Family, families, label_values, page
from tests.contract.server import Server
from tests.contract.wire import CHAT, chat, get, post

# not vLLM's own, so not compared: what makes them depends on the interpreter and the HTTP layer
FOREIGN = {
    "python_": "prometheus_client's collector of the interpreter",
    "process_": "prometheus_client's collector of /proc",
    "http_": "prometheus-fastapi-instrumentator, one label set for each route that was asked",
}
VALUES = {
    "num_requests_waiting_by_reason": ("reason", ["capacity", "deferred"]),
    "prompt_tokens_by_source_total": ("source", ["local_compute", "local_cache_hit", "external_kv_transfer"]),
    "request_success_total": ("finished_reason", ["stop", "length", "abort", "error", "repetition"]),
    "engine_sleep_state": ("sleep_state", ["awake", "weights_offloaded", "discard_all"]),
}


def expected(release: str) -> list[str]:
    """The table that was written from the real server's page with speculation on."""
    text = Path(__file__).with_name(f"families_{release}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def own(found: list[Family]) -> list[str]:
    return [str(family) for family in found if not family.name.startswith(tuple(FOREIGN))]


def is_speculative(row: str) -> bool:
    return row.startswith("vllm:spec_decode_")


def test_the_families_with_speculation(spec: Server, release: str) -> None:
    post(spec, CHAT, chat())
    found = own(families(page(spec)))
    assert sorted(found) == sorted(expected(release))
    assert len(found) == len(set(found))


def test_the_families_without_speculation(off: Server, release: str) -> None:
    post(off, CHAT, chat())
    found = own(families(page(off)))
    assert sorted(found) == sorted(row for row in expected(release) if not is_speculative(row))


@pytest.mark.parametrize("sample", list(VALUES))
def test_label_values_exist_before_anything_happened(off: Server, sample: str) -> None:
    label, values = VALUES[sample]
    assert label_values(page(off), sample, label) == values


def test_positions_and_engines(spec: Server) -> None:
    text = page(spec)
    positions = label_values(text, "spec_decode_num_accepted_tokens_per_pos_total", "position")
    assert positions == [str(position) for position in range(K)]
    assert label_values(text, "generation_tokens_total", "engine") == ["0"]
    assert label_values(text, "generation_tokens_total", "model_name") == ["tiny"]


def test_the_page_is_classic_text(off: Server) -> None:
    answer = get(off, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert "# TYPE vllm:generation_tokens_total counter\n" in answer.text
    assert "# TYPE vllm:generation_tokens_created gauge\n" in answer.text
    assert "# EOF" not in answer.text


def test_the_cache_config_is_told_in_labels(off: Server) -> None:
    text = page(off)
    (tokens,) = label_values(text, "cache_config_info", "kv_cache_size_tokens")
    (blocks,) = label_values(text, "cache_config_info", "num_gpu_blocks")
    (size,) = label_values(text, "cache_config_info", "block_size")
    assert int(tokens) == int(blocks) * int(size) > 0
    (caching,) = label_values(text, "cache_config_info", "enable_prefix_caching")
    assert caching == "True"

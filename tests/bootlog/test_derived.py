from __future__ import annotations

from typing import Any

import pytest

from sparktui.bootlog.context import Context
from sparktui.bootlog.derived import derived
from sparktui.schema.live import Finding

NOWHERE = Context()
DRAFTER: dict[str, Any] = {
    "model_runner": "V2",
    "spec_method": "dspark",
    "num_speculative_tokens": 7,
    "cudagraph_mode": "FULL_AND_PIECEWISE",
    "draft_capture": False,
}
ROOM: dict[str, Any] = {"weights_gib": 60.1, "kv_available_gib": 69.1}
GB10 = Context("NVIDIA GB10")


UNSEEN = {name: value for name, value in DRAFTER.items() if name != "draft_capture"}


def one(facts: dict[str, Any], context: Context = NOWHERE) -> Finding:
    (finding,) = derived(facts, context, True)
    return finding


def test_a_drafter_without_graphs() -> None:
    finding = one(DRAFTER)
    assert (finding.id, finding.severity, finding.line) == ("cg-draft-none", "costs speed", 0)
    assert "dspark" in finding.text
    assert finding.cost.startswith("7 passes")
    assert "54992" in finding.source


def test_a_drafter_whose_graphs_stand_nowhere_beside_the_models() -> None:
    assert one(UNSEEN | {"graphs_captured": {"PIECEWISE": 51, "FULL": 35}}).id == "cg-draft-none"
    assert derived(UNSEEN | {"graphs_captured": {"PIECEWISE": 51}}, NOWHERE, True) == ()
    assert derived(UNSEEN, NOWHERE, True) == ()


@pytest.mark.parametrize(
    "other",
    [
        {"model_runner": "V1"},
        {"model_runner": None},
        {"draft_capture": True},
        {"draft_capture": None},
        {"spec_method": "ngram"},
        {"spec_method": "suffix"},
        {"spec_method": None},
        {"cudagraph_mode": "PIECEWISE"},
        {"cudagraph_mode": "NONE"},
    ],
)
def test_a_drafter_that_may_have_graphs_is_not_accused(other: dict[str, Any]) -> None:
    facts = {name: value for name, value in (DRAFTER | other).items() if value is not None}
    assert derived(facts, NOWHERE, True) == ()


def test_nothing_before_the_boot_has_ended() -> None:
    assert derived(DRAFTER, NOWHERE, False) == ()
    assert derived({}, NOWHERE, True) == ()


def test_a_negative_estimate() -> None:
    finding = one({"cudagraph_estimate_gib": -35.69})
    assert (finding.id, finding.severity) == ("mem-cg-est", "costs memory")
    assert "35.69 GiB too large" in finding.cost
    assert "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0" in finding.remedy


@pytest.mark.parametrize(
    "facts",
    [
        {**ROOM, "cudagraph_estimate_gib": 118.65},
        {"gpu_requested_gib": 250.0, "cudagraph_estimate_gib": 118.65},
        {**ROOM, "cudagraph_estimate_gib": 118.65, "cudagraph_memory_gib": 1.2},
    ],
)
def test_an_estimate_that_takes_much(facts: dict[str, Any]) -> None:
    finding = one(facts)
    assert (finding.id, finding.severity) == ("mem-cg-est", "costs memory")
    assert "118.65 GiB" in finding.text
    assert "4" in finding.meaning.split("That is ")[1][:2]  # 47 or 48 %


@pytest.mark.parametrize(
    "facts",
    [
        {**ROOM, "cudagraph_estimate_gib": 1.25},
        {**ROOM, "cudagraph_estimate_gib": 0.0},
        {"cudagraph_estimate_gib": 118.65},  # of an unknown whole
        {**ROOM, "cudagraph_estimate_gib": 20.0, "cudagraph_memory_gib": 18.0},  # it was right
    ],
)
def test_an_estimate_that_is_in_order(facts: dict[str, Any]) -> None:
    assert derived(facts, NOWHERE, True) == ()


STARVED: dict[str, Any] = {"weights_gib": 60.1, "kv_available_gib": 9.5, "gpu_requested_gib": 103.4}


def test_a_cache_that_got_far_less_than_there_was() -> None:
    finding = one(STARVED)
    assert (finding.id, finding.severity) == ("mem-kv-starved", "costs memory")
    assert "43.3 GiB" in finding.meaning
    assert "9.5" in finding.meaning
    share = {"gpu_total_gib": 121.69, "non_default_args": {"gpu_memory_utilization": 0.85}}
    without = {name: value for name, value in STARVED.items() if name != "gpu_requested_gib"}
    assert one(without | share).id == "mem-kv-starved"


@pytest.mark.parametrize(
    "other",
    [
        {"kv_available_gib": 30.0},
        {"gpu_requested_gib": None},
        {"weights_gib": None},
        {"gpu_requested_gib": 60.5},  # hardly anything was left
    ],
)
def test_a_cache_of_which_that_can_not_be_said(other: dict[str, Any]) -> None:
    facts = {name: value for name, value in (STARVED | other).items() if value is not None}
    assert derived(facts, NOWHERE, True) == ()


def test_the_step_budget_that_drafting_takes() -> None:
    finding = one({"max_num_batched_tokens": 2048, "max_num_scheduled_tokens": 1024})
    assert (finding.id, finding.severity, finding.cause) == ("spec-slots-many", "costs speed", "spec-slots")
    assert "50%" in finding.meaning
    assert derived({"max_num_batched_tokens": 8192, "max_num_scheduled_tokens": 8128}, NOWHERE, True) == ()
    assert derived({"max_num_scheduled_tokens": 1024}, NOWHERE, True) == ()


def test_an_expert_kernel_with_a_record_on_this_gpu() -> None:
    facts = {"moe_backend": "FLASHINFER_CUTLASS", "moe_weights": "NvFp4"}
    finding = one(facts, GB10)
    assert (finding.id, finding.severity) == ("moe-cutlass-sm12x", "note")
    assert derived(facts, Context("NVIDIA B200"), True) == ()
    assert derived(facts, NOWHERE, True) == ()
    assert derived({"moe_backend": "MARLIN"}, GB10, True) == ()


def test_an_old_nccl_under_graphs_on_two_of_them() -> None:
    facts = {"nccl_version": "2.28.9", "tensor_parallel_size": 2, "cudagraph_mode": "FULL_AND_PIECEWISE"}
    assert one(facts, GB10).id == "nccl-graphs"
    for other in (
        {"nccl_version": "2.30.4"},
        {"tensor_parallel_size": 1},
        {"cudagraph_mode": "NONE"},
    ):
        assert derived(facts | other, GB10, True) == ()
    assert derived(facts, Context("NVIDIA H200"), True) == ()


def test_the_same_facts_make_the_same_findings() -> None:
    facts = DRAFTER | STARVED
    assert derived(facts, NOWHERE, True) == derived(facts, NOWHERE, True)
    assert [f.id for f in derived(facts, NOWHERE, True)] == ["cg-draft-none", "mem-kv-starved"]

from __future__ import annotations

from typing import Any

import pytest

from sparktui.bootlog.facts import read_facts
from tests.bootlog.logs import line, read_log


def facts_of(*messages: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for message in messages:
        read_facts(line(message), facts)
    return facts


def without_args(log: str) -> dict[str, Any]:
    facts = read_log(log).facts
    del facts["non_default_args"]
    return facts


def test_h200_without_speculation() -> None:
    assert without_args("0.24.0-h200/boot_off.log") == {
        "vllm_version": "0.24.0",
        "attention_backend": "FLASH_ATTN",
        "cudagraph_mode": "FULL_AND_PIECEWISE",
        "async_scheduling": True,
        "model_runner": "V2",
        "kv_cache_tokens": 657_888,
        "max_concurrency": 80.31,
        "weights_gib": 1.19,
        "load_s": 1.497271,
        "compile_s": 15.61,
        "capture_s": 1.0,
        "init_engine_s": 33.53,
    }


def test_h200_downgraded() -> None:
    facts = read_log("0.24.0-h200/boot_fi_ngram.log").facts
    assert facts["cudagraph_mode"] == "PIECEWISE"
    assert facts["attention_backend"] == "FLASHINFER"
    assert (facts["async_scheduling"], facts["model_runner"]) == (False, "V1")
    assert facts["non_default_args"]["speculative_config"]["num_speculative_tokens"] == 3
    assert "draft_attention_backend" not in facts


def test_h200_kept_its_graphs() -> None:
    assert read_log("0.24.0-h200/boot_fa_ngram.log").facts["cudagraph_mode"] == "FULL_AND_PIECEWISE"


def test_a_drafter_with_its_own_backend() -> None:
    facts = read_log("0.24.0-h200/boot_flexdraft.log").facts
    assert facts["attention_backend"] == "FLEX_ATTENTION"
    assert facts["draft_attention_backend"] == "FLASH_ATTN"
    assert facts["compile_s"] == 15.23


def test_cpu_of_two_versions() -> None:
    assert without_args("0.27.1-cpu/boot_off.log") == {
        "vllm_version": "0.27.1",
        "attention_backend": "CPU_ATTN",
        "cudagraph_mode": "NONE",
        "model_runner": "V1",
        "kv_cache_tokens": 4_194_304,
        "max_concurrency": 1024.0,
        "load_s": 0.01,
        "init_engine_s": 0.86,
    }
    assert without_args("0.32.0-cpu/boot_draft_pipe.log") == {
        "vllm_version": "0.32.0",
        "cudagraph_mode": "NONE",
        "model_runner": "V1",
        "kv_cache_tokens": 2_796_160,
        "max_concurrency": 682.66,
        "init_engine_s": 13.22,
    }


@pytest.mark.parametrize(
    ("messages", "mode"),
    [
        (
            ["x is not supported with B backend (support: S.Y); setting cudagraph_mode=FULL_DECODE_ONLY"],
            "FULL_DECODE_ONLY",
        ),
        (
            ["Cudagraph mode FULL is not compatible with compilation mode 0. Overriding to NONE"],
            "NONE",
        ),
        (["Profiling CUDA graph memory: FULL=3 (largest=8)"], "FULL"),
        (["Capturing CUDA graphs (decode, FULL): 10%|█ | 1/10 [00:00<?]"], "FULL_DECODE_ONLY"),
        (["Capturing CUDA graphs (mixed prefill-decode, FULL): 10%|█ | 1/10 [00:00<?]"], "FULL"),
        (["Capturing CUDA graphs (PIECEWISE): 1", "Capturing CUDA graphs (FULL): 1"], "FULL_AND_PIECEWISE"),
        (["Capturing CUDA graphs (PIECEWISE): 1", "Capturing dspark CUDA graphs (FULL): 1"], "PIECEWISE"),
        (["Skipping CUDA graph capture. To turn on CUDA graph capture, set"], "NONE"),
    ],
)
def test_graph_mode_in_effect(messages: list[str], mode: str) -> None:
    assert facts_of(*messages)["cudagraph_mode"] == mode


def test_the_mode_asked_for_is_not_the_mode() -> None:
    dump = "Initializing a V1 LLM engine (v0.27.1) with config: 'cudagraph_mode': <CUDAGraphMode.FULL: 2>"
    assert facts_of(dump, "- Mode: FULL_AND_PIECEWISE") == {"vllm_version": "0.27.1"}


def test_args_that_are_not_plain_stay_text() -> None:
    assert facts_of("non-default args: {'a': <object>}")["non_default_args"] == "{'a': <object>}"
    assert facts_of("non-default args: {'a': [1, None]}")["non_default_args"] == {"a": [1, None]}


@pytest.mark.parametrize(
    ("message", "backend"),
    [
        ("Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['A']", "MARLIN"),
        ("Using TRITON backend for Unquantized MoE", "TRITON"),
        ("Using TRITON Unquantized MoE backend out of", "TRITON"),
    ],
)
def test_moe_backend(message: str, backend: str) -> None:
    assert facts_of(message) == {"moe_backend": backend}


def test_old_version_line() -> None:
    assert facts_of("vLLM API server version 0.13.0")["vllm_version"] == "0.13.0"
    assert facts_of("vLLM server version 0.17.1, serving model m")["vllm_version"] == "0.17.1"

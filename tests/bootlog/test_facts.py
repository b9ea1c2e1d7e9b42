"""Facts of a boot: every recorded log, and the wordings that none of them has."""

from __future__ import annotations

from typing import Any

import pytest

from sparktui.bootlog.facts import read_facts
from tests.bootlog.logs import LOGS, line, log_lines
from tests.bootlog.recorded_facts import RECORDED


def facts_of(*messages: str, **known: Any) -> dict[str, Any]:
    facts: dict[str, Any] = dict(known)
    for message in messages:
        read_facts(line(message), facts)
    return {name: value for name, value in facts.items() if name not in known or known[name] != value}


def facts_in(log: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for each in log_lines(log):
        read_facts(each, facts)
    return facts


@pytest.mark.parametrize("log", RECORDED)
def test_every_recorded_boot(log: str) -> None:
    facts = facts_in(log)
    facts.pop("non_default_args", None)
    assert facts == RECORDED[log]


def test_no_recorded_log_is_left_out() -> None:
    assert {str(path.relative_to(LOGS)) for path in LOGS.rglob("*.log")} == set(RECORDED)


def test_the_arguments_of_a_recorded_boot() -> None:
    assert facts_in("0.24.0-h200/boot_fi_ngram.log")["non_default_args"] == {
        "model_tag": "/models/tiny-1b",
        "host": "127.0.0.1",
        "port": 8123,
        "disable_uvicorn_access_log": True,
        "model": "/models/tiny-1b",
        "max_model_len": 8192,
        "load_format": "dummy",
        "attention_backend": "FLASHINFER",
        "gpu_memory_utilization": 0.3,
        "cudagraph_metrics": True,
        "max_num_seqs": 64,
        "speculative_config": {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4},
    }
    piecewise = facts_in("0.24.0-h200/boot_fa_ngram_pw.log")["non_default_args"]["compilation_config"]
    assert piecewise["cudagraph_mode"] == "<CUDAGraphMode.PIECEWISE: 1>"
    assert piecewise["dynamic_shapes_config"]["type"] == "<DynamicShapesType.BACKED: 'backed'>"


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("[1, None, -2.5]", [1, None, -2.5]),
        ("'it <is> text'", "it <is> text"),
        ("<object>", "<object>"),
        ("torch.bfloat16", "torch.bfloat16"),
        ("KVTransferConfig(kv_connector='C', kv_role=None)", {"kv_connector": "C", "kv_role": None}),
        ("[LoRAModulePath(name='a', path='b')]", [{"name": "a", "path": "b"}]),
        ("b'x'", "b'x'"),
    ],
)
def test_arguments_that_are_no_literals(printed: str, value: Any) -> None:
    facts = facts_of(f"non-default args: {{'a': {printed}, 'max_num_seqs': 4}}")
    assert facts == {"non_default_args": {"a": value, "max_num_seqs": 4}, "max_num_seqs": 4}


def test_arguments_that_were_cut_stay_text() -> None:
    assert facts_of("non-default args: {'a': [1, }") == {"non_default_args": "{'a': [1, }"}
    assert facts_of("non-default args: {'a': " + "(" * 5000 + "}")["non_default_args"].startswith("{'a': ((")


def test_secrets_stay_out_of_the_arguments() -> None:
    facts = facts_of("non-default args: {'api_key': ['k1', 'k2'], 'hf_token': None, 'port': 1}")
    assert facts == {"non_default_args": {"api_key": "•••", "hf_token": None, "port": 1}}
    cut = facts_of("non-default args: {'api_key': ['k1secret'], 'a': [}")["non_default_args"]
    assert "k1secret" not in cut


def test_speculation_from_the_arguments_alone() -> None:
    facts = facts_of("non-default args: {'spec_method': 'mtp', 'spec_tokens': 2, 'max_model_len': -1}")
    assert (facts["spec_method"], facts["num_speculative_tokens"]) == ("mtp", 2)
    assert "max_model_len" not in facts


DUMP = (
    "Initializing a V1 LLM engine (v0.27.1) with config: model='/m', "
    "speculative_config=SpeculativeConfig(method='dspark', model='/d', num_spec_tokens=3), "
    "dtype=torch.bfloat16, max_seq_len=4096, tensor_parallel_size=2, quantization=modelopt_fp4, "
    "kv_cache_dtype=fp8, device_config=cuda, enable_prefix_caching=False, enable_chunked_prefill=True, "
    "compilation_config={'cudagraph_mode': <CUDAGraphMode.FULL: 2>}, moe_backend='marlin'"
)


def test_the_config_dump_is_read_for_what_it_states_truly() -> None:
    assert facts_of(DUMP, "- Mode: FULL_AND_PIECEWISE") == {
        "vllm_version": "0.27.1",
        "spec_method": "dspark",
        "draft_model": "/d",
        "num_speculative_tokens": 3,
        "dtype": "bfloat16",
        "tensor_parallel_size": 2,
        "quantization": "modelopt_fp4",
        "kv_cache_dtype": "fp8",
        "device": "cuda",
        "prefix_caching": False,
        "chunked_prefill": True,
    }


@pytest.mark.parametrize(
    ("messages", "facts"),
    [
        (["vLLM API server version 0.13.0"], {"vllm_version": "0.13.0"}),
        (["vLLM server version 0.17.1, serving model m"], {"vllm_version": "0.17.1"}),
        ([" ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.23.1rc1.dev2+g1"], {"vllm_version": "0.23.1rc1.dev2+g1"}),
        (["The driver has CUDA version 13.0"], {}),
        (["Using max model len 40960", "Using max model len 4096"], {"max_model_len": 40960}),
        (
            [
                "Using max model len 40960",
                "Auto-fit max_model_len: reduced from 40960 to 9000 to fit in available KV cache memory",
            ],
            {"max_model_len": 9000},
        ),
        (
            [
                "Chunked prefill is enabled with max_num_batched_tokens=8192.",
                "Chunked prefill is enabled with max_num_batched_tokens=2048.",
            ],
            {"max_num_batched_tokens": 8192, "chunked_prefill": True},
        ),
        (
            [
                "Async scheduling is disabled because the V1 model runner does not support it "
                "with pipeline parallelism."
            ],
            {"async_scheduling": False},
        ),
        (
            ["Async scheduling will be disabled because it is not supported with the `ray` backend."],
            {"async_scheduling": False},
        ),
        (["vLLM is using nccl==2.28.9"], {"nccl_version": "2.28.9"}),
        (
            [
                "Default sampling parameters have been overridden by the model's Hugging Face generation "
                "config recommended from the model creator. If this is not intended, please relaunch vLLM "
                "instance with `--generation-config vllm`.",
                "Using default chat sampling params from model: {'temperature': 0.7, 'top_k': 20}",
            ],
            {"sampling_overrides": {"temperature": 0.7, "top_k": 20}},
        ),
    ],
)
def test_configuration(messages: list[str], facts: dict[str, Any]) -> None:
    assert facts_of(*messages) == facts


@pytest.mark.parametrize(
    ("messages", "facts"),
    [
        (
            [
                "Setting attention block size to 528 tokens to ensure that attention page size is "
                ">= mamba page size."
            ],
            {"mamba_block_tokens": 528},
        ),
        (
            [
                "Mamba cache mode is set to 'all' for NemotronHForCausalLM by default "
                "when prefix caching is enabled",
                "Hybrid or mamba-based model detected without support for prefix caching with Mamba cache "
                "'all' mode: falling back to 'align' mode.",
            ],
            {"mamba_cache_mode": "align"},
        ),
        (
            ["Mamba cache mode is set to 'none' when prefix caching is disabled"],
            {"mamba_cache_mode": "none"},
        ),
        (["Using flashinfer Mamba SSU backend."], {"mamba_backend": "flashinfer"}),
    ],
)
def test_mamba(messages: list[str], facts: dict[str, Any]) -> None:
    assert facts_of(*messages) == facts


@pytest.mark.parametrize(
    ("messages", "facts"),
    [
        (["Model loading took 16.9 GB and 3.25 seconds"], {"weights_gib": 16.9, "load_s": 3.25}),
        (["Loading weights took 4.00 seconds", "Loading weights took 1.00 seconds"], {"load_s": 4.0}),
        (["Estimated CUDA graph memory: -35.69 GiB total"], {"cudagraph_estimate_gib": -35.69}),
        (
            ["Graph capturing finished in 12 secs, took -0.50 GiB"],
            {"capture_s": 12.0, "cudagraph_memory_gib": -0.5},
        ),
        (
            [
                "GPU + host KV cache size: 1,000 tokens, "
                "Maximum concurrency for 8,192 tokens per request: 0.12x"
            ],
            {"kv_cache_tokens": 1000, "max_concurrency": 0.12},
        ),
        (
            ["Using fp8_e4m3 data type to store kv cache. It reduces the GPU memory footprint"],
            {"kv_cache_dtype": "fp8_e4m3"},
        ),
        (
            ["Filesystem type for checkpoints: EXT4. Checkpoint size: 17.25 GiB. Available RAM: 90.10 GiB."],
            {"checkpoint_gib": 17.25},
        ),
        (
            [
                "Free memory on device (118.10/121.69 GiB) on startup. Desired GPU memory utilization is "
                "(0.9, 109.52 GiB). Actual usage is 20.5 GiB for consumed memory (weights + non-torch), 1 GiB"
            ],
            {"gpu_free_gib": 118.1, "gpu_total_gib": 121.69, "gpu_requested_gib": 109.52},
        ),
        (
            [
                "ValueError: Free memory on device cuda:0 (101.30/121.69 GiB) on startup is less than "
                "desired GPU memory utilization (0.87, 105.87 GiB). Decrease GPU memory utilization"
            ],
            {"gpu_free_gib": 101.3, "gpu_total_gib": 121.69, "gpu_requested_gib": 105.87},
        ),
        (
            ["Initial free memory 120.10 GiB, reserved 40.00 GiB memory for KV Cache as specified by"],
            {"gpu_free_gib": 120.1, "kv_available_gib": 40.0},
        ),
        (
            [
                "init engine (profile, create kv cache, warmup model) took 50.00 s (compilation: 20.00 s — "
                "language_model: 15.00 s, encoder: 5.00 s)"
            ],
            {"init_engine_s": 50.0, "compile_s": 20.0},
        ),
        (
            ["init engine (profile, create kv cache, warmup model) took 33.53 seconds"],
            {"init_engine_s": 33.53},
        ),
        (
            ["torch.compile takes 9.47 s in total", "torch.compile took 0.43 s in total"],
            {"compile_s": 9.47},
        ),
    ],
)
def test_memory_and_time(messages: list[str], facts: dict[str, Any]) -> None:
    assert facts_of(*messages) == facts


def test_a_line_that_only_quotes_a_fact_states_none() -> None:
    assert facts_of("[report] vLLM is using nccl==2.1", "Seen: Using max model len 5") == {}

"""What every recorded boot states, read off the logs by hand; ``non_default_args`` apart."""

from __future__ import annotations

from typing import Any

_H200: dict[str, Any] = {
    "vllm_version": "0.24.0",
    "max_num_seqs": 64,
    "max_model_len": 8192,
    "architecture": "LlamaForCausalLM",
    "max_num_batched_tokens": 8192,
    "chunked_prefill": True,
    "prefix_caching": True,
    "dtype": "bfloat16",
    "tensor_parallel_size": 1,
    "kv_cache_dtype": "auto",
    "device": "cuda",
    "weights_gib": 1.19,
    "sampling_overrides": {"temperature": 1.0},
    "cudagraph_mode": "FULL_AND_PIECEWISE",
}
_FA3 = {"attention_backend": "FLASH_ATTN", "flash_attention_version": 3}
_FI = {"attention_backend": "FLASHINFER"}
_OFF = {"async_scheduling": True, "graphs_captured": {"PIECEWISE": 19, "FULL": 11}}
_V2 = {**_OFF, "model_runner": "V2"}
_V1 = {**_OFF, "model_runner": "V1", "largest_capture_size": 128}
_SPEC = {
    "async_scheduling": False,
    "model_runner": "V1",
    "num_speculative_tokens": 3,
    "graphs_captured": {"PIECEWISE": 49, "FULL": 33},
    "largest_capture_size": 512,
}
_NGRAM = {**_SPEC, "spec_method": "ngram"}
_DRAFT = {
    **_SPEC,
    "spec_method": "draft_model",
    "draft_model": "/models/tiny-draft",
    "max_num_scheduled_tokens": 8128,
    "weights_gib": 1.22,
}
_PIECEWISE = {"cudagraph_mode": "PIECEWISE", "graphs_captured": {"PIECEWISE": 51}}


def _measured(kv: float, tokens: int, concurrency: float, graphs: float, **rest: float) -> dict[str, Any]:
    return {
        "kv_available_gib": kv,
        "kv_cache_tokens": tokens,
        "max_concurrency": concurrency,
        "cudagraph_memory_gib": graphs,
        **rest,
    }


def _times(load: float, compiled: float, capture: float, engine: float) -> dict[str, float]:
    return {"load_s": load, "compile_s": compiled, "capture_s": capture, "init_engine_s": engine}


_CPU: dict[str, Any] = {
    "max_num_seqs": 8,
    "max_model_len": 4096,
    "architecture": "LlamaForCausalLM",
    "chunked_prefill": True,
    "prefix_caching": True,
    "dtype": "bfloat16",
    "tensor_parallel_size": 1,
    "kv_cache_dtype": "auto",
    "device": "cpu",
    "cudagraph_mode": "NONE",
    "model_runner": "V1",
    "kv_available_gib": 1.0,
    "kv_cache_tokens": 4_194_304,
    "max_concurrency": 1024.0,
    "sampling_overrides": {"temperature": 1.0},
}
_CPU27 = {
    **_CPU,
    "vllm_version": "0.27.1",
    "attention_backend": "CPU_ATTN",
    "checkpoint_gib": 0.0,
    "load_s": 0.01,
}
_CPU32 = {**_CPU, "vllm_version": "0.32.0"}
_BLOCKS = {"kv_cache_tokens": 8192, "max_concurrency": 2.0}
_CPU_NGRAM = {
    "spec_method": "ngram",
    "num_speculative_tokens": 3,
    "async_scheduling": False,
    "max_num_scheduled_tokens": 2048,
}
_CPU_DRAFT = {
    "spec_method": "draft_model",
    "draft_model": "/models/draftw",
    "num_speculative_tokens": 3,
    "max_num_scheduled_tokens": 2048,
}
_LOADED = {"checkpoint_gib": 0.0, "load_s": 0.01}
_FAILED = {"vllm_version": "0.32.0", "max_num_seqs": 8, "max_model_len": 4096}
_LATER = ("kv_available_gib", "kv_cache_tokens", "max_concurrency", "sampling_overrides")


def _without(facts: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in names}


RECORDED: dict[str, dict[str, Any]] = {
    "0.24.0-h200/boot_off.log": _H200
    | _FA3
    | _V2
    | _measured(40.15, 657_888, 80.31, 0.16)
    | _times(1.497271, 15.61, 1, 33.53),
    "0.24.0-h200/boot_fa_off.log": _H200
    | _FA3
    | _V2
    | _measured(40.21, 658_848, 80.43, 0.16)
    | _times(2.103032, 2.77, 1, 20.38),
    "0.24.0-h200/boot_fi_off.log": _H200
    | _FI
    | _V2
    | _measured(40.15, 657_888, 80.31, 0.24)
    | _times(2.473033, 14.27, 1, 35.34),
    "0.24.0-h200/boot_fa_off_v1.log": _H200
    | _FA3
    | _V1
    | _measured(40.05, 656_224, 80.11, 0.1, cudagraph_estimate_gib=0.1)
    | _times(0.948729, 14.74, 2, 26.16),
    "0.24.0-h200/boot_fi_off_v1.log": _H200
    | _FI
    | _V1
    | _measured(39.71, 650_592, 79.42, 0.22, cudagraph_estimate_gib=0.44)
    | _times(0.880129, 12.88, 2, 24.52),
    "0.24.0-h200/boot_ngram.log": _H200
    | _FA3
    | _NGRAM
    | _measured(39.97, 654_912, 79.95, 0.25, cudagraph_estimate_gib=0.18)
    | _times(0.331136, 12.17, 2, 25.06),
    "0.24.0-h200/boot_fa_ngram.log": _H200
    | _FA3
    | _NGRAM
    | _measured(39.97, 654_912, 79.95, 0.25, cudagraph_estimate_gib=0.18)
    | _times(1.235555, 14.82, 3, 30.98),
    "0.24.0-h200/boot_fa_ngram_pw.log": _H200
    | _FA3
    | _NGRAM
    | _PIECEWISE
    | _measured(40.05, 656_128, 80.09, 0.17, cudagraph_estimate_gib=0.11)
    | _times(0.893731, 12.95, 2, 27.09),
    "0.24.0-h200/boot_fi_ngram.log": _H200
    | _FI
    | _NGRAM
    | _PIECEWISE
    | _measured(40.05, 656_128, 80.09, 0.17, cudagraph_estimate_gib=0.11)
    | _times(1.188218, 16.87, 3, 32.6),
    "0.24.0-h200/boot_draft.log": _H200
    | _FA3
    | _DRAFT
    | _measured(39.94, 634_480, 77.45, 0.25, cudagraph_estimate_gib=0.19)
    | _times(0.526109, 23.09, 3, 37.38),
    "0.24.0-h200/boot_flexdraft.log": _H200
    | {
        "attention_backend": "FLEX_ATTENTION",
        "draft_attention_backend": "FLASH_ATTN",
        "flash_attention_version": 3,
    }
    | _DRAFT
    | _measured(39.94, 634_480, 77.45, 0.22, cudagraph_estimate_gib=0.19)
    | _times(0.554284, 15.23, 8, 36.49),
    "0.24.0-h200/boot_fail_missing_flashinfer.log": _without(_H200, "sampling_overrides", "cudagraph_mode")
    | _FA3
    | {"async_scheduling": True, "model_runner": "V2", "load_s": 1.418859},
    "0.27.1-cpu/boot_off.log": _CPU27 | {"init_engine_s": 0.86},
    "0.27.1-cpu/boot_draft.log": _CPU27
    | _CPU_DRAFT
    | {
        "async_scheduling": False,
        "max_num_scheduled_tokens": 2040,
        "kv_cache_tokens": 2_097_152,
        "max_concurrency": 512.0,
        "init_engine_s": 0.81,
    },
    "0.32.0-cpu/boot_off_pipe.log": _CPU32 | {"init_engine_s": 17.89},
    "0.32.0-cpu/boot_off_noconflict_pipe.log": _CPU32 | {"init_engine_s": 7.24},
    "0.32.0-cpu/boot_off_noeager_pipe.log": _CPU32 | {"init_engine_s": 47.67},
    "0.32.0-cpu/boot_apikey_pipe.log": _CPU32 | _BLOCKS | {"init_engine_s": 0.23},
    "0.32.0-cpu/boot_ngram_tty.log": _CPU32 | _CPU_NGRAM | _BLOCKS | {"init_engine_s": 0.12},
    "0.32.0-cpu/boot_draft_pipe.log": _CPU32
    | _CPU_DRAFT
    | {
        "draft_model": "/models/draft",
        "kv_cache_tokens": 2_796_160,
        "max_concurrency": 682.66,
        "init_engine_s": 13.22,
    },
    "0.32.0-cpu/boot_draftw_pipe.log": _CPU32 | _CPU_DRAFT | _BLOCKS | _LOADED | {"init_engine_s": 0.02},
    "0.32.0-cpu/boot_draftw2_pipe.log": _CPU32 | _CPU_DRAFT | _BLOCKS | _LOADED | {"init_engine_s": 0.02},
    "0.32.0-cpu/measure_off_18131.log": _CPU32 | {"max_num_seqs": 64, "init_engine_s": 0.6},
    "0.32.0-cpu/measure_on_18132.log": _CPU32 | _CPU_NGRAM | {"max_num_seqs": 64, "init_engine_s": 0.6},
    "0.32.0-cpu/runtime-crash-0.32.0-cpu.log": _CPU32
    | _CPU_NGRAM
    | {
        "max_num_seqs": 4,
        "max_model_len": 256,
        "max_num_batched_tokens": 1024,
        "max_num_scheduled_tokens": 1024,
        "max_concurrency": 16384.0,
        "init_engine_s": 1.22,
        "sampling_overrides": {"temperature": 0.6, "top_p": 0.95},
    },
    "0.32.0-cpu/sig_sigint_boot.log": _without(_CPU32, "sampling_overrides") | {"init_engine_s": 1.62},
    "0.32.0-cpu/sig_sigint_boot_SIGIGN.log": _without(_CPU32, *_LATER),
    "0.32.0-cpu/sig_sigint_serving.log": _CPU32 | {"init_engine_s": 1.12},
    "0.32.0-cpu/sig_sigkill_parent.log": _CPU32 | _CPU_NGRAM | {"init_engine_s": 0.5},
    "0.32.0-cpu/sig_sigterm_boot.log": _CPU32 | {"init_engine_s": 0.6},
    "0.32.0-cpu/sig_sigterm_serving.log": _CPU32 | {"init_engine_s": 5.77},
    "0.32.0-cpu/fail_attn_backend.log": _FAILED | {"architecture": "LlamaForCausalLM"},
    "0.32.0-cpu/fail_badmodel.log": _FAILED,
    "0.32.0-cpu/fail_portinuse2.log": _FAILED,
    "0.32.0-cpu/fail_maxlen.log": _FAILED | {"max_model_len": 99999, "architecture": "LlamaForCausalLM"},
    "0.32.0-cpu/fail_suffix.log": _FAILED
    | {"spec_method": "suffix", "num_speculative_tokens": 3, "architecture": "LlamaForCausalLM"},
    "0.32.0-cpu/fail_badflag.log": {},
    "0.32.0-cpu/fail_moe_backend_bogus.log": {},
}

"""The CUDA graph mode through every branch of vLLM's resolution; backends of target and drafter."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bootlog.test_facts import DUMP, facts_of

SUPPORT = "(support: AttentionCGSupport.{})"
WITH_SPEC = "CUDAGraphMode.{} is not supported with spec-decode for attention backend X " + SUPPORT.format(
    "UNIFORM_SINGLE_TOKEN_DECODE"
)
MIXED = "CUDAGraphMode.FULL is not supported with X backend " + SUPPORT.format("UNIFORM_BATCH")
NEVER = "CUDAGraphMode.FULL_AND_PIECEWISE is not supported with X backend " + SUPPORT.format("NEVER")
BAR = "100%|██████████| {0}/{0} [00:01<00:00, 34.29it/s]"
MTP = {"spec_method": "mtp"}


@pytest.mark.parametrize(
    ("messages", "mode"),
    [
        ([f"{MIXED}; setting cudagraph_mode=FULL_AND_PIECEWISE"], "FULL_AND_PIECEWISE"),
        ([f"{MIXED}; setting cudagraph_mode=FULL_DECODE_ONLY"], "FULL_DECODE_ONLY"),
        (
            [f"{NEVER}; setting cudagraph_mode=PIECEWISE because attention is compiled piecewise"],
            "PIECEWISE",
        ),
        ([f"{NEVER}; setting cudagraph_mode=NONE because attention is not compiled piecewise"], "NONE"),
        ([WITH_SPEC.format("FULL_AND_PIECEWISE") + "; setting cudagraph_mode=PIECEWISE"], "PIECEWISE"),
        ([WITH_SPEC.format("FULL_DECODE_ONLY") + "; setting cudagraph_mode=NONE"], "NONE"),
        (
            [
                f"{MIXED}; setting cudagraph_mode=FULL_AND_PIECEWISE",
                WITH_SPEC.format("FULL_AND_PIECEWISE") + "; setting cudagraph_mode=PIECEWISE",
            ],
            "PIECEWISE",
        ),
        (
            [
                "Cudagraph mode FULL_AND_PIECEWISE requires piecewise capture, but the loaded model provides "
                "neither a compiled submodule nor breakable CUDA graphs. Overriding to FULL_DECODE_ONLY."
            ],
            "FULL_DECODE_ONLY",
        ),
        (["Cudagraph mode FULL is not compatible with compilation mode 0. Overriding to NONE."], "NONE"),
        (
            [
                "Cudagraph mode CUDAGraphMode.PIECEWISE is not compatible with compilation mode "
                "CompilationMode.NONE.Overriding to CUDAGraphMode.NONE."
            ],
            "NONE",
        ),
        (
            [
                "Dynamic speculative decoding changes the target verification length at runtime. Overriding "
                "cudagraph_mode from FULL_AND_PIECEWISE to PIECEWISE for reliability."
            ],
            "PIECEWISE",
        ),
        (
            [
                "KV connector LMCacheConnectorV1 requires PIECEWISE CUDA graph mode due to layerwise async "
                "operations that cannot be captured in CUDA graphs. Overriding cudagraph_mode from "
                "FULL_AND_PIECEWISE to PIECEWISE."
            ],
            "PIECEWISE",
        ),
        (
            [
                "Pooling models do not support full cudagraphs. Overriding cudagraph_mode to PIECEWISE.",
            ],
            "PIECEWISE",
        ),
        (
            [
                "Encoder-decoder models do not support FULL_AND_PIECEWISE. "
                "Overriding cudagraph_mode to FULL_DECODE_ONLY.",
            ],
            "FULL_DECODE_ONLY",
        ),
        (
            [
                "Piecewise compilation with empty splitting_ops does not contain piecewise cudagraph. "
                "Setting cudagraph_mode to NONE. Hint: consider manually setting cudagraph_mode to FULL or "
                "FULL_DECODE_ONLY to enable full cudagraphs."
            ],
            "NONE",
        ),
        (
            [
                "Piecewise compilation with empty splitting_ops does not contain piecewise cudagraph. "
                "Setting cudagraph_mode to FULL."
            ],
            "FULL",
        ),
        (
            [
                "fuse_attn_quant is incompatible with piecewise cudagraph when use_inductor_graph_partition "
                "is off. In this case, splitting_ops will be set to empty list, and cudagraph_mode will be "
                "set to FULL. Please ensure you are using attention backends that support cudagraph or set "
                "cudagraph_mode to NONE explicitly if encountering any problems."
            ],
            "FULL",
        ),
        (
            [
                "Sequence parallelism is incompatible with piecewise cudagraph when "
                "use_inductor_graph_partition is off. Setting cudagraph_mode to FULL."
            ],
            "FULL",
        ),
        (
            [
                "CUDA graphs are not supported with stock torch.compile in Model Runner V2. Overriding "
                "cudagraph_mode FULL_AND_PIECEWISE to NONE."
            ],
            "NONE",
        ),
        (["MoonEP: Disabling CUDA Graphs since the MoonEP integration is currently eager-only."], "NONE"),
        (["Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup."], "NONE"),
        (["Cudagraph is disabled under eager mode"], "NONE"),
        (["Skipping CUDA graph capture. To turn on CUDA graph capture, set"], "NONE"),
        (["Skipping encoder and decoder CUDA graph capture. To enable"], "NONE"),
        (["Initializing a V1 LLM engine (v1) with config: model='m', device_config=cpu, seed=0"], "NONE"),
    ],
)
def test_each_override(messages: list[str], mode: str) -> None:
    assert facts_of(*messages)["cudagraph_mode"] == mode


@pytest.mark.parametrize(
    ("messages", "mode"),
    [
        (
            ["Profiling CUDA graph memory: PIECEWISE=49 (largest=512), FULL=33 (largest=256)"],
            "FULL_AND_PIECEWISE",
        ),
        (["Profiling CUDA graph memory: FULL=3 (largest=8), ENCODER=2 (largest=64)"], "FULL"),
        (
            [
                f"{MIXED}; setting cudagraph_mode=FULL_DECODE_ONLY",
                "Profiling CUDA graph memory: FULL=3 (largest=8)",
            ],
            "FULL_DECODE_ONLY",
        ),
        ([f"Capturing CUDA graphs (decode, FULL): {BAR.format(10)}"], "FULL_DECODE_ONLY"),
        ([f"Capturing CUDA graphs (mixed prefill-decode, FULL): {BAR.format(10)}"], "FULL"),
        (
            [
                f"Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): {BAR.format(9)}",
                f"Capturing CUDA graphs (decode, FULL): {BAR.format(3)}",
            ],
            "FULL_AND_PIECEWISE",
        ),
        (["Capturing CUDA graphs (PIECEWISE): 1", "Capturing CUDA graphs (FULL): 1"], "FULL_AND_PIECEWISE"),
        (["Capturing CUDA graphs (FULL): 1"], "FULL"),
        (
            [
                "non-default args: {'compilation_config': {'cudagraph_mode': "
                "<CUDAGraphMode.FULL_DECODE_ONLY: (2, 0)>}}",
                "Capturing CUDA graphs (FULL): 1",
            ],
            "FULL_DECODE_ONLY",
        ),
        # An eager drafter says so in the target's words; what is captured afterwards tells.
        (
            [
                "Enforce eager set, disabling torch.compile and CUDAGraphs.",
                "Capturing CUDA graphs (PIECEWISE): 1",
                "Capturing CUDA graphs (FULL): 1",
            ],
            "FULL_AND_PIECEWISE",
        ),
        # The drafter's bars are not the target's.
        (
            ["Capturing CUDA graphs (PIECEWISE): 1", "Capturing dspark CUDA graphs (FULL): 1"],
            "PIECEWISE",
        ),
        (
            ["Capturing CUDA graphs (PIECEWISE): 1", "Capturing decode CUDA graphs (FULL): 1"],
            "PIECEWISE",
        ),
    ],
)
def test_what_is_captured(messages: list[str], mode: str) -> None:
    assert facts_of(*messages)["cudagraph_mode"] == mode


def test_what_was_asked_for_is_not_the_mode() -> None:
    assert "cudagraph_mode" not in facts_of(DUMP, "- Mode: FULL_AND_PIECEWISE")
    fatal = f"ValueError: {NEVER}; please try cudagraph_mode=PIECEWISE, and make sure compilation mode is"
    assert facts_of(fatal) == {}


def test_sizes_and_counts() -> None:
    assert facts_of("Truncating max_cudagraph_capture_size to 72") == {"largest_capture_size": 72}
    facts = facts_of(
        f"Capturing CUDA graphs (PIECEWISE): {BAR.format(19)}",
        "Capturing CUDA graphs (FULL):  45%|████▋     | 5/11 [00:00<00:00, 43.40it/s]",
    )
    assert facts["graphs_captured"] == {"PIECEWISE": 19, "FULL": 11}


@pytest.mark.parametrize(
    ("messages", "captured"),
    [
        (["Capturing dspark CUDA graphs (FULL): 1"], True),
        (["Capturing prefill CUDA graphs (PIECEWISE): 1"], True),
        (["Capturing multi-module MTP CUDA graphs (FULL): 1"], True),
        (["Capturing decoder replay CUDA graphs (FULL): 1"], None),
        (["Capturing 4 encoder CUDA graphs; capture axes"], None),
        (["Using V2 Model Runner", "init engine (profile) took 1.00 s"], False),
        (["Starting to load model m...", "init engine (profile) took 1.00 s"], None),
        (["DSpark draft attention (X) does not support full CUDA graphs; running the draft eagerly"], False),
    ],
)
def test_the_drafters_own_graphs(messages: list[str], captured: bool | None) -> None:
    assert facts_of(*messages, **MTP).get("draft_capture") is captured


def test_no_drafter_no_missing_bar() -> None:
    messages = ("Using V2 Model Runner", "init engine (profile) took 1.00 s")
    assert "draft_capture" not in facts_of(*messages)
    assert "draft_capture" not in facts_of(*messages, spec_method="ngram_gpu")


NVFP4 = "Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['A', 'MARLIN', 'EMULATION']."
HEAD_OLD = "Using TRITON backend for Unquantized MoE"
HEAD = "Using TRITON Unquantized MoE backend out of potential backends: ['TRITON']"
MAIN_FACTS = {"moe_backend": "MARLIN", "moe_weights": "NvFp4"}
HEAD_FACTS = {"draft_moe_backend": "TRITON", "draft_moe_weights": "Unquantized"}


@pytest.mark.parametrize("head", [HEAD_OLD, HEAD])
def test_experts_of_main_model_and_head(head: str) -> None:
    class_name = "Using TritonExperts MoE backend"  # the same again
    workers = (NVFP4, NVFP4, head, class_name, head)
    assert facts_of(*workers, **MTP) == MAIN_FACTS | HEAD_FACTS
    assert facts_of(*workers) == MAIN_FACTS  # without speculation there is no head
    assert facts_of(head, **MTP) == {"moe_backend": "TRITON", "moe_weights": "Unquantized"}


def test_one_backend_for_two_kinds_of_weights() -> None:
    head = "Using MARLIN Unquantized MoE backend out of potential backends: ['MARLIN']"
    facts = facts_of(NVFP4, head, **MTP)
    assert facts == MAIN_FACTS | {"draft_moe_backend": "MARLIN", "draft_moe_weights": "Unquantized"}


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        ("Using FLASHINFER_TRTLLM Fp8 MoE backend out of", ("FLASHINFER_TRTLLM", "Fp8")),
        ("Using 'TRITON' Mxfp4 MoE backend.", ("TRITON", "Mxfp4")),
        ("Using X W4A8 Int8 MoE backend out of", ("X", "W4A8 Int8")),
        ("Using TRITON Unquantized MoE LoRA backend", (None, None)),
        ("Using default MoE config. Performance might be sub-optimal!", (None, None)),
        ("Using configuration from f for MoE layer.", (None, None)),
    ],
)
def test_other_experts(message: str, facts: tuple[str | None, str | None]) -> None:
    found = facts_of(message)
    assert (found.get("moe_backend"), found.get("moe_weights")) == facts


@pytest.mark.parametrize(
    ("message", "backend"),
    [
        ("Using CutlassNvFp4LinearKernel for NVFP4 GEMM", "CutlassNvFp4LinearKernel"),
        ("Using flashinfer-cutlass for NVFP4 GEMM", "flashinfer-cutlass"),
        ("Selected CutlassFP8ScaledMMLinearKernel for Fp8LinearMethod", "CutlassFP8ScaledMMLinearKernel"),
    ],
)
def test_linear_layers(message: str, backend: str) -> None:
    assert facts_of(message) == {"linear_backend": backend}


@pytest.mark.parametrize(
    ("messages", "known", "facts"),
    [
        (["Using AttentionBackendEnum.TRITON_ATTN backend."], {}, {"attention_backend": "TRITON_ATTN"}),
        (["Using TRITON_MLA backend."], {}, {"attention_backend": "TRITON_MLA"}),
        (
            ["Using ROCM_ATTN backend (selected via --attention-backend)."],
            {},
            {"attention_backend": "ROCM_ATTN"},
        ),
        (["Using backend FLASH_ATTN for vit attention"], {}, {}),
        (["Using Flash Attention backend for ViT model."], {}, {}),
        (
            ["Using A_ATTN attention backend out of potential backends: ['A_ATTN']", "Using B_ATTN backend."],
            MTP,
            {"attention_backend": "A_ATTN", "draft_attention_backend": "B_ATTN"},
        ),
        (
            ["Using A_ATTN backend.", "Using B_ATTN backend."],
            {"spec_method": "ngram"},
            {"attention_backend": "A_ATTN"},
        ),
        (
            ["Using FlashAttention version 2", "Using FlashAttention version 3"],
            {},
            {"flash_attention_version": 2},
        ),
    ],
)
def test_attention(messages: list[str], known: dict[str, Any], facts: dict[str, Any]) -> None:
    assert facts_of(*messages, **known) == facts

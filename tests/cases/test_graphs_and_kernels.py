"""Public reports on CUDA graphs, kernels and flags: what the reader says about the lines that they quote."""

from __future__ import annotations

from tests.cases.boots import boot, engine, excerpt, finding, serious, server

SPEC = "speculative_config=SpeculativeConfig(method='{}', model='/d', num_spec_tokens={}), device_config=cuda"
DOWNGRADE = (
    "CUDAGraphMode.FULL_AND_PIECEWISE is not supported with spec-decode for attention backend "
    "FlashInferBackend (support: AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE); "
    "setting cudagraph_mode=PIECEWISE"
)


def test_01_the_downgrade_that_was_read_past_twice() -> None:
    assert " ".join(excerpt("01")[:3]) == DOWNGRADE  # wrapped by its author
    reader = boot(*engine(DOWNGRADE, level="WARNING"), config=SPEC.format("dspark", 3))
    assert serious(reader) == {"cg-spec-piecewise": "costs speed"}
    assert reader.facts["cudagraph_mode"] == "PIECEWISE"
    assert finding(reader, "cg-spec-piecewise").line == 4


def test_02_the_cost_is_a_range_and_the_remedy_another_backend() -> None:
    assert any("FLASH_ATTN" in line for line in excerpt("02"))
    found = finding(boot(*engine(DOWNGRADE), config=SPEC.format("mtp", 2)), "cg-spec-piecewise")
    assert "16 %" in found.cost
    assert "47 %" in found.cost
    assert "--attention-backend FLASH_ATTN" in found.remedy
    assert "49547" in found.source


CAPTURED = (
    "Capturing CUDA graphs (PIECEWISE): 100%|##########| 51/51 [00:02<00:00, 20.0it/s]",
    "Capturing CUDA graphs (FULL): 100%|##########| 35/35 [00:01<00:00, 20.0it/s]",
)


def test_04_a_drafter_without_a_capture_bar_of_its_own() -> None:
    lines = [*engine("Using V2 Model Runner", "Loading drafter model..."), *CAPTURED]
    reader = boot(*lines, config=SPEC.format("dspark", 7))
    (found,) = [f for f in reader.findings if f.severity == "costs speed"]
    assert found.line == 0
    assert "drafter" in found.meaning
    assert "7" in found.meaning + found.cost + found.text


def test_04_a_drafter_with_its_bar_is_silent_and_so_is_the_other_runner() -> None:
    own = "Capturing dspark CUDA graphs (FULL): 100%|##########| 35/35 [00:01<00:00, 20.0it/s]"
    v2 = [*engine("Using V2 Model Runner", "Loading drafter model..."), *CAPTURED]
    assert serious(boot(*v2, own, config=SPEC.format("dspark", 7))) == {}
    v1 = [*engine("Starting to load model /m...", "Loading drafter model..."), *CAPTURED]
    assert serious(boot(*v1, config=SPEC.format("draft_model", 7))) == {}


def test_05_a_draft_length_that_changes_loses_the_graph_and_one_variable_brings_it_back() -> None:
    message = " ".join(excerpt("05"))  # quoted without its time
    assert message.startswith("WARNING [vllm.py:865] Dynamic")
    reader = boot(message, config=SPEC.format("mtp", 3))
    assert serious(reader) == {"cg-dynamic-sd": "costs speed"}
    found = finding(reader, "cg-dynamic-sd")
    assert "VLLM_USE_V2_MODEL_RUNNER" in found.flag + found.remedy
    assert reader.facts["cudagraph_mode"] == "PIECEWISE"


def test_07_a_variable_that_this_version_does_not_know() -> None:
    reader = boot(*server(excerpt("07")[0], level="WARNING"))
    assert serious(reader) == {"env-kernel": "costs speed"}
    assert "VLLM_FLASHINFER_MOE_BACKEND" in finding(reader, "env-kernel").text


def test_08_linear_and_expert_kernels_are_two_facts_and_fp4_is_no_alarm() -> None:
    linear, experts, fp4 = excerpt("08")
    reader = boot(*engine(linear, experts), *engine(fp4, level="WARNING"))
    assert reader.facts["linear_backend"] == "CutlassNvFp4LinearKernel"
    assert reader.facts["moe_backend"] == "MARLIN"
    assert serious(reader) == {}
    assert "Marlin" in finding(reader, "moe-fp4-marlin").meaning


def test_13_a_dense_model_that_is_just_slow_gets_no_warning() -> None:
    assert any("no downgrade" in line for line in excerpt("13"))
    reader = boot(
        *engine(
            "Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'TRITON_ATTN']",
            "Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM",
            "Profiling CUDA graph memory: PIECEWISE=51 (largest=512), FULL=35 (largest=256)",
        ),
        *CAPTURED,
    )
    assert [f for f in reader.findings if f.severity != "harmless"] == []
    assert reader.facts["cudagraph_mode"] == "FULL_AND_PIECEWISE"


def test_16_which_speculation_ran_is_a_fact_to_compare_releases_by() -> None:
    assert any('"method":"eagle3"' in line for line in excerpt("16"))
    args = (
        "{'speculative_config': {'method': 'eagle3', 'model': 'r/s', 'num_speculative_tokens': 3, "
        "'draft_tensor_parallel_size': 1}}"
    )
    facts = boot(version="0.19.1", args=args, config=SPEC.format("eagle3", 3)).facts
    assert (facts["vllm_version"], facts["spec_method"], facts["num_speculative_tokens"]) == (
        "0.19.1",
        "eagle3",
        3,
    )


def test_28_no_such_linear_kernel_for_a_layer() -> None:
    refused, reshape = excerpt("28")
    trace = ["Traceback (most recent call last):", '  File "/v/vllm/model_executor/x.py", line 3, in apply']
    for message, id_, flag in (
        (refused, "lin-missing-err", "--linear-backend"),
        (reshape, "moe-b12x-reshape", "--moe-backend"),
    ):
        lines = engine("EngineCore failed to start.", *trace, message, level="ERROR")
        reader = boot(*lines, ready=False)
        assert finding(reader, id_).severity == "boot fails"
        assert finding(reader, id_).flag == flag
        assert reader.root_cause is not None
        assert message.split(": ", 1)[1] in reader.root_cause


def test_62_the_port_line_of_a_normal_stop_is_harmless() -> None:
    first, second = excerpt("62")
    message = first.split("] ", 1)[1]
    reader = boot("INFO:     Application startup complete.", *server(message, second, level="WARNING"))
    assert finding(reader, "port-used-benign").severity == "harmless"
    assert serious(reader) == {}

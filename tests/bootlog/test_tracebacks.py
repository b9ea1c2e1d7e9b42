"""Tracebacks: prefixed, bare, chained, and what follows an exception's first line."""

from __future__ import annotations

import pytest

from sparktui.bootlog.failure import root_cause
from tests.bootlog.failed import DEAD, ECHO, FRAME, TRACEBACK, failure, lines, record, rule


def test_bare_tracebacks_since_032() -> None:
    stack = (TRACEBACK, FRAME, "zmq.error.ZMQError: inner")
    log = [
        *record("EngineCore pid=2", "EngineCore failed to start.", *stack),
        "Process EngineCore:", *stack,
        TRACEBACK, FRAME, ECHO,
    ]  # fmt: skip
    assert (failure(*log).cause, failure(*log).line.number) == ("ZMQError: inner", 4)
    bare = failure(*log[4:])
    assert (bare.cause, bare.process) == ("ZMQError: inner", "EngineCore")


def test_up_to_030_bare_lines_have_their_process() -> None:
    found = failure(
        "(EngineCore_DP0 pid=93) Process EngineCore_DP0:", f"(EngineCore_DP0 pid=93) {TRACEBACK}",
        f"(EngineCore_DP0 pid=93) {FRAME}", "(EngineCore_DP0 pid=93) ValueError: no",
        *DEAD,
    )  # fmt: skip
    assert (found.cause, found.process) == ("ValueError: no", "EngineCore_DP0")


def test_the_end_of_a_chain_counts() -> None:
    because = "The above exception was the direct cause of the following exception:"
    assert root_cause(
        lines(TRACEBACK, "KeyError: 'x'", "", because, "", TRACEBACK, "ValueError: no such model")
    ) == ("ValueError: no such model")
    assert root_cause(lines(TRACEBACK, "KeyError: 'x'", "", because, "", TRACEBACK, ECHO)) == "KeyError: 'x'"


def test_what_a_subprocess_raised() -> None:
    found = failure(
        TRACEBACK, FRAME, "RuntimeError: Error raised in subprocess:", TRACEBACK, FRAME, "ImportError: no x"
    )
    assert found.cause == "ImportError: no x"


def test_torchs_own_prefix_of_a_rank() -> None:
    assert (
        failure(f"[rank0]: {TRACEBACK}", f"[rank0]: {FRAME}", "[rank0]: ValueError: no").cause
        == "ValueError: no"
    )


def test_bare_lines_of_others_within_a_traceback() -> None:
    found = failure(TRACEBACK, FRAME, "leaked 4 instances!", "  warnings.warn(", "ValueError: the one")
    assert found.cause == "ValueError: the one"


PYDANTIC = "pydantic_core._pydantic_core.ValidationError"


def test_a_key_that_a_release_does_not_know() -> None:
    found = failure(
        f"(APIServer pid=1) {TRACEBACK}",
        f"(APIServer pid=1) {FRAME}",
        f"(APIServer pid=1) {PYDANTIC}: 1 validation error for SpeculativeConfig",
        "(APIServer pid=1) moe_backend",
        "(APIServer pid=1)   Unexpected keyword argument [type=unexpected_keyword_argument, input_value=1]",
        "(APIServer pid=1)     For further information visit https://errors.pydantic.dev/x",
    )
    assert found.cause == (
        "ValidationError: 1 validation error for SpeculativeConfig: moe_backend: Unexpected keyword argument"
    )
    assert (found.line.number, rule(found)) == (5, "pydantic-key")


def test_several_fields_at_once() -> None:
    found = failure(
        TRACEBACK, FRAME, f"{PYDANTIC}: 2 validation errors for CompilationConfig",
        "cudagraph_mode", "  Value error, no mode [type=value_error, input_value='x', input_type=str]",
        "    For further information visit https://errors.pydantic.dev/2.12/v/value_error",
        "pass_config.fuse", "  Input should be a valid boolean [type=bool_type, input_value=3]",
    )  # fmt: skip
    assert found.cause == (
        "ValidationError: 2 validation errors for CompilationConfig: cudagraph_mode: Value error, no mode; "
        "pass_config.fuse: Input should be a valid boolean"
    )


PTX = [f"mov.u32 %r{i}, %tid.x;" for i in range(400)]


def test_ptxas_in_a_traceback() -> None:
    head = "(EngineCore_DP0 pid=93) ERROR 11-30 12:00:20 [core.py:9] "
    texts = (
        TRACEBACK, FRAME, "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error",
        "`ptxas` stderr:", "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", "",
        "Repro command: /triton/backends/nvidia/bin/ptxas -lineinfo -v /tmp/x.ptx -o /tmp/x.ptx.o", *PTX,
    )  # fmt: skip
    found = failure(*(head + text for text in texts), *DEAD)
    assert found.cause == "ptxas fatal: Value 'sm_121a' is not defined for option 'gpu-name'"
    assert (found.exception, found.line.number, rule(found)) == ("PTXASError", 5, "ptxas")


def test_ptxas_alone() -> None:
    found = failure(
        "`ptxas` stderr:", "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", *PTX
    )
    assert found.cause.endswith("Value 'sm_121a' is not defined for option 'gpu-name'")


@pytest.mark.parametrize("sign", ["FAILED: [code=137] fused_moe.cuda.o", "Killed"])
def test_a_compiler_that_was_killed(sign: str) -> None:
    found = failure(
        *record(
            "EngineCore pid=2", TRACEBACK, FRAME, "RuntimeError: Ninja build failed. Ninja output:",
            "ninja: Entering directory `/c/cached_ops'", sign, "/usr/local/cuda/bin/nvcc -c x.cu",
            "ninja: build stopped: subcommand failed.",
        )
    )  # fmt: skip
    assert found.cause.startswith("RuntimeError: Ninja build failed: a compiler was killed")
    assert "host ran out of memory" in found.cause
    assert rule(found) == "jit-build"


def test_what_does_not_compile() -> None:
    found = failure(
        *record(
            "EngineCore pid=2", TRACEBACK, FRAME, "RuntimeError: Ninja build failed. Ninja output:",
            "FAILED: [code=1] csrc_renorm.cuda.o", "nvcc fatal   : Unknown option '--compress-mode=size'",
        )
    )  # fmt: skip
    assert (
        found.cause == "RuntimeError: Ninja build failed: nvcc fatal : Unknown option '--compress-mode=size'"
    )


def test_an_error_that_names_no_culprit_is_told_with_its_place() -> None:
    inner = (
        '  File "/opt/vllm/site-packages/vllm/model_executor/layers/oracle/nvfp4.py", line 412, in convert'
    )
    below = '  File "/opt/vllm/site-packages/torch/_tensor.py", line 3, in reshape'
    text = "RuntimeError: shape '[344064, 116]' is invalid for input of size 41287680"
    found = failure(*record("EngineCore pid=2", TRACEBACK, FRAME, inner, below, text))
    place = "vllm/model_executor/layers/oracle/nvfp4.py:412 in convert"
    assert found.frame == place
    assert found.cause == f"{text} ({place})"
    assert rule(found) == "moe-b12x-reshape"
    assert (
        failure(TRACEBACK, FRAME, "AssertionError").cause
        == "AssertionError (vllm/v1/engine/core.py:9 in run)"
    )


def test_flashinfers_frames_count() -> None:
    frame = '  File "/usr/lib/python3.12/dist-packages/flashinfer/jit/core.py", line 7, in build'
    assert failure(TRACEBACK, FRAME, frame, "KeyError: 'x'").frame == "flashinfer/jit/core.py:7 in build"


def test_a_message_that_begins_in_the_next_line() -> None:
    found = failure(TRACEBACK, FRAME, "ValueError: ", "  No CUDA GPUs are available")
    assert found.cause == "ValueError: No CUDA GPUs are available"


def test_a_cause_is_one_line_of_bounded_length() -> None:
    cause = failure(TRACEBACK, FRAME, "ValueError: " + "long " * 400).cause
    assert len(cause) <= 500
    assert "\n" not in cause

"""Public reports of boots that failed: the first real error, and what to do."""

from __future__ import annotations

import pytest

from tests.cases.boots import boot, engine, excerpt, finding, read, serious, server

TRACE = ("Traceback (most recent call last):", '  File "/v/vllm/v1/engine/core.py", line 9, in run')
SECONDARY = (
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. "
    "Failed core proc(s): {'EngineCore': 1}"
)


def failed(*messages: str) -> list[str]:
    """The engine's traceback that ends in ``messages``, and what the API server makes of it."""
    lines = engine("EngineCore failed to start.", *TRACE, *messages, level="ERROR")
    return [*lines, f"(APIServer pid=1) {TRACE[0]}", f"(APIServer pid=1) {TRACE[1]}", SECONDARY]


def test_23_memory_that_is_not_free_may_be_page_cache() -> None:
    said = excerpt("23")[0].replace("device ...", "device cuda:0 (80.1/121.69 GiB)")
    reader = boot(*failed(f"{said} (0.9, 109.52 GiB)."), ready=False)
    found = finding(reader, "mem-free-less")
    assert found.severity == "boot fails"
    assert "page cache" in found.meaning + found.remedy
    assert "drop_caches" in found.remedy
    assert reader.root_cause is not None
    assert reader.root_cause.startswith("ValueError: Free memory on device cuda:0")


def test_25_the_largest_share_that_passes_is_worked_out() -> None:
    assert any("0.82-0.83 works" in line for line in excerpt("25"))
    message = (
        "ValueError: Free memory on device cuda:0 (102.2/121.69 GiB) on startup is less than desired GPU "
        "memory utilization (0.87, 105.87 GiB). Decrease GPU memory utilization or reduce GPU memory used."
    )
    assert "0.83" in finding(boot(*failed(message), ready=False), "mem-free-less").remedy


def test_26_the_number_of_sequences_that_fits_is_in_the_remedy() -> None:
    reader = boot(*failed(*excerpt("26")), ready=False)
    found = finding(reader, "cg-mamba-blocks")
    assert found.severity == "boot fails"
    assert "856" in found.remedy
    assert reader.root_cause is not None
    assert "exceeds available Mamba cache blocks (856)" in reader.root_cause


def test_29_a_flag_that_is_not_known() -> None:
    usage, error = excerpt("29")[:2]
    reader = read([usage, error])
    assert serious(reader) == {"argparse": "boot fails"}
    assert reader.root_cause == "error: unrecognized arguments: --enable-reasoning"
    assert not reader.ready


def test_31_the_fatal_line_of_ptxas_and_not_its_dump() -> None:
    lines = [line.replace("  ... (hundreds of PTX lines)", "") for line in excerpt("31")]
    dump = [f"(EngineCore_DP0 pid=93) mov.u32 %r{i}, %tid.x;" for i in range(300)]
    reader = boot(*lines, *dump, SECONDARY, version="0.11.2", ready=False)
    found = finding(reader, "ptxas")
    assert found.severity == "boot fails"
    assert "TRITON_PTXAS_PATH" in found.remedy + found.flag
    assert reader.root_cause is not None
    assert "Value 'sm_121a' is not defined" in reader.root_cause


def test_32_an_engine_that_died_without_a_word() -> None:
    (line,) = excerpt("32")
    reader = boot(line, ready=False)
    assert reader.root_cause is not None
    assert "See root cause above" not in reader.root_cause
    assert "kernel log" in reader.root_cause


def test_34_startup_complete_and_then_no_port() -> None:
    reader = boot(*excerpt("34"), ready=False)
    assert not reader.ready
    assert finding(reader, "port-bind").severity == "boot fails"
    assert reader.root_cause is not None
    assert "Errno 98" in reader.root_cause


def test_35_kernels_compiled_until_the_host_ran_out_of_memory() -> None:
    stopped = excerpt("35")[0].split("   #")[0]
    reader = boot(*failed(f"RuntimeError: Ninja build failed. Ninja output: {stopped}", stopped), ready=False)
    (found,) = [f for f in reader.findings if "MAX_JOBS" in f.remedy + f.flag and f.severity == "boot fails"]
    assert "host" in found.meaning


def test_40_an_illegal_access_said_by_every_worker_is_one_finding() -> None:
    assert any("cudaErrorIllegalAddress" in line for line in excerpt("40"))
    error = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    lines = [
        f"(Worker_TP{rank} pid={250 + rank}) ERROR 05-13 10:46:43 [multiproc_executor.py:962] {message}"
        for message in (*TRACE, error)
        for rank in range(4)
    ]
    reader = boot(*lines, version="0.20.0")
    found = finding(reader, "cuda-ima")
    assert found.count == 4
    assert "speculation off" in found.remedy
    assert reader.root_cause is not None
    assert "illegal memory access" in reader.root_cause


def test_43_and_44_a_boot_that_finds_its_memory_held_by_an_earlier_server() -> None:
    assert any("survive" in line for line in excerpt("43"))
    assert any("orphaned" in line for line in excerpt("44"))
    message = (
        "ValueError: Free memory on device cuda:0 (17.3/121.69 GiB) on startup is less than desired GPU "
        "memory utilization (0.85, 103.44 GiB). Decrease GPU memory utilization or reduce GPU memory used."
    )
    found = finding(boot(*failed(message), ready=False), "mem-free-less")
    assert "earlier" in found.remedy


@pytest.mark.parametrize("wording", ["EngineCore", "EngineCore_DP0", "Worker_TP0"])
def test_a_server_line_is_never_the_cause_when_a_deeper_process_spoke(wording: str) -> None:
    deep = [
        f"({wording} pid=7) ERROR 11-30 12:00:20 [core.py:1] {m}" for m in (*TRACE, "ValueError: the cause")
    ]
    reader = boot(*deep, SECONDARY, *server("Traceback (most recent call last):", level="ERROR"), ready=False)
    assert reader.root_cause == "ValueError: the cause"

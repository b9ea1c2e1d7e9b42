from __future__ import annotations

import pytest

from sparktui.bootlog.failure import root_cause
from sparktui.bootlog.lines import Line, parse_line
from tests.bootlog.logs import log_lines


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("0.32.0-cpu/fail_badflag.log", "error: unrecognized arguments: --no-such-flag 3"),
        (
            "0.32.0-cpu/fail_moe_backend_bogus.log",
            "error: argument --moe-backend: invalid choice: 'bogus' (choose",
        ),
        ("0.32.0-cpu/fail_portinuse2.log", "OSError: [Errno 98] Address already in use"),
        ("0.32.0-cpu/fail_badmodel.log", "HFValidationError: Repo id must be in the form"),
        ("0.32.0-cpu/fail_attn_backend.log", "ValueError: Unknown attention backend: 'BOGUS'."),
        ("0.32.0-cpu/fail_suffix.log", "ImportError: Arctic Inference is required for suffix decoding."),
        (
            "0.32.0-cpu/fail_maxlen.log",
            "ValidationError: 1 validation error for ModelConfig: Value error, User-specified",
        ),
        ("0.24.0-h200/boot_fail_missing_flashinfer.log", "ModuleNotFoundError: No module named 'flashinfer'"),
        ("0.32.0-cpu/runtime-crash-0.32.0-cpu.log", "RuntimeError: Unsupported CPU attention configuration"),
    ],
)
def test_recorded_failures(log: str, cause: str) -> None:
    found = root_cause(log_lines(log))
    assert found is not None
    assert found.startswith(cause)


@pytest.mark.parametrize("log", ["0.32.0-cpu/sig_sigint_boot.log", "0.24.0-h200/boot_off.log"])
def test_a_stop_and_a_healthy_boot_have_no_cause(log: str) -> None:
    assert root_cause(log_lines(log)) is None


def lines(*texts: str) -> list[Line]:
    return [parse_line(number, text) for number, text in enumerate(texts, 1)]


TRACEBACK = "Traceback (most recent call last):"


def test_the_deepest_process_knows() -> None:
    log = lines(
        f"(EngineCore pid=2) {TRACEBACK}",
        f"(Worker_TP0 pid=3) {TRACEBACK}",
        '(Worker_TP0 pid=3)   File "x", line 1',
        "(EngineCore pid=2) Exception: engine",
        "(Worker_TP0 pid=3) torch.OutOfMemoryError: CUDA out of memory. Tried",
        f"(APIServer pid=1) {TRACEBACK}",
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.",
    )
    assert root_cause(log) == "OutOfMemoryError: CUDA out of memory. Tried"


def test_bare_traceback_of_a_named_process() -> None:
    log = lines(TRACEBACK, "ValueError: outer", "Process EngineCore:", TRACEBACK, "zmq.error.ZMQError: inner")
    assert root_cause(log) == "ZMQError: inner"


def test_the_end_of_a_chain_counts() -> None:
    log = lines(
        TRACEBACK,
        "KeyError: 'x'",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        TRACEBACK,
        "ValueError: no such model",
    )
    assert root_cause(log) == "ValueError: no such model"


def test_a_killed_worker_without_traceback() -> None:
    log = lines(
        "(EngineCore pid=2) ERROR 11-30 17:47:10 [utils.py:1] "
        "Worker proc VllmWorker-0 died unexpectedly (exit code: -9)",
        f"(APIServer pid=1) {TRACEBACK}",
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.",
    )
    assert root_cause(log) == "Worker proc VllmWorker-0 died unexpectedly (exit code: -9)"


def test_only_the_echo_is_left() -> None:
    echo = "RuntimeError: Engine core initialization failed. See root cause above."
    assert root_cause(lines(TRACEBACK, echo)) == echo
    assert root_cause(lines("ERROR 11-30 17:47:10 [x.py:1] bad thing")) == "bad thing"
    assert root_cause([]) is None

from __future__ import annotations

import pytest

from sparktui.bootlog.failure import find_failure, root_cause
from tests.bootlog.failed import DEAD, ECHO, FRAME, TRACEBACK, failure, lines, record, rule
from tests.bootlog.logs import LOGS, log_lines

RECORDED = {
    "0.32.0-cpu/fail_badflag.log": (5, "argparse", "error: unrecognized arguments: --no-such-flag 3"),
    "0.32.0-cpu/fail_moe_backend_bogus.log": (
        3,
        "argparse",
        "error: argument --moe-backend: invalid choice: 'bogus' (choose",
    ),
    "0.32.0-cpu/fail_portinuse2.log": (38, "port-bind", "OSError: [Errno 98] Address already in use"),
    "0.32.0-cpu/fail_badmodel.log": (52, "hf-repoid", "HFValidationError: Repo id must be in the form"),
    "0.32.0-cpu/fail_attn_backend.log": (
        53,
        "attn-unknown",
        "ValueError: Unknown attention backend: 'BOGUS'.",
    ),
    "0.32.0-cpu/fail_suffix.log": (
        57,
        "spec-suffix-missing",
        "ImportError: Arctic Inference is required for suffix decoding.",
    ),
    "0.32.0-cpu/fail_maxlen.log": (
        54,
        "mem-maxlen-user",
        "ValidationError: 1 validation error for ModelConfig: Value error, User-specified max_model_len (",
    ),
    "0.24.0-h200/boot_fail_missing_flashinfer.log": (
        55,
        "attn-fi-missing",
        "ModuleNotFoundError: No module named 'flashinfer'",
    ),
    "0.32.0-cpu/runtime-crash-0.32.0-cpu.log": (
        157,
        None,
        "RuntimeError: Unsupported CPU attention configuration: head_dim=16",
    ),
    # its engine was killed by SIGKILL while it served
    "0.32.0-cpu/boot_off_pipe.log": (449, "dead-error", "the engine was killed or died without a word"),
}


@pytest.mark.parametrize("log", RECORDED)
def test_recorded_failures(log: str) -> None:
    number, id_, cause = RECORDED[log]
    found = find_failure(log_lines(log))
    assert found is not None
    assert found.cause.startswith(cause)
    assert (found.line.number, rule(found)) == (number, id_)
    assert root_cause(log_lines(log)) == found.cause


def test_the_other_recorded_logs_tell_of_no_error() -> None:
    names = [f"{path.parent.name}/{path.name}" for f in ("0.24.0-h200", "0.27.1-cpu", "0.32.0-cpu")
             for path in (LOGS / f).glob("*.log")]  # fmt: skip
    assert {name for name in names if root_cause(log_lines(name)) is not None} == set(RECORDED)
    assert len(names) > 30


def test_the_place_of_a_recorded_failure() -> None:
    found = find_failure(log_lines("0.32.0-cpu/runtime-crash-0.32.0-cpu.log"))
    assert found is not None
    assert (found.process, found.exception) == ("Worker", "RuntimeError")
    assert found.frame == "vllm/_custom_ops.py:3865 in cpu_attn_get_scheduler_metadata"
    found = find_failure(log_lines("0.32.0-cpu/fail_badmodel.log"))
    assert found is not None
    assert (
        found.frame == "vllm/transformers_utils/repo_utils.py:301 in get_model_path"
    )  # not huggingface_hub's


def test_the_deepest_of_those_that_fail_together() -> None:
    found = failure(
        f"(EngineCore pid=2) {TRACEBACK}",
        f"(Worker_TP0 pid=3) {TRACEBACK}",
        f"(Worker_TP0 pid=3) {FRAME}",
        "(EngineCore pid=2) Exception: engine",
        "(Worker_TP0 pid=3) torch.OutOfMemoryError: CUDA out of memory. Tried",
        *DEAD,
    )
    assert found.cause == "OutOfMemoryError: CUDA out of memory. Tried"
    assert (found.process, found.line.number) == ("Worker_TP0", 5)
    assert rule(found) == "cuda-oom"


def test_a_worker_that_falls_with_its_engine_is_not_the_cause() -> None:
    found = failure(
        *record(
            "EngineCore pid=2",
            "EngineCore failed to start.",
            TRACEBACK,
            FRAME,
            "ValueError: No available memory",
        ),
        *record(
            "Worker_TP0 pid=3", TRACEBACK, FRAME, "RuntimeError: cancelled", source="multiproc_executor.py:1"
        ),
        *DEAD,
    )
    assert found.cause == "ValueError: No available memory"


def test_several_workers_that_say_the_same_at_once() -> None:
    said = (TRACEBACK, FRAME, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
            "Search for `cudaErrorIllegalAddress' in the documentation")  # fmt: skip
    texts = [record(f"Worker_TP{rank} pid={250 + rank}", text)[0] for text in said for rank in range(4)]
    echo = "RuntimeError: Worker failed with error 'CUDA error', please check the stack trace above"
    found = failure(*texts, *record("EngineCore pid=2", TRACEBACK, FRAME, echo))
    assert found.cause == "AcceleratorError: CUDA error: an illegal memory access was encountered"
    assert (found.process, found.line.number) == ("Worker_TP0", 9)


def test_what_was_survived_is_not_the_cause() -> None:
    later = record(
        "EngineCore pid=2", "Loading weights", "Model loading took", "Dynamo", "more", level="INFO"
    )
    survived = record("EngineCore pid=2", TRACEBACK, FRAME, "ImportError: a plugin", source="plugins.py:1")
    fatal = record("EngineCore pid=2", TRACEBACK, FRAME, "ValueError: the cause")
    assert failure(*survived, *later, *fatal).cause == "ValueError: the cause"
    assert find_failure(lines(*survived, *later)) is None
    assert failure(*survived).cause == "ImportError: a plugin"
    assert failure(*survived, *later, *DEAD).cause == "ImportError: a plugin"


def test_a_thread_that_dies_is_survived() -> None:
    usage = ("Exception in thread Thread-5 (_report_usage_worker):", TRACEBACK, FRAME, "OSError: no net")
    assert find_failure(lines(*usage)) is None
    assert failure(*usage, TRACEBACK, FRAME, "ValueError: the cause").cause == "ValueError: the cause"


def test_a_stop_is_no_error() -> None:
    stop = record("APIServer pid=1", "[shutdown] API server: shutdown triggered", level="INFO")
    dead = record("APIServer pid=1", TRACEBACK, FRAME, "EngineDeadError: EngineCore encountered an issue.")
    assert root_cause(lines(*stop, *dead)) is None
    assert "killed" in str(root_cause(lines(*dead, *stop)))
    assert root_cause(lines(TRACEBACK, ECHO, TRACEBACK, "KeyboardInterrupt")) is None


@pytest.mark.parametrize(
    ("processes", "cause"),
    [
        (
            "{}",
            "the engine was killed or died without a word (Failed core proc(s): {}): look into the",
        ),
        (
            "{'EngineCore': -9}",
            "EngineCore was killed by signal 9 and left no word: look into the kernel log",
        ),
        ("{'EngineCore_DP1': 1}", "EngineCore_DP1 ended with exit code 1 and left no error in the log"),
    ],
)
def test_an_engine_without_a_word(processes: str, cause: str) -> None:
    echo = f"(APIServer pid=1) {ECHO.replace('{}', processes)}"
    for log in ([echo], [f"(APIServer pid=1) {TRACEBACK}", f"(APIServer pid=1) {FRAME}", echo]):
        found = failure(*log)
        assert found.cause.startswith(cause)
        assert rule(found) == "core-init-fail"


def test_a_killed_worker_without_a_traceback() -> None:
    found = failure(
        *record("EngineCore pid=2", "Worker proc VllmWorker-0 died unexpectedly (exit code: -9)"),
        *DEAD,
    )
    assert found.cause == "Worker proc VllmWorker-0 died unexpectedly (exit code: -9)"
    assert rule(found) == "worker-died"


def test_a_workers_error_in_its_engines_words() -> None:
    text = "RuntimeError: Worker failed with error 'CUDA out of memory. Tried', please check the stack trace"
    assert failure(*record("EngineCore pid=2", TRACEBACK, FRAME, text)).cause == (
        "RuntimeError: CUDA out of memory. Tried"
    )


def test_a_server_that_the_shell_saw_killed() -> None:
    found = failure(
        "INFO 11-30 12:00:20 [x.py:1] loading", "./serve.sh: line 4: 77 Killed                  vllm serve m"
    )
    assert found.cause.startswith("a process was killed from outside: look into the kernel log")
    assert rule(found) == "host-killed"


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        (
            "ValueError: --linear-backend=flashinfer_b12x was requested but no 'flashinfer_b12x' kernel "
            "exists for this layer type.",
            "lin-missing-err",
        ),
        (
            "ValueError: moe_backend='marlin' is not supported for unquantized MoE. Expected one of [",
            "moe-conflict",
        ),
        (
            "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (856). Each decode",
            "cg-mamba-blocks",
        ),
        (
            "ValueError: Free memory on device cuda:0 (80.1/121.69 GiB) on startup is less than desired GPU "
            "memory utilization (0.9, 109.52 GiB).",
            "mem-free-less",
        ),
        ("OSError: You are trying to access a gated repo.", "hf-gated"),
        ("huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate file", "hf-offline"),
        ("ValueError: No available memory for the cache blocks. Try increasing", "mem-none"),
        (
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            "cuda-nokernel",
        ),
        ("RuntimeError: NCCL error: unhandled system error", "nccl-err"),
    ],
)
def test_causes_and_the_rules_that_explain_them(text: str, id_: str) -> None:
    found = failure(
        *record("EngineCore pid=2", TRACEBACK, FRAME, text), f"(APIServer pid=1) {TRACEBACK}", ECHO
    )
    assert found.cause == text.removeprefix("huggingface_hub.errors.")
    assert rule(found) == id_


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            'docker: Error response from daemon: Conflict. The container name "/vllm" is already in use.',
            'Error response from daemon: Conflict. The container name "/vllm" is already in use',
        ),
        ("docker: invalid reference format.", "docker: invalid reference format."),
        ("./serve.sh: line 3: vllm: command not found", "./serve.sh: line 3: vllm: command not found"),
        ("sh: 1: vllm: not found", "sh: 1: vllm: not found"),
        ("env: 'vllm': No such file or directory", "env: 'vllm': No such file or directory"),
        ("/usr/bin/python3: No module named vllm", "/usr/bin/python3: No module named vllm"),
        ("api_server.py: error: unrecognized arguments: --x", "error: unrecognized arguments: --x"),
        ("Fatal Python error: Segmentation fault", "Fatal Python error: Segmentation fault"),
        ("  what():  CUDA error: out of memory", "CUDA error: out of memory"),
        (
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): in use",
            "[Errno 98] error while attempting to bind on address",
        ),
    ],
)
def test_last_words_without_a_traceback(line: str, cause: str) -> None:
    assert failure("Starting the server", line, "See 'docker run --help'.").cause.startswith(cause)


def test_a_wrappers_grumbling_is_no_cause_once_vllm_has_started() -> None:
    grumbling = "cat: /etc/vllm.conf: No such file or directory"
    assert failure(grumbling).cause == grumbling
    assert find_failure(lines(grumbling, "INFO 11-30 12:00:20 [x.py:1] loading")) is None


def test_an_error_without_anything_else() -> None:
    assert root_cause(lines("ERROR 11-30 17:47:10 [x.py:1] bad thing")) == "bad thing"
    assert root_cause(lines("WARNING 11-30 17:47:10 [x.py:1] odd thing")) is None
    assert root_cause([]) is None

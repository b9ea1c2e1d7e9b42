from __future__ import annotations

import time

import pytest

from sparktui.bootlog.reader import BootReader
from sparktui.schema.bootlog import EngineStats
from tests.bootlog.logs import log_bytes, read_log

ABOVE_NOTE = {"boot fails", "wrong results possible", "costs speed", "costs memory"}
EAGER = (
    b"(APIServer pid=1) WARNING 11-30 17:40:01 [vllm.py:1] "
    b"Enforce eager set, disabling torch.compile and CUDAGraphs.\n"
)
JIT = (
    b"(EngineCore pid=2) WARNING 11-30 18:17:18 [jit_monitor.py:1] "
    b"Triton kernel JIT compilation during inference: k%d.\n"
)
STATS = (
    b"(APIServer pid=1) INFO 05-08 16:26:39 [loggers.py:271] Engine 000: "
    b"Avg prompt throughput: 5.0 tokens/s, Avg generation throughput: 124.5 tokens/s, "
    b"Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 7.4%, "
    b"Prefix cache hit rate: 0.0%\n"
)
READY = b"INFO:     Application startup complete.\n"


def engine(device: str) -> bytes:
    head = "(EngineCore pid=2) INFO 11-30 17:40:02 [core.py:1] "
    return f"{head}Initializing a V1 LLM engine (v1) with config: device_config={device},\n".encode()


def serious(log: str) -> dict[str, int]:
    return {f.id: f.line for f in read_log(log).findings if f.severity in ABOVE_NOTE}


def test_the_downgrade_that_halves_decode() -> None:
    assert serious("0.24.0-h200/boot_fi_ngram.log") == {"spec-async-off": 12, "cg-spec-piecewise": 34}
    finding = next(
        f for f in read_log("0.24.0-h200/boot_fi_ngram.log").findings if f.id == "cg-spec-piecewise"
    )
    assert finding.severity == "costs speed"
    assert finding.text.endswith("setting cudagraph_mode=PIECEWISE")
    assert "--attention-backend" in finding.remedy


def test_the_same_speculation_without_it() -> None:
    assert serious("0.24.0-h200/boot_fa_ngram.log") == {"spec-async-off": 12}


@pytest.mark.parametrize(
    "log", ["0.24.0-h200/boot_off.log", "0.27.1-cpu/boot_off.log", "0.32.0-cpu/boot_off_noconflict_pipe.log"]
)
def test_healthy_boots_have_only_notes(log: str) -> None:
    reader = read_log(log)
    assert serious(log) == {}
    assert reader.ready
    assert "gen-config" in {finding.id for finding in reader.findings}


def test_what_is_true_of_cpu_speculation() -> None:
    assert serious("0.32.0-cpu/boot_draft_pipe.log") == {"cpu-spec-omp": 38}


@pytest.mark.parametrize(
    ("log", "rule", "number"),
    [
        ("0.32.0-cpu/fail_badflag.log", "argparse", 5),
        ("0.32.0-cpu/fail_moe_backend_bogus.log", "argparse", 3),
        ("0.32.0-cpu/fail_badmodel.log", "hf-repoid", 52),
        ("0.32.0-cpu/fail_portinuse2.log", "port-bind", 38),
        ("0.32.0-cpu/fail_maxlen.log", "mem-maxlen-user", 54),
        ("0.32.0-cpu/fail_attn_backend.log", "attn-unknown", 53),
        ("0.32.0-cpu/fail_suffix.log", "spec-suffix-missing", 57),
        ("0.24.0-h200/boot_fail_missing_flashinfer.log", "attn-fi-missing", 55),
    ],
)
def test_failed_boots(log: str, rule: str, number: int) -> None:
    reader = read_log(log)
    assert not reader.ready
    assert {f.id: f.line for f in reader.findings if f.severity == "boot fails"}[rule] == number


def test_a_crash_while_serving() -> None:
    reader = read_log("0.32.0-cpu/runtime-crash-0.32.0-cpu.log")
    assert reader.ready
    assert {"core-fatal", "force-kill"} <= {finding.id for finding in reader.findings}


def test_eager_waits_for_the_device() -> None:
    reader = BootReader(0.0)
    reader.feed(EAGER, 1.0)
    assert [f.severity for f in reader.findings] == ["costs speed"]
    assert reader.new_findings() == ()
    reader.feed(engine("cpu"), 2.0)
    assert [(f.id, f.severity) for f in reader.new_findings()] == [("cg-eager-flag", "note")]
    assert [f.severity for f in reader.findings] == ["note"]


@pytest.mark.parametrize("then", [engine("cuda"), READY])
def test_eager_on_a_gpu_costs(then: bytes) -> None:
    reader = BootReader(0.0)
    reader.feed(EAGER + then, 1.0)
    assert [(f.id, f.severity) for f in reader.new_findings()] == [("cg-eager-flag", "costs speed")]
    assert reader.new_findings() == ()


def test_eager_when_the_log_ends_early() -> None:
    reader = BootReader(0.0)
    reader.feed(EAGER[:-1], 1.0)
    assert [line.level for line in reader.flush(2.0)] == ["WARNING"]
    assert [f.severity for f in reader.new_findings()] == ["costs speed"]


def test_findings_go_on_and_repeats_collapse() -> None:
    reader = BootReader(0.0)
    reader.feed(READY, 1.0)
    reader.feed(JIT % 1 + JIT % 2 + JIT.replace(b"18:17:18", b"18:17:19") % 1, 2.0)
    assert reader.jit_lines == 3
    assert [(f.id, f.line, f.count) for f in reader.findings] == [("jit-hit", 2, 3)]
    assert len(reader.new_findings()) == 1
    assert reader.new_findings() == ()


def test_findings_are_bounded_for_each_rule() -> None:
    reader = BootReader(0.0)
    unknown = b"Unknown vLLM environment variable detected: VLLM_X%d\n"
    reader.feed(b"".join(unknown % number for number in range(2000)), 1.0)
    reader.feed(b"EngineCore encountered a fatal error.\n", 2.0)
    assert len(reader.findings) == 101
    assert reader.findings[-1].id == "core-fatal"


def test_every_kind_of_kernel_that_compiles_counts() -> None:
    reader = BootReader(0.0)
    for number in range(2000):
        reader.feed(JIT % number, 1.0)
    reader.feed(JIT.replace(b"Triton kernel", b"CuTeDSL") % 1, 2.0)
    assert reader.jit_lines == 2001


def test_what_was_asked_for_and_not_taken_is_told_when_it_serves() -> None:
    asked = ["vllm", "serve", "m", "--max-num-seqs", "64", "--attention-backend", "TRITON_ATTN"]
    taken = b"INFO 11-30 17:40:01 [a.py:1] non-default args: {'model': 'm', 'max_num_seqs': 32}\n"
    reader = BootReader(0.0, argv=asked)
    reader.feed(taken, 1.0)
    assert reader.findings == ()
    reader.feed(READY, 2.0)
    found = {f.flag: (f.severity, f.line) for f in reader.new_findings()}
    assert found == {"--max-num-seqs": ("note", 0), "--attention-backend": ("costs speed", 0)}


def test_stats_are_handed_over_once() -> None:
    reader = BootReader(0.0)
    reader.feed(READY + STATS, 1.0)
    (stats,) = reader.take_stats()
    assert stats == EngineStats(5.0, 124.5, 1, 0, kv_usage=0.074, prefix_hit_rate=0.0, engine="0")
    assert reader.take_stats() == ()


def test_an_expected_line_counts_only_until_the_server_serves() -> None:
    reader = BootReader(0.0, expect=("MARLIN", "TRITON"))
    reader.feed(b"Using 'MARLIN' NvFp4 MoE backend\n", 1.0)
    assert [(e.text, e.met, e.line) for e in reader.expected] == [("MARLIN", True, 1), ("TRITON", None, 0)]
    reader.feed(READY + b"a user asked for TRITON\n", 2.0)
    assert [(e.text, e.met) for e in reader.expected] == [("MARLIN", True), ("TRITON", False)]


def test_facts_settle_when_ready() -> None:
    reader = BootReader(0.0)
    reader.feed(READY + b"GPU KV cache size: 1 tokens\n", 1.0)
    assert reader.facts == {}


def test_a_bar_shows_progress_before_its_newline() -> None:
    reader = BootReader(50.0)
    reader.feed(b"GPU KV cache size: 1 tokens\n", 55.0)
    reader.feed(b"(EngineCore pid=2) \rCapturing CUDA graphs (FULL):  40%|####  | 4/10 [00:00<00:00]", 57.0)
    assert [(p.name, p.start_s, p.progress) for p in reader.phases[2:]] == [("capture", 7.0, 0.4)]
    assert reader.partial.startswith("Capturing CUDA graphs (FULL):  40%")


def test_without_a_start_the_first_bytes_are_it() -> None:
    reader = BootReader()
    reader.feed(b"x\n", 1000.0)
    reader.mark_ready(1004.5)
    assert reader.ready
    assert reader.phases[-1].start_s == 4.5


def test_chunks_change_no_finding() -> None:
    log = "0.24.0-h200/boot_fi_ngram.log"
    whole = BootReader(0.0)
    whole.feed(log_bytes(log), 1.0)
    whole.flush(1.0)
    pieces = read_log(log, chunk=61)
    assert pieces.findings == whole.findings
    assert pieces.facts == whole.facts
    assert [p.name for p in pieces.phases] == [p.name for p in whole.phases]


@pytest.mark.parametrize(
    "odd",
    [
        "Model loading took 1.2.3 GiB memory and 1.2 seconds",
        "GPU KV cache size: , tokens",
        "torch.compile takes . s in total",
        "Maximum concurrency for 8,192 tokens per request: 1.2.3x",
        "Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s, Running: "
        + "9" * 5000
        + " reqs, Waiting: 0 reqs",
    ],
)
def test_a_number_that_is_none_costs_its_line_and_nothing_else(odd: str) -> None:
    reader = BootReader(0.0)
    reader.feed(f"Using V2 Model Runner\n{odd}\n".encode() + READY, 1.0)
    reader.feed(f"{odd}\n".encode() + STATS, 2.0)
    assert reader.ready
    assert reader.facts["model_runner"] == "V2"
    assert len(reader.take_stats()) == 1


def test_what_users_send_changes_nothing() -> None:
    reader = BootReader(0.0)
    said = (
        "INFO 11-30 18:17:18 [logger.py:1] Received request c-1: prompt: 'Triton kernel JIT compilation {}'\n"
    )
    reader.feed(READY + said.format("during inference: k").encode(), 1.0)
    assert reader.jit_lines == 0
    assert reader.findings == ()


def test_an_error_that_a_serving_server_survives_is_a_note() -> None:
    error = b"requests.exceptions.HTTPError: 404 Client Error: Not Found for url: http://img/cat.png\n"
    booting, serving = BootReader(0.0), BootReader(0.0)
    booting.feed(error, 1.0)
    serving.feed(READY + error, 1.0)
    assert [f.severity for f in booting.findings] == ["boot fails"]
    assert [f.severity for f in serving.findings] == ["note"]
    serving.feed(b"EngineCore encountered a fatal error.\n", 2.0)
    assert serving.findings[-1].severity == "boot fails"


@pytest.mark.parametrize("piece", ["1", "{", ": {", "Failed core proc(s): {", "A", "overridden by ", " "])
def test_a_line_of_one_piece_over_and_over_is_read_in_no_time(piece: str) -> None:
    heads = ("", "Default sampling parameters have been overridden by ", "Failed core proc(s): {")
    reader = BootReader(0.0)
    begun = time.process_time()
    for head in heads:
        reader.feed(f"{head}{piece * (20_000 // len(piece))}\n".encode(), 1.0)
    assert reader.root_cause is None or reader.root_cause
    assert time.process_time() - begun < 2.0  # quadratic patterns took minutes

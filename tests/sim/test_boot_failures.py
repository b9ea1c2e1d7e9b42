"""Boots that fail: the published texts, by flag and by --sim-fail, as sparktui's reader explains them."""

from __future__ import annotations

import io

import pytest

from sparktui.bootlog.failure import root_cause
from sparktui.bootlog.reader import BootReader
from sparktui.sim import failures
from sparktui.sim.arguments import BOOT_FAILURES
from sparktui.sim.boot import failing
from sparktui.sim.boot.logfile import Log
from sparktui.sim.release import Release
from tests.sim.boots import boot

MTP = ("--speculative-config", '{"method": "nemotron_h_mtp", "num_speculative_tokens": 2}')
VERSIONS = ("0.17.1", "0.19.1", "0.24.0", "0.27.1", "0.30.0", "0.32.0")
CAUSES = {
    "engine-oom": ("OutOfMemoryError: CUDA out of memory.", "cuda-oom"),
    "b12x-linear": (
        "ValueError: --linear-backend=flashinfer_b12x was requested but no 'flashinfer_b12x' kernel exists "
        "for this layer type",
        "lin-missing-err",
    ),
    "b12x-moe": ("RuntimeError: shape '[344064, 116]' is invalid for input of size 41287680", "core-fail"),
    "marlin-mtp": (
        "ValueError: moe_backend='marlin' is not supported for unquantized MoE. Expected one of [",
        "moe-conflict",
    ),
    "kv-too-small": (
        "ValueError: To serve at least one request with the model's max seq len (32768)",
        "mem-maxlen",
    ),
    "free-memory": ("ValueError: Free memory on device cuda:0 (66.", "mem-free-less"),
}


def test_every_failure_is_here() -> None:
    assert set(CAUSES) == set(BOOT_FAILURES)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", BOOT_FAILURES)
def test_the_reader_names_the_cause(name: str, version: str) -> None:
    failed = boot(version, "--sim-fail", name)
    cause, rule = CAUSES[name]
    assert failed.failed
    assert failed.cause is not None
    assert failed.cause.startswith(cause)
    assert {rule, "core-fail"} <= failed.found
    assert failed.text.rstrip("\n").endswith(
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    )


@pytest.mark.parametrize(
    ("version", "args", "name"),
    [
        ("0.24.0", ("--linear-backend", "flashinfer_b12x"), "b12x-linear"),
        ("0.27.1", ("--linear-backend", "flashinfer_b12x"), "b12x-linear"),
        ("0.27.1", ("--moe-backend", "flashinfer_b12x"), "b12x-moe"),
        ("0.17.1", ("--moe-backend", "marlin", *MTP), "marlin-mtp"),
    ],
)
def test_flags_that_end_the_boot_in_reality(version: str, args: tuple[str, ...], name: str) -> None:
    failed = boot(version, *args)
    assert failed.failed
    assert str(failed.cause).startswith(CAUSES[name][0])


@pytest.mark.parametrize(
    ("version", "args"),
    [
        ("0.17.1", ("--moe-backend", "marlin")),
        ("0.27.1", ("--moe-backend", "marlin", *MTP)),
        ("0.30.0", ("--linear-backend", "flashinfer_b12x")),
    ],
)
def test_flags_that_do_not(version: str, args: tuple[str, ...]) -> None:
    assert not boot(version, *args).failed


def test_from_028_a_missing_linear_kernel_is_a_warning() -> None:
    found = boot("0.30.0", "--linear-backend", "flashinfer_b12x")
    assert "lin-missing-warn" in found.found
    assert "lin-missing-err" not in found.found


def test_a_context_that_does_not_fit_names_the_longest_that_does() -> None:
    failed = boot("0.27.1", "--max-model-len", "1000000")
    assert failed.failed
    assert "max seq len (1000000), (61.04 GiB KV cache is needed" in str(failed.cause)
    assert "available KV cache memory (40.05 GiB). Based on the available memory" in failed.text
    assert "the estimated maximum model length is 656128. " in failed.text


def test_an_unknown_attention_backend_fails_in_the_api_server() -> None:
    failed = boot("0.32.0", "--attention-backend", "BOGUS")
    assert str(failed.cause).startswith(
        "ValueError: Unknown attention backend: 'BOGUS'. Valid options are: FLASH"
    )
    assert "EngineCore" not in failed.text
    assert "attn-unknown" in failed.found


def test_impossible_graphs_fail_the_boot() -> None:
    failed = boot("0.27.1", "--attention-backend", "TREE_ATTN", "-cc.cudagraph_mode", "FULL")
    assert "please try cudagraph_mode=PIECEWISE" in str(failed.cause)
    assert "cg-fatal" in failed.found


@pytest.mark.parametrize("version", ["0.27.1", "0.32.0"])
def test_tracebacks_have_the_releases_prefixes(version: str) -> None:
    lines = boot(version, "--sim-fail", "free-memory").lines
    logged = [line for line in lines if " ERROR " in line]
    assert all(line.startswith("(EngineCore pid=22) ERROR ") for line in logged)
    assert [line.endswith("\r") for line in logged] == [True] * (len(logged) - 1) + [False]
    wrapped = "(EngineCore pid=22) " if version == "0.27.1" else ""
    assert f"{wrapped}Process EngineCore:" in lines
    wrapped = "(APIServer pid=11) " if version == "0.27.1" else ""
    assert f"{wrapped}Traceback (most recent call last):" in lines


def output(version: str) -> tuple[Log, io.StringIO]:
    stream = io.StringIO()
    return Log(stream, 11, 22, Release(version)), stream


@pytest.mark.parametrize("version", ["0.24.0", "0.27.1", "0.32.0"])
def test_an_illegal_access_is_found_and_explained(version: str) -> None:
    log, stream = output(version)
    failures.illegal_access(log)
    failures.engine_lost(log)
    reader = BootReader(0.0)
    lines = [*reader.feed(stream.getvalue().encode(), 1.0), *reader.flush(2.0)]
    assert {"core-fatal", "cuda-ima"} <= {finding.id for finding in reader.findings}
    cause = root_cause(lines)
    assert cause == "AcceleratorError: CUDA error: an illegal memory access was encountered"


@pytest.mark.parametrize("version", ["0.27.1", "0.32.0"])
def test_a_taken_port_and_an_interrupt(version: str) -> None:
    log, stream = output(version)
    failing.port_taken(log, OSError(98, "Address already in use"))
    assert stream.getvalue().endswith("OSError: [Errno 98] Address already in use\n")
    log, stream = output(version)
    failing.interrupted(log)
    reader = BootReader(0.0)
    assert root_cause(reader.feed(stream.getvalue().encode(), 1.0)) is None  # a stop is no error
    assert stream.getvalue().rstrip().endswith("KeyboardInterrupt")

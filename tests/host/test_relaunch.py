"""Two identical failures in a row stop any relaunch."""

from __future__ import annotations

import pytest

from sparktui.host.relaunch import Relaunch, fingerprint

FREE = (
    "ValueError: Free memory on device cuda:0 ({}/121.69 GiB) on startup is less than desired GPU memory "
    "utilization (0.9, 109.52 GiB)"
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FREE.format("66.10"), FREE.format("64.9")),
        ("OSError: no file /home/me/.cache/a1/config.json", "OSError: no file /root/.cache/config.json"),
        ("RuntimeError: at 0x7f88d8460c08", "RuntimeError: at 0x7F0000000000"),
        ("Worker proc VllmWorker-0 died (exit code: -9)", "Worker proc VllmWorker-3 died  (exit code: -9)"),
        (
            'The container name "/vllm" is already in use by container "ab12cd34ef56"',
            'The container name "/vllm" is already in use by container "99ffee00aa11"',
        ),
        ("401 Client Error. (Request ID: Root=1-6a-0b; 6f1c2d3e-0a1b-4c2d-8e3f-0123456789ab)",
         "401 Client Error. (Request ID: Root=1-6a-0b; 00000000-0a1b-4c2d-8e3f-0123456789ab)"),
        ("no answer at http://127.0.0.1:8000/health", "no answer at http://[::1]:8001/health"),
    ],
)  # fmt: skip
def test_the_same_failure(one: str, other: str) -> None:
    assert one != other
    assert fingerprint("on", one) == fingerprint("on", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "ValueError: moe_backend='marlin' is not supported",
            "ValueError: moe_backend='b12x' is not supported",
        ),
        ("OutOfMemoryError: CUDA out of memory", "ValueError: No available memory"),
        ("No module named 'flashinfer'", "No module named 'vllm'"),
        ("error: unrecognized arguments: --a/b", "error: unrecognized arguments: --c/d"),
    ],
)
def test_different_failures(one: str, other: str) -> None:
    assert fingerprint("on", one) != fingerprint("on", other)
    assert fingerprint("on", one) != fingerprint("off", one)


def test_the_second_identical_failure_stops() -> None:
    relaunch = Relaunch()
    assert relaunch.blocked("on") is None
    relaunch.failed("on", FREE.format("66.10"))
    assert relaunch.blocked("on") is None
    relaunch.failed("on", FREE.format("64.9"))
    said = relaunch.blocked("on")
    assert said is not None
    assert said.startswith(
        "on failed twice in a row in the same way: ValueError: Free memory on device cuda:0 (64.9"
    )
    assert said.endswith("would end the same way.")
    assert relaunch.blocked("off") is None


def test_another_failure_or_a_good_boot_in_between_counts_anew() -> None:
    relaunch = Relaunch()
    for cause in ("ValueError: a", "ValueError: b", "ValueError: a"):
        relaunch.failed("on", cause)
    assert relaunch.blocked("on") is None
    relaunch.failed("on", "ValueError: a")
    assert relaunch.blocked("on") is not None
    relaunch.ready("on")
    assert relaunch.blocked("on") is None
    relaunch.failed("on", "ValueError: a")
    assert relaunch.blocked("on") is None


def test_another_variants_failures_in_between_change_nothing() -> None:
    relaunch = Relaunch()
    for variant in ("on", "off", "on"):
        relaunch.failed(variant, "ValueError: a")
    assert relaunch.blocked("on") is not None
    assert relaunch.blocked("off") is None


def test_what_to_change_is_the_rules_advice() -> None:
    relaunch = Relaunch()
    for _ in range(3):
        relaunch.failed("k2", "ValueError: " + "x" * 400, "Lower --max-num-seqs to 856.")
    said = relaunch.blocked("k2")
    assert said is not None
    assert said.startswith("k2 failed 3 times in a row")
    assert said.endswith("x…. Lower --max-num-seqs to 856.")
    assert len(said) < 300


def test_failures_of_earlier_runs_count() -> None:
    earlier = {
        "on": ("ValueError: a 1", "ValueError: a 2", "ValueError: b"),
        "off": ("ValueError: a", "ValueError: b"),
    }
    relaunch = Relaunch(earlier)
    assert "failed twice" in str(relaunch.blocked("on"))
    assert relaunch.blocked("off") is None
    relaunch.failed("off", "ValueError: a")
    assert "failed twice" in str(relaunch.blocked("off"))

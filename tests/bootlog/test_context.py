from __future__ import annotations

import pytest

from sparktui.bootlog.context import SITUATIONS, Context, capability_of
from tests.bootlog.logs import line, log_lines

DUMP = "Initializing a V1 LLM engine (v0.27.1) with config: model='/m', {}, seed=0"


def after(*messages: str, gpu: str = "", speculating: bool | None = None) -> Context:
    context = Context(gpu, speculating)
    for number, message in enumerate(messages, 1):
        context.read(line(message, number))
    return context


@pytest.mark.parametrize(
    ("gpu", "capability"),
    [
        ("NVIDIA GB10", (12, 1)),
        ("NVIDIA_GB10", (12, 1)),
        ("NVIDIA GeForce RTX 5090", (12, 0)),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", (12, 0)),
        ("NVIDIA H200", (9, 0)),
        ("NVIDIA GH200 480GB", (9, 0)),
        ("NVIDIA B200", (10, 0)),
        ("NVIDIA GB300", (10, 3)),
        ("NVIDIA A100-SXM4-80GB", (8, 0)),
        ("NVIDIA GeForce RTX 3090", (8, 6)),
        ("NVIDIA L40S", (8, 9)),
        ("NVIDIA GB100", None),
        ("Intel Arc", None),
        ("", None),
    ],
)
def test_the_family_by_the_gpus_name(gpu: str, capability: tuple[int, int] | None) -> None:
    assert capability_of(gpu) == capability
    assert Context(gpu).capability == capability


def test_nothing_is_known_at_first() -> None:
    assert {situation: Context().holds(situation) for situation in SITUATIONS} == dict.fromkeys(SITUATIONS)


@pytest.mark.parametrize(
    ("message", "capability"),
    [
        ("    Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.", (12, 1)),
        (
            "SymmMemCommunicator: Device capability 12.1 not supported, communicator is not available.",
            (12, 1),
        ),
        ("ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", (12, 1)),
        ("ptxas fatal   : Value 'sm_90' is not defined for option 'gpu-name'", (9, 0)),
        (
            "Using default MoE config. Performance might be sub-optimal! Config file not found at "
            "/v/E=128,N=768,device_name=NVIDIA_GB10.json",
            (12, 1),
        ),
        ("What is the cuda capability 12.1 of GB10?", None),
        ("Received request: Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.", None),
    ],
)
def test_the_family_from_the_log(message: str, capability: tuple[int, int] | None) -> None:
    assert after(message).capability == capability


def test_families() -> None:
    blackwell = Context("NVIDIA GB10")
    assert [blackwell.holds(f"sm_{family}x") for family in (9, 10, 12)] == [False, False, True]
    assert Context("NVIDIA H200").holds("sm_9x") is True


def test_a_cpu_is_no_gpu_family() -> None:
    context = after(DUMP.format("speculative_config=None, device_config=cpu"))
    assert context.holds("cpu") is True
    assert context.holds("sm_12x") is False


@pytest.mark.parametrize(
    ("message", "cpu"),
    [
        (DUMP.format("device_config=cuda"), False),
        ("Automatically detected platform cpu.", True),
        ("Automatically detected platform cuda.", False),
        ("CPU KV cache size: 1,024 tokens", True),
        ("GPU KV cache size: 1,024 tokens", None),
        ("prompt: 'device_config=cpu'", None),
    ],
)
def test_the_device(message: str, cpu: bool | None) -> None:
    assert after(message).cpu is cpu


@pytest.mark.parametrize(
    ("dump", "speculating"),
    [
        ("speculative_config=None", False),
        ("speculative_config=SpeculativeConfig(method='mtp', model='/d', num_spec_tokens=2)", True),
    ],
)
def test_the_log_knows_better_than_the_profile(dump: str, speculating: bool) -> None:
    context = after(DUMP.format(dump), speculating=not speculating)
    assert context.holds("speculating") is speculating
    assert context.holds("not speculating") is not speculating


def test_the_profile_counts_until_the_log_speaks() -> None:
    assert Context(speculating=False).holds("not speculating") is True
    assert Context(speculating=True).holds("speculating") is True


def test_facts() -> None:
    context = Context(speculating=False)
    context.learn(
        {
            "vllm_version": "0.24.0",
            "device": "cuda",
            "spec_method": "mtp",
            "prefix_caching": False,
            "other": 1,
        }
    )
    assert (context.version, context.cpu, context.method, context.speculating) == (
        "0.24.0",
        False,
        "mtp",
        True,
    )
    assert context.holds("no prefix caching") is True


def test_facts_that_say_nothing_change_nothing() -> None:
    context = Context("NVIDIA GB10", True)
    context.learn({})
    assert (context.cpu, context.speculating, context.capability, context.version) == (
        None,
        True,
        (12, 1),
        None,
    )


@pytest.mark.parametrize(
    ("log", "cpu", "speculating"),
    [
        ("0.24.0-h200/boot_off.log", False, False),
        ("0.24.0-h200/boot_draft.log", False, True),
        ("0.27.1-cpu/boot_off.log", True, False),
        ("0.32.0-cpu/boot_ngram_tty.log", True, True),
        ("0.32.0-cpu/fail_badflag.log", None, None),
    ],
)
def test_recorded_boots(log: str, cpu: bool | None, speculating: bool | None) -> None:
    context = Context()
    for read in log_lines(log):
        context.read(read)
    assert (context.cpu, context.speculating) == (cpu, speculating)

"""Which CUDA graphs a release, a GPU and a command line end up with, and what the log says of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sparktui.sim import arguments
from sparktui.sim.boot import graphs
from sparktui.sim.model.truth import BootShape
from sparktui.sim.release import Release

RECORDED = Path(__file__).parents[1] / "fixtures" / "vllm-0.24.0-h200-flashinfer" / "boot_fi_ngram.log"
DENSE = BootShape(mamba=False, moe_backend="", quantization="", architecture="LlamaForCausalLM")
HOPPER = replace(DENSE, capability="9.0")


def speculative(method: str, k: int) -> tuple[str, str]:
    return "--speculative-config", f'{{"method": "{method}", "num_speculative_tokens": {k}}}'


NGRAM, MTP, DSPARK = speculative("ngram", 3), speculative("mtp", 2), speculative("dspark", 3)


@pytest.fixture(autouse=True)
def default_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_USE_V2_MODEL_RUNNER", raising=False)


def plan(version: str, *args: str, shape: BootShape = DENSE) -> graphs.GraphPlan:
    given = arguments.parse(["m", "--sim-vllm", version, "--max-num-seqs", "64", *args])
    return graphs.plan(Release(version), shape, given)


@pytest.mark.parametrize(
    ("version", "capability", "mode"),
    [
        ("0.19.1", "12.1", "piecewise"),
        ("0.27.1", "12.1", "piecewise"),
        ("0.30.0", "12.1", "full"),
        ("0.32.0", "12.1", "full"),
        ("0.24.0", "9.0", "piecewise"),
        ("0.27.1", "9.0", "piecewise"),
        ("0.30.0", "9.0", "piecewise"),
        ("0.32.0", "9.0", "full"),
        ("0.13.0", "10.0", "full"),
        ("0.32.0", "8.9", "piecewise"),
        ("0.33.0", "8.9", "full"),
    ],
)
def test_flashinfer_with_speculation(version: str, capability: str, mode: str) -> None:
    found = plan(version, *MTP, shape=replace(DENSE, capability=capability))
    assert found.mode == mode
    assert (found.warning is None) == (mode == "full")
    assert found.wanted == "FULL_AND_PIECEWISE"
    assert plan(version, shape=replace(DENSE, capability=capability)).mode == "full"


def test_the_downgrade_is_word_for_word_as_recorded() -> None:
    found = plan("0.24.0", *NGRAM, shape=HOPPER)
    assert found.warning is not None
    assert f"[compilation.py:1405] {found.warning}\n" in RECORDED.read_text(encoding="utf-8")


@pytest.mark.parametrize("backend", ["TRITON_ATTN", "FLASH_ATTN", "FLEX_ATTENTION"])
def test_other_backends_keep_full_graphs(backend: str) -> None:
    found = plan("0.27.1", *NGRAM, "--attention-backend", backend)
    assert (found.mode, found.warnings) == ("full", ())


def test_sizes_are_the_recorded_ones() -> None:
    off = plan("0.24.0", shape=HOPPER)
    assert (len(off.sizes), off.sizes[-1]) == (19, 128)
    assert (len(off.full_sizes), off.full_sizes[-1]) == (11, 64)
    kept = plan("0.24.0", *NGRAM, "--attention-backend", "FLASH_ATTN", shape=HOPPER)
    assert (len(kept.sizes), len(kept.full_sizes), kept.full_sizes[-1]) == (49, 33, 256)
    lost = plan("0.24.0", *NGRAM, shape=HOPPER)
    assert (len(lost.sizes), lost.sizes[-1], lost.full_sizes) == (51, 512, ())


@pytest.mark.parametrize(
    ("args", "mode", "wanted", "warnings"),
    [
        (["--enforce-eager"], "none", "NONE", 0),
        (["-O0"], "none", "NONE", 0),
        (["-O1"], "piecewise", "PIECEWISE", 0),
        (["-cc.cudagraph_mode", "none"], "none", "NONE", 0),
        (["--compilation-config", '{"cudagraph_mode": "PIECEWISE"}'], "piecewise", "PIECEWISE", 0),
        (["-cc.cudagraph_mode", "FULL"], "full", "FULL", 1),
        (["-cc.mode", "0"], "none", "FULL_AND_PIECEWISE", 1),
    ],
)
def test_what_was_asked_for(args: list[str], mode: str, wanted: str, warnings: int) -> None:
    found = plan("0.27.1", *args)
    assert (found.mode, len(found.warnings)) == (mode, warnings)
    assert found.wanted == ("NONE" if args[0] == "-cc.mode" else wanted)


def test_full_graphs_of_a_backend_that_has_none_end_the_boot() -> None:
    with pytest.raises(graphs.GraphsImpossible, match="please try cudagraph_mode=PIECEWISE"):
        plan("0.27.1", "--attention-backend", "TREE_ATTN", "-cc.cudagraph_mode", "FULL")
    found = plan("0.27.1", "--attention-backend", "TREE_ATTN")
    assert found.mode == "piecewise"
    assert "because attention is compiled piecewise" in str(found.warning)


def test_mamba_layers_count_too() -> None:
    found = plan(
        "0.27.1", "--attention-backend", "TRITON_ATTN", "-cc.cudagraph_mode", "FULL", shape=BootShape()
    )
    assert "Mamba2AttentionBackend" in str(found.warning)
    assert found.mode == "full"


@pytest.mark.parametrize(
    ("version", "args", "shape", "runner", "fallback"),
    [
        ("0.19.1", (), DENSE, "V1", ""),
        ("0.24.0", (), DENSE, "V2", ""),
        ("0.24.0", NGRAM, DENSE, "V1", "ngram/ngram_gpu speculative decoding"),
        ("0.24.0", speculative("draft_model", 3), DENSE, "V1", "speculative method"),
        ("0.24.0", MTP, DENSE, "V2", ""),
        ("0.27.1", (), BootShape(), "V1", ""),  # a hybrid MoE model
        ("0.27.1", DSPARK, BootShape(), "V2", ""),  # DSpark exists in V2 alone
        ("0.32.0", NGRAM, BootShape(), "V2", ""),
        ("0.32.0", speculative("suffix", 3), DENSE, "V1", "method 'suffix'"),
    ],
)
def test_model_runner(
    version: str, args: tuple[str, ...], shape: BootShape, runner: str, fallback: str
) -> None:
    found = plan(version, *args, shape=shape)
    assert found.runner == runner
    assert fallback in found.fallback
    assert bool(found.fallback) == bool(fallback)


@pytest.mark.parametrize(("value", "runner"), [("0", "V1"), ("1", "V2")])
def test_the_environment_decides_on_the_runner(
    value: str, runner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", value)
    assert plan("0.24.0").runner == runner
    assert plan("0.19.1").runner == runner

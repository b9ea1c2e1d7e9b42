from __future__ import annotations

from pathlib import Path

import pytest

from sparktui.profile.model import Docker
from sparktui.profile.problems import ProfileError
from sparktui.profile.variants import default_variant, merge, resolve, variant_names
from tests.profile.make import profile

SPECULATIVE = """
    model: m
    vllm: "0.27.1"
    vllm_bin: vllm
    env: {A: "1", B: "2"}
    args: {max-num-seqs: 4, enforce-eager: true, compilation-config: {mode: 3, pass_config: {a: 1, b: 2}}}
    speculative: {model: d, num_speculative_tokens: 3}
    docker: {image: one, ipc: host}
    variants:
      k2: {speculative: {num_speculative_tokens: 2}}
      horizontal: {speculative: off, args: {mamba-ssu-algorithm: horizontal}}
      wide:
        args: {max_num_seqs: 32, enforce-eager: null, compilation-config: {pass_config: {b: 3}}}
        env: {A: null, B: "3", C: "4"}
      next: {vllm: "0.28.0", vllm_bin: /opt/next/bin/vllm, model: n, docker: {image: two}}
"""


def test_off_and_on_are_there_with_speculation(tmp_path: Path) -> None:
    made = profile(tmp_path, SPECULATIVE)
    assert variant_names(made) == ("off", "on", "k2", "horizontal", "wide", "next")
    assert default_variant(made) == "on"
    assert resolve(made, "off").speculative is None
    assert not resolve(made, "off").speculating
    assert resolve(made, "on").speculative == {"model": "d", "num_speculative_tokens": 3}
    assert resolve(made, "off").args == resolve(made, "on").args


def test_base_is_there_without_speculation(tmp_path: Path) -> None:
    made = profile(
        tmp_path, "model: m\nvariants: {ngram: {speculative: {method: ngram}}, big: {args: {a: 1}}}"
    )
    assert variant_names(made) == ("base", "ngram", "big")
    assert default_variant(made) == "base"
    assert not resolve(made, "base").speculating
    assert resolve(made, "ngram").speculative == {"method": "ngram"}
    assert not resolve(made, "big").speculating


def test_a_speculative_mapping_merges_and_keeps_the_order_of_its_keys(tmp_path: Path) -> None:
    arm = resolve(profile(tmp_path, SPECULATIVE), "k2")
    assert list((arm.speculative or {}).items()) == [("model", "d"), ("num_speculative_tokens", 2)]
    assert arm.speculating


def test_off_leaves_speculation_out_and_the_rest_in(tmp_path: Path) -> None:
    arm = resolve(profile(tmp_path, SPECULATIVE), "horizontal")
    assert not arm.speculating
    assert arm.args["mamba-ssu-algorithm"] == "horizontal"
    assert arm.args["max-num-seqs"] == "4"


def test_args_replace_merge_and_remove(tmp_path: Path) -> None:
    arm = resolve(profile(tmp_path, SPECULATIVE), "wide")
    assert arm.args == {
        "max-num-seqs": "32",
        "compilation-config": {"mode": 3, "pass_config": {"a": 1, "b": 3}},
    }
    assert list(arm.args) == ["max-num-seqs", "compilation-config"]
    assert arm.env == {"B": "3", "C": "4"}
    assert arm.speculating


def test_a_variant_changes_release_model_and_image(tmp_path: Path) -> None:
    arm = resolve(profile(tmp_path, SPECULATIVE), "next")
    assert (arm.vllm, arm.vllm_bin, arm.model) == ("0.28.0", "/opt/next/bin/vllm", "n")
    assert arm.docker == Docker("two", ipc="host")


def test_resolving_leaves_the_profile_as_it_was(tmp_path: Path) -> None:
    made = profile(tmp_path, SPECULATIVE)
    before = repr(made)
    for name in variant_names(made):
        resolve(made, name)
    assert repr(made) == before


@pytest.mark.parametrize(
    ("name", "words"),
    [("horizontl", "did you mean 'horizontal'?"), ("base", "(it has off, on, k2, horizontal, wide, next)")],
)
def test_an_unknown_variant_says_which_there_are(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(ProfileError) as caught:
        resolve(profile(tmp_path, SPECULATIVE), name)
    assert f"spark has no variant {name!r}" in str(caught.value)
    assert words in str(caught.value)
    assert caught.value.problems[0].line == 8


def test_a_mapping_replaces_a_scalar_and_the_other_way_round() -> None:
    assert merge({"a": "1", "b": {"c": 1}}, {"a": {"d": 2}, "b": "3"}) == {"a": {"d": 2}, "b": "3"}

"""The command line: each release's flags, failing as its argparse does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sparktui.sim import arguments
from sparktui.sim.cli import main
from sparktui.sim.flags import flags_of
from sparktui.sim.release import RELEASES, Release

FIXTURES = Path(__file__).parents[1] / "fixtures"
SPEC = '{"method":"dspark","model":"/models/d","num_speculative_tokens":3}'


def test_values_have_the_types_vllm_shows() -> None:
    args = ["nvidia/m", "--max_num_seqs=64", "--gpu-memory-utilization", "0.9", "--max-model-len", "32K"]
    args += ["--served-model-name", "a", "b", "--speculative-config", SPEC, "--no-enable-prefix-caching"]
    args += ["--api-key", "sk-1", "--trust-remote-code", "--kv-cache-dtype", "fp8"]
    parsed = arguments.parse(args)
    assert parsed.given == {
        "model_tag": "nvidia/m",
        "model": "nvidia/m",
        "max_num_seqs": 64,
        "gpu_memory_utilization": 0.9,
        "max_model_len": 32768,
        "served_model_name": ["a", "b"],
        "speculative_config": json.loads(SPEC),
        "enable_prefix_caching": False,
        "api_key": ["sk-1"],
        "trust_remote_code": True,
        "kv_cache_dtype": "fp8",
    }
    assert (parsed.k, parsed.served_names, parsed.api_keys) == (3, ("a", "b"), ("sk-1",))


def test_spec_flags_one_by_one_and_nested_json() -> None:
    parsed = arguments.parse(["m", "--spec-method", "ngram", "--spec-tokens", "2", "-cc.mode", "3"])
    assert parsed.k == 2
    assert parsed.given["compilation_config"] == {"mode": 3}
    nested = arguments.parse(["m", "--speculative-config.num_speculative_tokens=4"])
    assert nested.k == 4
    assert arguments.parse(["m"]).k == 0


def test_the_key_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-env")
    assert arguments.parse(["m"]).api_keys == ("sk-env",)
    assert arguments.parse(["m", "--api-key", "sk-arg"]).api_keys == ("sk-arg",)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--no-such-flag", "3"], "vllm: error: unrecognized arguments: --no-such-flag 3"),
        (["--kv-cache-dtype", "fp7"], "invalid choice: 'fp7'"),
        (["--max-num-seqs", "many"], "invalid int value: 'many'"),
        (["--speculative-config", "off"], "cannot be converted"),
        (["--no-such.key", "3"], "unrecognized arguments: --no-such.key 3"),
        (["--sim-fail", "sometimes"], "invalid choice: 'sometimes'"),
    ],
)
def test_wrong_usage_exits_2(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "m", *args]) == 2
    assert message in capsys.readouterr().err


def test_flags_are_those_of_the_releases_own_help() -> None:
    text = (FIXTURES / "help" / "0.32.0-cpu.txt").read_text(encoding="utf-8")
    printed = set(re.findall(r"^  (--[a-z][\w-]*)", text, re.MULTILINE))
    ours = {name for flag in flags_of(Release("0.32.0")) for name in flag.names}
    assert len(printed) > 250
    assert printed - ours <= {"--help"}


@pytest.mark.parametrize(
    ("flag", "first", "last"),
    [
        ("--linear-backend=marlin", "0.24.0", None),
        ("--spec-method=ngram", "0.24.0", None),
        ("--mamba-ssu-algorithm=horizontal", "0.27.1", None),
        ("--moe-backend=flashinfer_b12x", "0.24.0", None),
        ("--mamba-cache-mode=all", None, "0.30.0"),
    ],
)
def test_a_flag_exists_from_one_release_to_another(flag: str, first: str | None, last: str | None) -> None:
    for version in RELEASES:
        release = Release(version)
        known = (first is None or release.since(first)) and (last is None or Release(last).since(version))
        if known:
            assert arguments.parse(["m", "--sim-vllm", version, flag]).given
        else:
            with pytest.raises(SystemExit) as error:
                arguments.parse(["m", f"--sim-vllm={version}", flag])
            assert error.value.code == 2


def test_an_unknown_flag_fails_as_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "m", "--sim-vllm", "0.32.0", "--no-such-flag", "3"]) == 2
    assert capsys.readouterr().err == (
        "usage: vllm [-h] [-v]\n"
        "            {chat,complete,serve,launch,bench,collect-env,download-kernels,preload,run-batch,"
        "snapshot}\n"
        "            ...\n"
        "vllm: error: unrecognized arguments: --no-such-flag 3\n"
    )


def test_a_bad_choice_fails_as_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "m", "--sim-vllm", "0.32.0", "--moe-backend", "bogus"]) == 2
    usage, message = capsys.readouterr().err.splitlines()
    assert usage == "usage: vllm serve [model_tag] [options]"
    assert message.startswith(
        "vllm serve: error: argument --moe-backend: invalid choice: 'bogus' (choose from 'aiter', "
        "'aiter_mega_moe', 'aiter_triton_mxfp4_bf16', 'auto', 'b12x', "
    )


def test_a_missing_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "m", "--port"]) == 2
    assert capsys.readouterr().err.endswith("vllm serve: error: argument --port: expected one argument\n")


def test_failures_on_demand_that_need_no_boot(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "m", "--sim-fail", "unknown-flag"]) == 2
    assert "vllm: error: unrecognized arguments: --no-such-flag\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "method"),
    [
        ('{"method": "nemotron_h_mtp", "num_speculative_tokens": 2}', "mtp"),
        ('{"model": "d", "num_speculative_tokens": 2}', "draft_model"),
        ('{"method": "ngram", "num_speculative_tokens": 2}', "ngram"),
    ],
)
def test_the_method_has_vllms_name(config: str, method: str) -> None:
    assert arguments.parse(["m", "--speculative-config", config]).method == method
    assert arguments.parse(["m"]).method == ""


def test_data_parallel_engines() -> None:
    assert arguments.parse(["m", "-dp", "4"]).engines == 4
    assert arguments.parse(["m"]).engines == 1


def test_the_stand_ins_own_knobs() -> None:
    sim = arguments.parse(["m", "--boot-speed", "60", "--sim-linger-seconds", "3", "--sim-model", "x"]).sim
    assert (sim.boot_speed, sim.linger_seconds, sim.model) == (60.0, 3.0, "x")

"""The command line: each release's flags, failing as its argparse does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sparktui.sim import arguments
from sparktui.sim.boot.facts import boot_facts
from sparktui.sim.cli import main
from sparktui.sim.flags import flags_of
from sparktui.sim.model.truth import Truth
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


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--max-num-seqs", "0"], "--max-num-seqs: expected an integer of at least 1, got '0'"),
        (["--max-num-batched-tokens=0"], "--max-num-batched-tokens: expected an integer of at least 1"),
        (["--max-model-len", "0"], "--max-model-len: expected an integer of at least 1, got '0'"),
        (["--max-model-len", "-2"], "--max-model-len: expected an integer of at least 1, got '-2'"),
        (["--max-model-len", "1.5"], "--max-model-len: invalid human_readable_int value: '1.5'"),
        (["--max-model-len", "2.5K"], "Decimals are not allowed with binary suffixes like K."),
        (["--max-model-len", "9" * 400 + "k"], "invalid human_readable_int value"),
        (["--port", "70000"], "--port: expected an integer from 0 to 65535, got '70000'"),
        (["--data-parallel-size", "0"], "expected an integer of at least 1, got '0'"),
        (["-tp", "0"], "expected an integer of at least 1, got '0'"),
        (["-O9"], "--optimization-level: expected an integer from 0 to 3, got '9'"),
        (["--gpu-memory-utilization", "1.1"], "expected a number above 0 and of at most 1, got '1.1'"),
        (["--gpu-memory-utilization", "most"], "invalid float value: 'most'"),
        (["--spec-method", "mtp", "--spec-tokens", "0"], "expected an integer of at least 1, got '0'"),
        (["--config", "serve.yaml"], "--config: the stand-in does not read configuration files"),
        (["--port.x", "3"], "unrecognized arguments: --port.x 3"),
        (["--attention-config", "x", "-ac.backend", "y"], "--attention-config: Value x cannot be converted"),
        (["--sim-noise", "-0.1"], "--sim-noise: expected a number of at least 0 and of at most 1"),
        (["--sim-noise", "nan"], "--sim-noise: expected a number of at least 0 and of at most 1"),
        (["--sim-restart-noise", "1.1"], "--sim-restart-noise: expected a number of at least 0"),
        (["--boot-speed", "0"], "--boot-speed: expected a number above 0, got '0'"),
        (["--sim-boot-speed", "inf"], "--boot-speed: expected a number above 0, got 'inf'"),
        (["--sim-boot-seconds", "-1"], "--sim-boot-seconds: expected a number of at least 0, got '-1'"),
        (["--sim-linger-seconds", "-1"], "--sim-linger-seconds: expected a number of at least 0"),
        (["--sim-seed", "x"], "--sim-seed: invalid int value: 'x'"),
        (["--sim-clock", "/no/folder/clock"], "--sim-clock: cannot write /no/folder/clock: No such file"),
        (["--enable-per-request-metrics", "--disable-log-stats"], "remove --disable-log-stats to enable"),
        (["--per-request-spec-decode-metrics", "summary"], "requires speculative decoding to be enabled"),
        (["--per-request-spec-decode-metrics", "some"], "invalid choice: 'some'"),
    ],
)
def test_a_value_out_of_range_exits_2(
    args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "m", "--sim-vllm", "0.32.0", *args]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "error: " in error
    assert message in error


@pytest.mark.parametrize(
    ("flag", "last_without", "first"),
    [
        (["--enable-per-request-metrics"], "0.24.0", "0.27.1"),
        (["--per-request-spec-decode-metrics", "summary", "--speculative-config", SPEC], "0.27.1", "0.30.0"),
        (["--enable-mfu-metrics"], None, "0.17.1"),
    ],
    ids=["per-request", "spec-decode", "mfu"],
)
def test_flags_of_metrics_by_release(
    flag: list[str], last_without: str | None, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        flag[0].removeprefix("--").replace("-", "_")
        in arguments.parse(["m", "--sim-vllm", first, *flag]).given
    )
    if last_without is not None:
        assert main(["serve", "m", "--sim-vllm", last_without, *flag]) == 2
        assert f"unrecognized arguments: {flag[0]}" in capsys.readouterr().err


@pytest.mark.parametrize("k", ["-2", "0", '"abc"', "2.5", "true", "[]", "NaN", "Infinity"])
def test_a_number_of_drafts_that_is_none_exits_2(k: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = f'{{"method": "mtp", "num_speculative_tokens": {k}}}'
    assert main(["serve", "m", "--speculative-config", config]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(
        "vllm serve: error: argument --speculative-config: num_speculative_tokens: "
        "expected an integer of at least 1, got "
    )


@pytest.mark.parametrize(("k", "drafts"), [("2", 2), ('"4"', 4), ("5.0", 5), ("null", 3)])
def test_a_number_of_drafts_as_pydantic_takes_it(k: str, drafts: int) -> None:
    config = f'{{"method": "mtp", "num_speculative_tokens": {k}}}'
    parsed = arguments.parse(["m", "--speculative-config", config])
    assert parsed.k == boot_facts(parsed, Truth()).k == drafts


@pytest.mark.parametrize("text", ["auto", "Auto", "-1"])
def test_the_longest_request_may_be_left_to_the_stand_in(text: str) -> None:
    parsed = arguments.parse(["m", "--max-model-len", text])
    assert parsed.given["max_model_len"] == -1
    assert boot_facts(parsed, Truth()).max_model_len == 32768
    assert boot_facts(parsed, Truth(kv_cache_tokens=4096)).max_model_len == 4096


@pytest.mark.parametrize(
    ("text", "tokens"), [("8192", 8192), ("8k", 8000), ("25.6k", 25600), ("8K", 8192), ("1T", 2**40)]
)
def test_counts_of_tokens_as_people_write_them(text: str, tokens: int) -> None:
    assert arguments.parse(["m", "--max-model-len", text]).given["max_model_len"] == tokens


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

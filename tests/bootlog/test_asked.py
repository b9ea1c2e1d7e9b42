"""Command lines against the "non-default args" line: what was asked for and not taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparktui.bootlog.asked import compare_argv
from sparktui.bootlog.facts import read_facts
from tests.bootlog.logs import LOGS, line, log_lines
from tests.sim.boots import boot

MODEL = "m/x"


def argv_of(taken: dict[str, Any]) -> list[str]:
    """A command line that makes vLLM log these arguments."""
    words = ["vllm", "serve", taken["model"]]
    for name, value in taken.items():
        flag = f"--{name.replace('_', '-')}"
        if name in ("model", "model_tag"):
            continue
        words.append(f"--no-{flag[2:]}" if value is False else flag)
        if isinstance(value, dict):
            words.append(json.dumps(value))
        elif isinstance(value, list):
            words.extend(str(item) for item in value)
        elif not isinstance(value, bool):
            words.append(str(value))
    return words


def recorded_args(log: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for each in log_lines(log):
        read_facts(each, facts)
    args: dict[str, Any] = facts.get("non_default_args", {})
    return args


def lost(words: list[str], taken: str) -> list[str]:
    """Texts of the findings for ``vllm serve m/x`` with these words and this dict in the log."""
    facts: dict[str, Any] = {}
    read_facts(line(f"non-default args: {{'model_tag': 'm/x', 'model': 'm/x', {taken}}}"), facts)
    assert isinstance(facts["non_default_args"], dict)
    return [finding.text for finding in compare_argv(["vllm", "serve", MODEL, *words], facts)]


RECORDED = sorted(str(path.relative_to(LOGS)) for path in LOGS.rglob("*.log"))


@pytest.mark.parametrize("log", [log for log in RECORDED if recorded_args(log)])
def test_nothing_was_lost_in_a_recorded_boot(log: str) -> None:
    args = recorded_args(log)
    words = argv_of(args)
    if "compilation_config" in args:
        words[words.index("--compilation-config") + 1] = '{"cudagraph_mode":"PIECEWISE"}'
    assert compare_argv(words, {"non_default_args": args}) == ()
    args["max_num_seqs"] += 1
    (finding,) = compare_argv(words, {"non_default_args": args})
    assert finding.text.startswith("--max-num-seqs: ")


SIM = [
    "--port", "9000", "--max-num-seqs", "32", "--max-model-len", "8k", "--gpu-memory-utilization", "0.85",
    "--cudagraph-metrics", "--enforce-eager", "--no-enable-prefix-caching", "-tp", "2",
    "--served-model-name", "a", "b",
    "--speculative-config.method", "mtp", "--speculative-config.num_speculative_tokens", "2",
]  # fmt: skip


@pytest.mark.parametrize("version", ["0.17.1", "0.24.0", "0.27.1", "0.32.0", "0.33.0"])
def test_nothing_is_lost_on_the_stand_in(version: str) -> None:
    facts = boot(version, *SIM).read().facts
    head = ["python", "-m", "sparktui", "sim", "serve", "m", "--sim-vllm", version]
    assert compare_argv([*head, *SIM], facts) == ()
    assert [f.flag for f in compare_argv([*head, *SIM, "--max-num-seqs", "9"], facts)] == ["--max-num-seqs"]


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (["--gpu-memory-utilization", "0.90"], "'gpu_memory_utilization': 0.9"),
        (["--max_num_seqs=64"], "'max_num_seqs': 64"),
        (["--max-num-se", "64"], "'max_num_seqs': 64"),
        (["-tp", "2"], "'tensor_parallel_size': 2"),
        (["-tp=2"], "'tensor_parallel_size': 2"),
        (["--max-model-len", "32k"], "'max_model_len': 32000"),
        (["--max-model-len", "32K"], "'max_model_len': 32768"),
        (["--max-model-len", "25.6k"], "'max_model_len': 25600"),
        (["--max-model-len", "auto"], "'max_model_len': -1"),
        (["--max-model-len", "-1"], "'max_model_len': -1"),
        (["--moe-backend", "FlashInfer-CUTLASS"], "'moe_backend': 'flashinfer_cutlass'"),
        (
            ["--attention-backend", "FLASHINFER"],
            "'attention_backend': <AttentionBackendEnum.FLASHINFER: 'x.y'>",
        ),
        (["--dtype", "bfloat16"], "'dtype': torch.bfloat16"),
        (["--enable-prefix-caching"], "'enable_prefix_caching': True"),
        (["--no-enable-prefix-caching"], "'enable_prefix_caching': False"),
        (["--served-model-name", "a", "b", "--port", "1"], "'served_model_name': ['a', 'b'], 'port': 1"),
        (["--cudagraph-capture-sizes", "4", "1", "2"], "'cudagraph_capture_sizes': [1, 2, 4]"),
        (["--allowed-origins", '["x", "y"]'], "'allowed_origins': ['x', 'y']"),
        (["--max-num-seqs", "4", "--max-num-seqs", "8"], "'max_num_seqs': 8"),
        (
            ["--compilation-config", '{"mode": 3}'],
            "'compilation_config': {'mode': <CompilationMode.VLLM_COMPILE: 3>}",
        ),
        (
            ["-cc.cudagraph_mode=piecewise"],
            "'compilation_config': {'cudagraph_mode': <CUDAGraphMode.PIECEWISE: 1>}",
        ),
        (
            ["--kv-transfer-config", '{"kv_connector": "C"}'],
            "'kv_transfer_config': KVTransferConfig(kv_connector='C', kv_rank=None)",
        ),
        (["--lora-modules", "a=b"], "'lora_modules': [LoRAModulePath(name='a', path='b')]"),
        (["--hf-overrides", '{"a": 1}'], "'hf_overrides': <function f at 0x7f>"),
        (
            ["--speculative_config.num-speculative-tokens", "3"],
            "'speculative_config': {'num_speculative_tokens': 3}",
        ),
        (["--speculative-config.model+", "a,b"], "'speculative_config': {'model': ['a', 'b']}"),
        (["-sc", '{"method": "ngram"}'], "'speculative_config': {'method': 'ngram'}"),
        # Equal to a default, so that the log leaves it out.
        (["--port", "8000", "--dtype", "auto", "--seed", "0", "-tp", "1"], ""),
        (["--gpu-memory-utilization", "0.9"], ""),
        (["--gpu-memory-utilization", "0.92"], ""),
        (["--quantization", "none"], ""),
        (["--no-enforce-eager"], ""),
        # No release that is known has it, or none says its default.
        (["--brand-new-flag", "1"], ""),
        (["--hf-overrides", '{"a": 1}'], ""),
        (["-O3", "--port", "1"], "'port': 1"),
        (["--config", "f.yaml"], "'port': 1"),
    ],
)  # fmt: skip
def test_taken(words: list[str], taken: str) -> None:
    assert lost(words, taken) == []


@pytest.mark.parametrize(
    ("words", "taken", "texts"),
    [
        (["--max-num-seqs", "64"], "'max_num_seqs': 32", ["--max-num-seqs: 64 was asked for, vLLM took 32"]),
        (["--max-num-seqs", "64"], "", ["--max-num-seqs: 64 was asked for, and vLLM did not take it"]),
        (["--enforce-eager"], "", ["--enforce-eager: True was asked for, and vLLM did not take it"]),
        (
            ["--no-enable-prefix-caching"],
            "'enable_prefix_caching': True",
            ["--enable-prefix-caching: False was asked for, vLLM took True"],
        ),
        (
            ["--max-model-len", "1K"],
            "'max_model_len': 1000",
            ["--max-model-len: 1K was asked for, vLLM took 1000"],
        ),
        (
            ["--moe-backend", "marlin"],
            "'moe_backend': 'auto'",
            ["--moe-backend: marlin was asked for, vLLM took auto"],
        ),
        (
            ["--brand-new-flag", "1"],
            "'brand_new_flag': 2",
            ["--brand-new-flag: 1 was asked for, vLLM took 2"],
        ),
        (
            ["--served-model-name", "a", "b"],
            "'served_model_name': ['a']",
            ["--served-model-name: ['a', 'b'] was asked for, vLLM took ['a']"],
        ),
        (
            ["-cc.mode", "3"],
            "'compilation_config': {'mode': <CompilationMode.NONE: 0>}",
            ["--compilation-config: mode 3 was asked for, vLLM took <CompilationMode.NONE: 0>"],
        ),
        (
            ["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 3}'],
            "",
            [
                "--speculative-config: {'method': 'mtp', 'num_speculative_tokens': 3} was asked for, "
                "and vLLM did not take it"
            ],
        ),
        (
            ["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 3}'],
            "'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 2}",
            ["--speculative-config: num_speculative_tokens 3 was asked for, vLLM took 2"],
        ),
        (
            [
                "--speculative-config",
                '{"method": "mtp", "model": "d"}',
                "--speculative-config.num_speculative_tokens",
                "3",
            ],
            "'speculative_config': {'num_speculative_tokens': 3}",
            [
                "--speculative-config: method mtp was asked for, and vLLM did not take it; "
                "model d was asked for, and vLLM did not take it"
            ],
        ),
    ],
)
def test_not_taken(words: list[str], taken: str, texts: list[str]) -> None:
    assert lost(words, taken) == texts


@pytest.mark.parametrize(
    ("words", "severity"),
    [
        (["--moe-backend", "marlin"], "costs speed"),
        (["--attention-backend", "FLASHINFER"], "costs speed"),
        (["--spec-tokens", "3"], "costs speed"),
        (["--max-cudagraph-capture-size", "64"], "costs speed"),
        (["--enforce-eager"], "costs speed"),
        (["--cudagraph-metrics"], "note"),
        (["--max-num-seqs", "4"], "note"),
        (["--distributed-executor-backend", "mp"], "note"),
    ],
)
def test_severity(words: list[str], severity: str) -> None:
    (finding,) = compare_argv(["vllm", "serve", MODEL, *words], {"non_default_args": {"model": MODEL}})
    assert (finding.id, finding.severity, finding.line) == ("asked-not-taken", severity, 0)
    assert finding.flag == words[0]


def test_both_forms_of_a_flag_have_their_own_advice() -> None:
    words = ["vllm", "serve", MODEL, "-sc", '{"method": "mtp"}', "-sc.num_speculative_tokens", "3"]
    args = {"model": MODEL, "speculative_config": {"num_speculative_tokens": 3}}
    (finding,) = compare_argv(words, {"non_default_args": args})
    assert "one form only" in finding.remedy


def test_secrets_are_neither_compared_nor_shown() -> None:
    words = ["--api-key", "sk-0123456789abcdefghij", "--hf-token", "hf_0123456789abcdefghijklmnop"]
    assert lost(words, "'api_key': ['***'], 'hf_token': 'other'") == []
    (text,) = lost(["--chat-template", "sk-0123456789abcdefghij"], "'chat_template': 'x'")
    assert "0123456789" not in text


@pytest.mark.parametrize(
    ("argv", "count"),
    [
        (["/opt/bin/vllm", "serve", MODEL, "--max-num-seqs", "4"], 1),
        (["python", "-m", "vllm.entrypoints.openai.api_server", "--model", MODEL, "--max-num-seqs", "4"], 1),
        (["docker", "run", "--gpus", "all", "--name", "x", "image", MODEL, "--max-num-seqs", "4"], 1),
        (["docker", "run", "--entrypoint", "vllm", "image", "serve", MODEL, "--max-num-seqs", "4"], 1),
        (["bash", "start.sh", "--max-num-seqs", "4"], 0),
        (["serve", "--max-num-seqs", "4"], 0),
        ([], 0),
    ],
)
def test_where_vllms_own_arguments_begin(argv: list[str], count: int) -> None:
    found = compare_argv(argv, {"non_default_args": {"model": MODEL}})
    assert len(found) == count


def test_another_model() -> None:
    found = compare_argv(["vllm", "serve", "a/b"], {"non_default_args": {"model": MODEL}})
    assert [finding.text for finding in found] == ["--model: a/b was asked for, vLLM took m/x"]


@pytest.mark.parametrize("facts", [{}, {"non_default_args": "{'a': cut"}])
def test_a_log_that_does_not_say(facts: dict[str, Any]) -> None:
    assert compare_argv(["vllm", "serve", MODEL, "--max-num-seqs", "4"], facts) == ()


@pytest.mark.parametrize(
    "words",
    [
        ["--max-num-seqs"],
        ["--speculative-config", '{"method"'],
        ["--speculative-config.a", "1", "--speculative-config.a.b", "2"],
        ["--speculative-config.a"],
        ["--", "-", "--=", "--x.=1", ""],
    ],
)
def test_odd_command_lines_break_nothing(words: list[str]) -> None:
    assert isinstance(lost(words, "'speculative_config': {'a': 1}, 'max_num_seqs': 4"), list)

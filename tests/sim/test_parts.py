"""Arguments, boot lines, prefix cache, metrics page, statistics lines: no server."""

from __future__ import annotations

import io
import json
import random
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sparktui.sim import arguments, stats
from sparktui.sim.bootlog import DOWNGRADE, BootFacts, moments
from sparktui.sim.cli import main, table
from sparktui.sim.engine import Engine, EngineConfig, Request
from sparktui.sim.logfile import Log
from sparktui.sim.metrics import Metrics, Totals
from sparktui.sim.prefix import PrefixCache
from sparktui.sim.service import EngineService
from sparktui.sim.truth import Truth

FIXTURES = Path(__file__).parents[1] / "fixtures"
SPEC = '{"method":"dspark","model":"/models/d","num_speculative_tokens":3}'


def boot_text(**changes: object) -> str:
    """All boot lines, without waiting."""
    values: dict[str, object] = {
        "model": "m",
        "shown_args": {},
        "seconds": 10.0,
        "max_model_len": 8192,
        "max_num_batched_tokens": 8192,
        "max_num_seqs": 64,
        "kv_tokens": 656_128,
        "backend": "FLASHINFER",
    }
    facts = BootFacts(**(values | changes))  # type: ignore[arg-type]
    stream = io.StringIO()
    log = Log(stream, 1, 2)
    for moment in moments(facts):
        moment.emit(log)
    return stream.getvalue()


def page_labels(text: str) -> dict[str, set[frozenset[str]]]:
    """Sample name to the sets of its label names; buckets with their bounds."""
    found: dict[str, set[frozenset[str]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {f"le={v}" if k == "le" else k for k, v in sample.labels.items()}
            found.setdefault(sample.name, set()).add(frozenset(labels))
    return found


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


def test_main_without_a_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "sparktui sim serve" in capsys.readouterr().err
    assert main(["table"]) == 0
    assert capsys.readouterr().out == table(Truth())


def test_the_table_begins_with_the_published_figures() -> None:
    assert table(Truth()).splitlines()[2].split() == ["1", "77.5", "38.4", "41.0", "40.8"]


def test_the_downgrade_is_word_for_word_as_recorded() -> None:
    recorded = (FIXTURES / "vllm-0.24.0-h200-flashinfer" / "boot_fi_ngram.log").read_text(encoding="utf-8")
    assert DOWNGRADE in recorded
    text = boot_text(speculative=json.loads(SPEC), downgraded=True)
    assert text.count(DOWNGRADE) == 1
    profiling = "Profiling CUDA graph memory: PIECEWISE=51 (largest=512)\n"
    assert profiling in recorded
    assert profiling in text
    assert "FULL)" not in text


def test_boot_lines_have_the_recorded_grammar() -> None:
    record = re.compile(
        r"\((APIServer|EngineCore) pid=\d+\) (INFO|WARNING) \d\d-\d\d \d\d:\d\d:\d\d \[\S+:\d+\] "
    )
    raw = re.compile(
        r"\(EngineCore pid=2\) (\r?Capturing CUDA graphs \(|Loading safetensors checkpoint shards: |$)"
    )
    text = boot_text()
    for line in text.split("\n")[:-1]:
        assert record.match(line) or raw.match(line), line
    assert "PIECEWISE=51 (largest=512), FULL=35 (largest=256)\n" in text
    assert DOWNGRADE not in text
    bar = next(line for line in text.split("\n") if "(decode, FULL)" in line)
    assert bar.startswith("(EngineCore pid=2) \rCapturing CUDA graphs (decode, FULL):   0%|          | 0/35")
    assert bar.count("\r") > 3
    assert "100%|██████████| 35/35" in bar


def test_eager_has_no_compilation_and_no_graphs() -> None:
    text = boot_text(eager=True, speculative=json.loads(SPEC), downgraded=True)
    assert "Enforce eager set, disabling torch.compile and CUDAGraphs" in text
    for absent in ("torch.compile took", "Capturing", "Profiling CUDA graph", DOWNGRADE):
        assert absent not in text


def test_prefix_cache_knows_whole_leading_blocks() -> None:
    cache = PrefixCache(10_000)
    text = "".join(random.Random(1).choices("abcdefgh", k=640))  # 160 tokens, ten blocks
    assert cache.match(text) == 0
    assert cache.match(text) == 144  # the last token is computed, so its block is too
    assert cache.match(text[:320] + "x" * 320) == 80
    assert cache.match("x" + text) == 0


def test_prefix_cache_forgets_the_oldest() -> None:
    cache = PrefixCache(64)  # four blocks
    first, second = "a" * 256 + "tail", "b" * 256 + "tail"
    cache.match(first)
    cache.match(second)
    assert cache.match(first) == 0


def test_metrics_page_has_vllms_names_labels_and_buckets() -> None:
    recorded = page_labels(
        (FIXTURES / "vllm-0.27.1-cpu" / "metrics_draft_idle.txt").read_text(encoding="utf-8")
    )
    ours = page_labels(Metrics("tiny", 3, {"block_size": "16"}).page().decode())
    ours.pop("vllm:cache_config_info")
    assert "vllm:spec_decode_num_accepted_tokens_per_pos_total" in ours
    assert set(ours) <= set(recorded)
    for name, labels in ours.items():
        assert labels == recorded[name], name
    left_out = {name for name in recorded if name.startswith("vllm:")} - set(ours)
    assert {name.rsplit("_gpu", 1)[0] for name in left_out} == {
        "vllm:cache_config_info",
        "vllm:estimated_flops_per",
        "vllm:estimated_read_bytes_per",
        "vllm:estimated_write_bytes_per",
    }


def test_without_speculation_there_are_no_spec_counters() -> None:
    assert b"spec_decode" not in Metrics("tiny", 0, {}).page()


def test_metrics_count_steps_not_tokens() -> None:
    engine = Engine(EngineConfig(k=3, noise=0.0, restart_noise=0.0), random.Random(3))
    metrics = Metrics("tiny", 3, {})
    engine.add(Request("r", prompt_tokens=50, max_tokens=200, cached_tokens=16), 0.0)
    steps = 0
    while engine.due is not None:
        step = engine.step(engine.due)
        assert step is not None
        metrics.record(step, engine)
        steps += 1
    sums = {
        sample.name: sample.value
        for family in text_string_to_metric_families(metrics.page().decode())
        for sample in family.samples
        if "le" not in sample.labels
    }
    assert sums["vllm:generation_tokens_total"] == 200
    assert sums["vllm:prompt_tokens_total"] == 50
    assert sums["vllm:prefix_cache_hits_total"] == 16
    assert sums["vllm:inter_token_latency_seconds_count"] == steps - 1
    assert sums["vllm:time_to_first_token_seconds_count"] == 1
    assert sums["vllm:spec_decode_num_drafts_total"] == steps - 1
    mean_step = sums["vllm:inter_token_latency_seconds_sum"] / (steps - 1)
    assert mean_step == pytest.approx(Truth().step_s(3))


async def test_statistics_lines_read_as_recorded() -> None:
    recorded = (FIXTURES / "vllm-0.24.0-h200-flashinfer" / "boot_fi_ngram.log").read_text(encoding="utf-8")
    service = EngineService(Engine(EngineConfig(), random.Random(1)), Metrics("m", 3, {}))
    before = Totals(accepted=(0, 0, 0))
    after = Totals(321, 621, 321, 32, 58, 173, (58, 58, 57))
    ours = [stats.engine_line(before, after, 10.0, service), stats.spec_line(before, after, 10.0)]
    for line, start in zip(ours, ("Engine 000: ", "SpecDecoding metrics: "), strict=True):
        theirs = next(part.split("] ", 1)[1] for part in recorded.split("\n") if f"] {start}" in part)
        assert re.sub(r"[\d.]+", "0", line) == re.sub(r"[\d.]+", "0", theirs)
    assert "Avg prompt throughput: 32.1 tokens/s" in ours[0]
    assert "Mean acceptance length: 3.98" in ours[1]
    assert "Per-position acceptance rate: 1.000, 1.000, 0.983" in ours[1]

"""The A/B on a real vLLM, both ways round: here ngram speculation wins at temperature 0 with one stream
(the model repeats itself, every draft is right) and loses at temperature 1 with 32 (no draft ever is)."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparktui.schema.codec import loads
from sparktui.schema.records import ArmReport, Report
from tests.support import Home, free_port

pytestmark = pytest.mark.real

PROFILE = """\
name: real
runner: local
vllm_bin: {folder}/bin/vllm
vllm: "0.32.0"
model: {folder}/models/tiny
port: {port}
env: {{HF_HUB_OFFLINE: "1", VLLM_NO_USAGE_STATS: "1", DO_NOT_TRACK: "1", VLLM_CPU_KVCACHE_SPACE: "1"}}
args: {{served-model-name: tiny, load-format: dummy, max-model-len: 4096, max-num-seqs: 32, dtype: bfloat16,
        enforce-eager: true}}
speculative: {{method: ngram, num_speculative_tokens: 3, prompt_lookup_max: 4}}
load: {{temperature: {temperature}, input_tokens: 128, output_tokens: {tokens}}}
measure: {{settle_s: 6, batch_s: 2, min_window_s: 16, max_window_s: {window}, precision: 0.03}}
ready_timeout_s: 900
"""


def measured(
    home: Home, folder: Path, concurrency: int, temperature: float, *, tokens: int, window: int
) -> tuple[Report, str]:
    path = home.path / "real.yaml"
    path.write_text(
        PROFILE.format(
            folder=folder, port=free_port(), temperature=temperature, tokens=tokens, window=window
        ),
        "utf-8",
    )
    out = home.path / "r.json"
    code, output = home.run("ab", path, "-c", concurrency, "--json", out, timeout=1500)
    assert code == 0, output
    assert not home.processes(), "nothing of it may be left"
    print(output)
    return loads(Report, out.read_bytes()), output


def check_arms(report: Report) -> tuple[ArmReport, ArmReport]:
    off, on = report.arms
    assert off.vllm_version is not None
    assert off.vllm_version.startswith("0.32.0")
    assert off.facts["model_runner"] == "V1"
    assert "spec-async-off" in [f.id for f in on.findings] or "spec-async-v1" in [f.id for f in on.findings]
    assert [p.name for p in off.phases][-1] == "ready"
    for arm in report.arms:
        (cell,) = arm.cells
        assert cell.errors == 0
        assert cell.server_output_tok_s == pytest.approx(cell.output_tok_s, rel=0.25)
    assert off.cells[0].acceptance_rate is None  # absent, not zero
    assert off.cells[0].acceptance_by_position == ()
    return off, on


def disturbed(report: Report) -> bool:
    """Whether the machine was too busy for this client, by the report's own words."""
    return any("client-limited" in cell.flags for arm in report.arms for cell in arm.cells)


def test_speculation_wins_at_temperature_0_with_one_stream(home: Home, vllm_cpu: Path) -> None:
    report, output = measured(home, vllm_cpu, 1, 0.0, tokens=1200, window=30)
    if disturbed(report):
        report, output = measured(home, vllm_cpu, 1, 0.0, tokens=1200, window=30)
    off, on = check_arms(report)
    headline = next(v for v in report.verdicts if v.headline)
    assert headline.metric == "decode_tok_s"
    # a client held up for seconds reads whole answers at once: it may hide the gain, never turn it round
    assert headline.call in (("faster", "not settled") if disturbed(report) else ("faster",)), output
    if headline.call == "faster":
        assert headline.text.startswith("Keep speculation ON")
    cell = on.cells[0]
    assert (cell.output_tok_s or 0) > (off.cells[0].output_tok_s or 0), output
    assert cell.acceptance_rate is not None
    assert cell.acceptance_rate > 0.8
    assert len(cell.acceptance_by_position) == 3
    assert cell.tokens_per_step is not None
    assert cell.tokens_per_step > 2.5


def test_speculation_loses_at_temperature_1_with_32_streams(home: Home, vllm_cpu: Path) -> None:
    report, output = measured(home, vllm_cpu, 32, 1.0, tokens=128, window=48)
    _, on = check_arms(report)
    headline = next(v for v in report.verdicts if v.headline)
    assert headline.metric == "output_tok_s"
    assert headline.ratio is not None
    assert headline.ratio < 1, output
    # 32 streams on a machine whose neighbours are busy: its noise may hide what it costs, never turn it round
    assert headline.call in ("slower", "not settled"), output
    if headline.call == "slower":
        assert headline.text.startswith("Turn speculation OFF")
    rate = on.cells[0].acceptance_rate
    assert rate is None or rate < 0.3

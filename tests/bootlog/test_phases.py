from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from sparktui.bootlog.clock import LogClock
from sparktui.bootlog.phases import PHASES, PhaseTracker
from sparktui.schema.live import BootPhase
from tests.bootlog.logs import LOGS, line, log_lines, read_log

RECORDED = dict(  # when each phase begins, in seconds since the log's first time stamp
    row.split(": ")
    for row in Path(__file__).with_name("recorded_phases.txt").read_text(encoding="utf-8").splitlines()
)


def recorded(log: str) -> tuple[BootPhase, ...]:
    """The phases by the log's own clock."""
    tracker, clock = PhaseTracker(), LogClock()
    for each in log_lines(log):
        tracker.feed(each, clock.read(each))
    return tracker.phases


def fed(*messages: str | tuple[str, float]) -> PhaseTracker:
    """A tracker that saw these messages, a second apart unless they say when."""
    tracker = PhaseTracker()
    for number, message in enumerate(messages, 1):
        text, t = message if isinstance(message, tuple) else (message, float(number))
        tracker.feed(line(text), t)
    return tracker


def told(tracker: PhaseTracker) -> list[tuple[str, float]]:
    return [(phase.name, phase.start_s) for phase in tracker.phases]


@pytest.mark.parametrize("log", RECORDED)
def test_recorded_logs(log: str) -> None:
    phases = recorded(log)
    assert ", ".join(f"{phase.name} {phase.start_s:.0f}" for phase in phases) == RECORDED[log]
    for before, after in pairwise(phases):
        assert before.seconds == after.start_s - before.start_s
    assert phases[-1].seconds == (0.0 if phases[-1].name == "ready" else None)
    for phase in phases:
        assert phase.quiet_s <= (phases[-1].start_s if phase.seconds is None else phase.seconds)


def test_every_recorded_log_is_in_the_table() -> None:
    folders = ("0.24.0-h200", "0.27.1-cpu", "0.32.0-cpu")
    assert {f"{path.parent.name}/{path.name}" for f in folders for path in (LOGS / f).glob("*.log")} == set(
        RECORDED
    )


@pytest.mark.parametrize("chunk", [61, 4096])
def test_the_same_phases_while_the_log_grows(chunk: int) -> None:
    assert [phase.name for phase in read_log("0.24.0-h200/boot_fi_ngram.log", chunk).phases] == list(PHASES)


def test_longest_silences() -> None:
    quiet = {phase.name: phase.quiet_s for phase in recorded("0.24.0-h200/boot_fi_ngram.log")}
    assert quiet["config"] == 23  # 18:15:57 to 18:16:20; later in the phase 19 s
    assert quiet["weights"] == 6
    assert quiet["profile"] == 9
    assert quiet["ready"] == 0
    quiet = {phase.name: phase.quiet_s for phase in recorded("0.24.0-h200/boot_fa_off.log")}
    assert (quiet["capture"], quiet["server"]) == (1, 14)  # the V2 runner warms up after its graphs


def test_the_drafters_compilation_is_compilation() -> None:
    """17:52:58 to 17:53:09 the model, to 17:53:18 the drafter, then the profile."""
    phases = {phase.name: phase for phase in recorded("0.24.0-h200/boot_draft.log")}
    assert phases["compile"].seconds == 20
    assert phases["profile"].quiet_s == 9


ENGINE = "Initializing a V1 LLM engine (v0.27.1) with config: model='m', speculative_config={}, seed=0"
MTP = ENGINE.format("SpeculativeConfig(method='mtp', model='m', num_spec_tokens=3)")
NGRAM = ENGINE.format("SpeculativeConfig(method='ngram', model=None, num_spec_tokens=3)")
COMPILED = ("Dynamo bytecode transform time: 3 s", "Initial profiling/warmup run took 0.2 s")


def test_a_drafter_that_is_not_compiled_costs_the_profile_nothing() -> None:
    tracker = fed(MTP, *COMPILED)
    assert tracker.phases[-1].name == "compile"
    tracker.feed(line("Available KV cache memory: 40 GiB"), 20.0)
    assert told(tracker) == [("launch", 0), ("engine", 1), ("compile", 2), ("profile", 3)]
    tracker = fed(MTP, *COMPILED, ("GPU KV cache size: 10 tokens", 9.0))
    assert told(tracker)[-2:] == [("profile", 3), ("kv", 9)]
    assert tracker.phases[-2].quiet_s == 6


@pytest.mark.parametrize("engine", [NGRAM, ENGINE.format("None")])
def test_without_a_drafters_model_the_profile_begins_at_once(engine: str) -> None:
    assert told(fed(engine, *COMPILED))[-1] == ("profile", 3)


def test_the_drafters_second_run_ends_compiling() -> None:
    tracker = fed(MTP, *COMPILED, "[eagle_head] Dynamo bytecode transform time: 1 s", COMPILED[1])
    assert told(tracker)[-2:] == [("compile", 2), ("profile", 5)]


def test_tags_name_the_compiled_part() -> None:
    tracker = fed("[backbone] Using cache directory: /c/x for vLLM's torch.compile")
    assert told(tracker)[-1] == ("compile", 1)
    tracker = fed("[backbone] Starting torch.compile", "[backbone] Initial profiling/warmup run took 0.02 s")
    assert told(tracker)[1:] == [("compile", 1), ("profile", 2)]


@pytest.mark.parametrize(
    "early",
    [
        "Capturing CUDA graphs (PIECEWISE):  50%|█████     | 1/2 [00:00<00:00]",  # to measure memory
        "Warming up Mamba2 SSD Triton kernels...",
        "Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup.",
        "FlashInfer autotuning is disabled",
        "Loading drafter model...",
    ],
)
def test_words_that_come_early(early: str) -> None:
    tracker = fed("Starting to load model m...", early)
    assert tracker.phases[-1].name == "weights"
    assert {phase.progress for phase in tracker.phases} == {None}


def test_a_startup_plan_leaves_out_the_profile() -> None:
    tracker = fed(
        "Starting to load model m...",
        "Applying persisted startup plan (fingerprint 12ab): kv_cache_memory_bytes=1",
        *COMPILED,
        "Initial free memory 100 GiB, reserved 40 GiB memory for KV Cache as specified by "
        "kv_cache_memory_bytes config and skipped memory profiling.",
        "GPU KV cache size: 10 tokens",
    )
    assert told(tracker)[2:] == [("compile", 3), ("profile", 4), ("kv", 6)]


def test_sleeping_and_waking_begin_nothing() -> None:
    tracker = fed("Application startup complete.", "It took 1.2 seconds to fall asleep.", "KV cache size:")
    assert told(tracker) == [("launch", 0), ("ready", 1)]


@pytest.mark.parametrize(
    ("message", "phase"),
    [
        ("args: Namespace(model='m')", "config"),
        ("Initializing an LLM engine (v0.5.0) with config: model='m'", "engine"),
        ("Initializing a V0 LLM engine (v0.8.5) with config: model='m'", "engine"),
        ("Loading pt checkpoint shards:   0% Completed | 0/2 [00:00<?, ?it/s]", "weights"),
        ("Multi-thread loading shards:   0% Completed | 0/2 [00:00<?, ?it/s]", "weights"),
        ("Directly load AOT compilation from path /c/x", "compile"),
        ("Memory profiling takes 4.38 seconds", "profile"),
        ("# GPU blocks: 7000, # CPU blocks: 2048", "kv"),
        ("Starting vLLM API server 0 on http://0.0.0.0:8000", "server"),
        ("Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)", "ready"),
    ],
)
def test_other_releases_words(message: str, phase: str) -> None:
    assert fed(message).phases[-1].name == phase


@pytest.mark.parametrize(
    ("message", "phase"),
    [
        ("DeepGEMM warmup:  25%|██▌       | 30/120 [00:01<00:03, 30.00it/s]", "warm-up"),
        ("JIT kernel warmup starting.", "warm-up"),
        ("Skipping FlashInfer autotune because it is disabled.", "warm-up"),
        ("Compile and warming up model for size 8192", "warm-up"),
        (
            "[AutoTuner]: Tuning flashinfer::moe:  50%|█████     | 11/22 [06:15<07:51, 42.84s/profile]",
            "warm-up",
        ),
        ("Capturing CUDA graph shapes:   0%|          | 0/35 [00:00<?, ?it/s]", "capture"),
        ("Capturing the model for CUDA graphs. This may lead to unexpected consequences", "capture"),
        ("Capturing encoder CUDA graphs (FULL):   0%|          | 0/3 [00:00<?, ?it/s]", "capture"),
    ],
)
def test_words_after_the_kv_cache(message: str, phase: str) -> None:
    assert fed("GPU KV cache size: 10 tokens", message).phases[-1].name == phase


def test_it_never_goes_backwards() -> None:
    tracker = fed(("GPU KV cache size: 10 tokens", 5.0), ("Dynamo bytecode transform time: 3 s", 6.0))
    assert told(tracker) == [("launch", 0), ("kv", 5)]


def test_a_server_that_serves_is_ready_whether_it_said_so_or_not() -> None:
    stats = "Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s"
    tracker = fed(("Starting vLLM server on http://127.0.0.1:8000", 30.0), (stats, 500.0))
    assert tracker.is_ready
    assert told(tracker)[-1] == ("ready", 30)
    assert max(phase.quiet_s for phase in tracker.phases if phase.name == "ready") == 0


BIND = "[Errno 98] error while attempting to bind on address ('0.0.0.0', 44319): address already in use"


def test_no_port_is_not_ready() -> None:
    tracker = fed("Starting vLLM server on http://127.0.0.1:8000", "Application startup complete.")
    assert tracker.is_ready
    tracker.feed(line(BIND), 3.0)
    assert not tracker.is_ready
    assert (tracker.phases[-1].name, tracker.phases[-1].seconds) == ("server", None)
    tracker.feed(line("Application startup complete."), 4.0)
    assert not tracker.is_ready
    assert tracker.silence(100.0, {}) is None
    tracker.ready(5.0)
    assert tracker.is_ready


def test_the_caller_may_know_better() -> None:
    tracker = PhaseTracker()
    tracker.ready(7.0)
    tracker.ready(9.0)
    tracker.feed(line("non-default args: {}"), 10.0)
    tracker.feed(line(BIND), 11.0)
    assert tracker.is_ready
    assert told(tracker) == [("launch", 0), ("ready", 7)]


SHARDS = "Loading safetensors checkpoint shards:  {}% Completed | {}/{} [00:00<?, ?it/s]"


def test_weight_bar_and_a_drafters_second_bar() -> None:
    tracker = fed(SHARDS.format(25, 1, 4))
    assert (tracker.phases[-1].name, tracker.phases[-1].progress) == ("weights", 0.25)
    tracker.feed(line(SHARDS.format(100, 4, 4)), 2.0)
    assert tracker.phases[-1].progress == 1.0
    tracker.feed(line(SHARDS.format(0, 0, 1)), 3.0)
    assert tracker.phases[-1].progress == 0.8
    tracker.feed(line(SHARDS.format(100, 1, 1)), 3.0)
    assert tracker.phases[-1].progress == 1.0


def test_a_weight_bar_in_bytes() -> None:
    bar = "Loading safetensors using InstantTensor loader:  38% Completed | 900M/2.40G [00:03<00:05, 300MB/s]"
    assert fed(bar).phases[-1].progress == pytest.approx(0.375)


KV = "GPU KV cache size: 10 tokens"


def test_capture_bars_share_what_was_planned() -> None:
    plan = "Profiling CUDA graph memory: PIECEWISE=30 (largest=512), FULL=10 (largest=256)"
    mixed = "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): {:3}%|██ | {}/30 [00:01<00:01]"
    tracker = fed(plan, KV, mixed.format(67, 20))
    assert tracker.phases[-1].progress == 0.5
    tracker.feed(line(mixed.format(100, 30)), 4.0)
    tracker.feed(line("Capturing CUDA graphs (decode, FULL): 100%|███| 10/10 [00:01<00:01]"), 5.0)
    assert tracker.phases[-1].progress == 1.0


def test_capture_bars_of_the_v2_runner_and_its_drafter() -> None:
    tracker = fed(KV, "Capturing CUDA graphs (PIECEWISE): 100%|██████████| 19/19 [00:00<00:00, 41.77it/s]")
    tracker.feed(line("Capturing CUDA graphs (FULL): 100%|██████████| 11/11 [00:00<00:00, 51.80it/s]"), 3.0)
    assert tracker.phases[-1].progress == 1.0
    tracker.feed(line("Capturing decode CUDA graphs (FULL):  50%|█████     | 5/10 [00:00<00:00]"), 4.0)
    assert tracker.phases[-1].progress == 35 / 40


def test_warm_up_bars() -> None:
    tracker = fed(KV, "DeepGEMM warmup:  25%|██▌       | 30/120 [00:01<00:03, 30.00it/s]")
    assert tracker.phases[-1].progress == 0.25
    tracker.feed(line("Available KV cache memory: 40.05 GiB"), 3.0)
    assert tracker.phases[-1].progress == 0.25


def test_a_silence_is_told_after_ten_seconds() -> None:
    tracker = fed("non-default args: {}", ("Resolved architecture: M", 4.0))
    assert tracker.silence(14.0, {}) is None
    silence = tracker.silence(14.5, {"config": 30.0, "weights": 3.0})
    assert silence is not None
    assert (silence.seconds, silence.before_s) == (10.5, 30.0)
    assert "configuration" in silence.reason


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ((), "Python imports"),
        (("Unable to find image 'vllm/vllm-openai:v0.27.1' locally",), "docker pulls the image"),
        (("non-default args: {}", "Using max model len 4096", "Some line"), "engine's process starts"),
        ((ENGINE.format("None"), "vLLM is using nccl==2.27"), "GPUs are set up"),
        (("Starting to load model m...",), "downloads may print nothing"),
        (("Starting to load model m...", SHARDS.format(25, 1, 4)), "while a shard is"),
        (("Starting to load model m...", "Model loading took 1.2 GiB"), "traced for torch.compile"),
        (("Dynamo bytecode transform time: 3 s",), "graphs are compiled"),
        ((MTP, *COMPILED), "memory is measured"),
        ((KV, "Running FlashInfer autotune with 8192 tokens"), "minutes are normal"),
        ((KV, "Capturing CUDA graphs (FULL):   0%|          | 0/2 [00:00<?]"), "graphs are captured"),
        ((KV, "Graph capturing finished in 1 secs, took 0.16 GiB"), "warms up once more"),
        ((KV, "EngineCore failed to start."), "an error was printed"),
    ],
)
def test_why_it_may_be_silent(messages: tuple[str, ...], reason: str) -> None:
    silence = fed(*messages).silence(100.0, {})
    assert silence is not None
    assert reason in silence.reason
    assert silence.before_s is None


def test_a_silence_is_long_only_by_its_own_history() -> None:
    tracker = fed("Running FlashInfer autotune", KV, "Running FlashInfer autotune with 8192 tokens")
    for t, before, longer in (
        (9000.0, {}, False),
        (203.0, {"warm-up": 100.0}, False),
        (203.5, {"warm-up": 100.0}, True),
    ):
        silence = tracker.silence(t, before)
        assert silence is not None
        assert ("longer than in any earlier boot here" in silence.reason) is longer
        assert "hang" not in silence.reason


def test_while_a_drafter_may_follow_the_longer_history_counts() -> None:
    silence = fed(MTP, *COMPILED).silence(60.0, {"compile": 8.0, "profile": 50.0})
    assert silence is not None
    assert silence.before_s == 50.0
    assert "longer" not in silence.reason


def test_bars_are_output_and_waiting_is_not() -> None:
    tracker = fed(KV, ("DeepGEMM warmup:  25%|██▌       | 30/120 [00:01<00:03, 30.00it/s]", 50.0))
    assert tracker.silence(59.0, {}) is None
    tracker.feed(
        line("No available shared memory broadcast block found in 60 seconds. This typically"), 110.0
    )
    silence = tracker.silence(112.0, {})
    assert silence is not None
    assert silence.seconds == 62


def test_a_server_that_is_ready_may_be_silent() -> None:
    assert fed("Application startup complete.").silence(9000.0, {}) is None

from __future__ import annotations

from itertools import pairwise

import pytest

from sparktui.bootlog.phases import PHASES, PhaseTracker
from tests.bootlog.logs import line, read_log


def names(log: str) -> list[str]:
    return [phase.name for phase in read_log(log).phases]


def test_h200_goes_through_every_phase() -> None:
    assert names("0.24.0-h200/boot_fi_ngram.log") == list(PHASES)


@pytest.mark.parametrize("log", ["0.27.1-cpu/boot_off.log", "0.32.0-cpu/boot_off_noconflict_pipe.log"])
def test_eager_boot_skips_compile_and_capture(log: str) -> None:
    assert names(log) == ["launch", "config", "engine", "weights", "kv", "server", "ready"]


def test_lines_that_name_the_compiled_part_count_too() -> None:
    phases = ["launch", "config", "engine", "weights", "compile", "profile", "kv", "server", "ready"]
    assert names("0.32.0-cpu/boot_off_noeager_pipe.log") == phases
    tracker = PhaseTracker()
    tracker.feed(line("[backbone] Using cache directory: /c/x for vLLM's torch.compile"), 1.0)
    assert tracker.phases[-1].name == "compile"


def test_phases_follow_each_other() -> None:
    phases = read_log("0.24.0-h200/boot_off.log").phases
    assert phases[0].start_s == 0.0
    for before, after in pairwise(phases):
        assert before.seconds is not None
        assert after.start_s == pytest.approx(before.start_s + before.seconds)
    assert phases[-1].seconds == 0.0


def test_a_failed_boot_stays_in_its_phase() -> None:
    phases = read_log("0.24.0-h200/boot_fail_missing_flashinfer.log").phases
    assert (phases[-1].name, phases[-1].seconds) == ("weights", None)


def test_it_never_goes_backwards() -> None:
    tracker = PhaseTracker()
    tracker.feed(line("GPU KV cache size: 10 tokens"), 5.0)
    tracker.feed(line("Dynamo bytecode transform time: 3 s"), 6.0)
    assert [(phase.name, phase.start_s) for phase in tracker.phases] == [("launch", 0.0), ("kv", 5.0)]


def test_weight_bar_and_a_drafters_second_bar() -> None:
    tracker = PhaseTracker()
    bar = "Loading safetensors checkpoint shards:  {}% Completed | {}/4 [00:00<?, ?it/s]"
    tracker.feed(line(bar.format(25, 1)), 1.0)
    assert (tracker.phases[-1].name, tracker.phases[-1].progress) == ("weights", 0.25)
    tracker.feed(line(bar.format(100, 4)), 2.0)
    tracker.feed(line(bar.format(0, 0)), 3.0)
    assert tracker.phases[-1].progress == 1.0


def test_capture_bars_share_what_was_planned() -> None:
    tracker = PhaseTracker()
    tracker.feed(line("Profiling CUDA graph memory: PIECEWISE=30 (largest=512), FULL=10 (largest=256)"), 1.0)
    tracker.feed(
        line("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  67%|██ | 20/30 [00:01<00:01]"), 2.0
    )
    assert tracker.phases[-1].progress == 0.5
    tracker.feed(
        line("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|██ | 30/30 [00:01<00:01]"), 2.0
    )
    tracker.feed(line("Capturing CUDA graphs (decode, FULL): 100%|███| 10/10 [00:01<00:01]"), 3.0)
    assert tracker.phases[-1].progress == 1.0


def test_the_caller_may_know_better() -> None:
    tracker = PhaseTracker()
    tracker.ready(7.0)
    tracker.ready(9.0)
    tracker.feed(line("non-default args: {}"), 10.0)
    assert tracker.is_ready
    assert [(phase.name, phase.start_s) for phase in tracker.phases] == [("launch", 0.0), ("ready", 7.0)]

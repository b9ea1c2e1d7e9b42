"""CPU time of reading a /metrics page: python benchmarks/metrics_page.py [ROUNDS, default 30].

Ours beside prometheus_client's plain parser on the same text in the same run: the recorded page of a busy
vLLM 0.32, the same for eight engines, and one of 5 MB (that of a server that has seen very many URLs). Best
of the rounds counts; a calibration loop of 1e6 additions (about 25 ms on an idle core of 2020) tells how busy
the machine was.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from sparktui.metrics.page import parse

PAGE = Path(__file__).parent.parent / "tests" / "fixtures" / "metrics" / "0.32.0-cpu" / "on_midload.txt"
GOAL_MS = 10.0
ENGINES, LARGE_BYTES = 8, 5_000_000
URL = 'http_requests_total{{handler="/v1/{:08}",method="POST",status="404"}} 1.0\n'


def pages() -> dict[str, str]:
    """What is read, by its name."""
    recorded = PAGE.read_text("utf-8")
    samples = [line for line in recorded.splitlines() if line.startswith("vllm:")]
    several = recorded + "".join(
        line.replace('engine="0"', f'engine="{i}"') + "\n" for i in range(1, ENGINES) for line in samples
    )
    noise = "".join(URL.format(i) for i in range((LARGE_BYTES - len(recorded)) // len(URL.format(0))))
    return {"vLLM 0.32, busy": recorded, f"{ENGINES} engines": several, "5 MB": recorded + noise}


def plain(text: str) -> None:
    """Every sample, as prometheus_client gives it."""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            float(sample.value)


def cpu_ms(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds of CPU of the best round."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best * 1000


def additions() -> None:
    total = 0
    for i in range(1_000_000):
        total += i


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    before = cpu_ms(additions, 1)
    print(f"{'page':18}{'kB':>8}{'ours, ms':>11}{'plain, ms':>11}{'ratio':>8}")
    first = 0.0
    for name, text in pages().items():
        repeat = rounds if len(text) < LARGE_BYTES / 2 else max(3, rounds // 10)
        ours, theirs = cpu_ms(lambda t=text: parse(t, 0.0), repeat), cpu_ms(lambda t=text: plain(t), repeat)  # type: ignore[misc]
        first = first or ours
        print(f"{name:18}{len(text) / 1e3:8,.0f}{ours:11.2f}{theirs:11.2f}{theirs / ours:7.1f}x")
    print(f"goal: {GOAL_MS:.0f} ms for the first, {'reached' if first <= GOAL_MS else 'missed'}", end="")
    print(f" (calibration {before:.0f} and {cpu_ms(additions, 1):.0f} ms)")


if __name__ == "__main__":
    main()

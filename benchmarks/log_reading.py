"""MB/s of the boot log reader, and its memory: python benchmarks/log_reading.py [MB, default 200].

Input: the recorded boot logs, and the long tail of a server that serves (access lines, statistics), made of
recorded lines with other ports and figures. All of it in chunks of 64 KiB. CPU time of the best of
five rounds counts, and a calibration loop of 1e6 additions (about 25 ms on an idle core of 2020) tells how
busy the machine was.
"""

from __future__ import annotations

import re
import resource
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from sparktui.bootlog.lines import LineSplitter
from sparktui.bootlog.reader import BootReader

LOGS = Path(__file__).parent.parent / "tests" / "fixtures" / "logs"
CHUNK = 64 * 1024
CHUNK_S = 60.0  # seconds in which a server writes so much
ROUNDS = 5
TAIL_LINES = 40_000
BOOT = "0.24.0-h200/boot_draft.log"
SERVING = re.compile(rb'" 200 OK|Engine 000: |SpecDecoding metrics: ')
FIGURE = re.compile(rb"(?<=127\.0\.0\.1:)\d+|(?<=throughput: )\d+(?=\.)|(?<=Drafted: )\d+|(?<=usage: )\d+")


def recorded() -> dict[str, bytes]:
    """Every recorded log."""
    return {str(path.relative_to(LOGS)): path.read_bytes() for path in sorted(LOGS.glob("*/*.log"))}


def serving_lines() -> Iterator[bytes]:
    """A server's lines while it serves, without end: no two rounds with the same figures."""
    lines = [
        line
        for data in recorded().values()
        for line in data.split(b"\n")
        if SERVING.search(line) and b"\x1b" not in line
    ]
    seen = 0
    while True:
        for line in lines:
            seen += 1
            yield FIGURE.sub(str(seen % 50_000 + 1000).encode(), line) + b"\n"


def chunks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), CHUNK):
        yield data[start : start + CHUNK]


def split(data: bytes) -> None:
    splitter = LineSplitter()
    for chunk in chunks(data):
        splitter.feed(chunk)
    splitter.flush()


def read(data: bytes) -> None:
    reader = BootReader(0.0)
    t = 0.0
    for t, chunk in enumerate(chunks(data)):
        reader.feed(chunk, t * CHUNK_S)
    reader.flush(t * CHUNK_S)


def each(work: Callable[[bytes], None], logs: list[bytes]) -> None:
    for log in logs:
        work(log)


def cpu(work: Callable[[], None]) -> float:
    """CPU seconds of the best round."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def calibration() -> float:
    """Milliseconds of CPU for a million additions."""
    begun, total = time.process_time(), 0
    for i in range(1_000_000):
        total += i
    return (time.process_time() - begun) * 1000


def report(what: str, logs: list[bytes]) -> None:
    size, lines = sum(map(len, logs)), sum(log.count(b"\n") for log in logs)
    print(f"{what}: {size / 1e6:.1f} MB, {lines:,} lines")
    for name, work in (("splitter", split), ("whole reader", read)):
        before = calibration()
        seconds = cpu(lambda work=work: each(work, logs))  # type: ignore[misc]
        print(
            f"  {name:14}{size / seconds / 1e6:6.1f} MB/s {seconds / lines * 1e6:7.2f} µs a line   "
            f"(calibration {before:.0f} and {calibration():.0f} ms)"
        )


def memory(megabytes: float) -> None:
    """Peak memory over a boot and a long tail of it, through one reader."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reader, fed, t = BootReader(0.0), 0, 0.0
    reader.feed((LOGS / BOOT).read_bytes(), t)
    begun, lines = time.process_time(), serving_lines()
    while fed < megabytes * 1e6:
        chunk = b"".join(islice(lines, CHUNK // 128))
        fed += len(chunk)
        t += CHUNK_S
        reader.feed(chunk, t)
        reader.take_stats()
    spent = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{fed / 1e6:.0f} MB of one server: {peak / 1024:.0f} MiB at most, {before / 1024:.0f} before")
    print(f"  {spent:.0f} s of CPU, making the lines included")


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 200.0
    memory(megabytes)  # first: the peak never falls
    report("recorded boots", list(recorded().values()))
    tail = b"".join(islice(serving_lines(), TAIL_LINES))
    report("serving", [(LOGS / BOOT).read_bytes() + tail])


if __name__ == "__main__":
    main()

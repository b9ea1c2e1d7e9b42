"""The log of a boot and of a busy server: its grammar, its milestones in order, who says them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from sparktui.bootlog.lines import Line
from sparktui.bootlog.phases import PhaseTracker
from sparktui.bootlog.secrecy import MASK
from tests.contract.launcher import KEY, MAX_MODEL_LEN, MAX_NUM_BATCHED_TOKENS, MAX_NUM_SEQS, K
from tests.contract.server import READY, Server
from tests.contract.wire import CHAT, chat, get, post
from tests.support import until

# where a GPU's single engine process does it itself, the CPU build has a Worker process
ENGINE = {"EngineCore", "Worker"}
NAMES = {"APIServer", "EngineCore"}
CPU_ONLY = {"Worker", "VllmWorker-0"}
# memory profiling and kernel warm-up: only on a GPU; --enforce-eager leaves out compiling and capturing
GPU_ONLY = {"profile", "warm-up"}
PHASES = ["launch", "config", "engine", "weights", "kv", "server", "ready"]
LOADING = r"Starting to load model \S+/models/tinyw\.\.\.|Loading model from scratch\.\.\."  # V1, V2 runner
UVICORN = {"0.27.1": "APIServer", "0.32.0": None}  # lines that are not vLLM's own: prefixed up to 0.30
PROGRESS = re.compile(r"Loading safetensors checkpoint shards: +\d+% Completed \| \d+/\d+ \[\S+, +\S+\]")
# what libraries print to stderr: torch's own log, Python's warnings with their source line
FOREIGN = re.compile(r"\[?W\d{4} |.*?:\d+: \w*Warning: |  |\t")
API_KEY = {"0.27.1": [KEY], "0.32.0": "***"}  # 0.27.1 writes the key into the log
EAGER = {
    "0.27.1": "Enforce eager set, disabling torch.compile and CUDAGraphs. This is equivalent to setting "
    "-cc.mode=none -cc.cudagraph_mode=none",
    "0.32.0": "Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup. This is "
    "equivalent to setting -cc.mode=none -cc.cudagraph_mode=none and --kernel_config.enable_jit_warmup=False",
}
IDLE = "Avg generation throughput: 0.0 tokens/s"
NUMBER = r"\d+\.\d"
STATS = re.compile(
    rf"Engine 000: Avg prompt throughput: {NUMBER} tokens/s, Avg generation throughput: {NUMBER} tokens/s, "
    rf"Running: \d+ reqs, Waiting: \d+ reqs, (?:GPU|CPU) KV cache usage: {NUMBER}%, "
    rf"Prefix cache hit rate: {NUMBER}%"
)
SPEC_STATS = re.compile(
    r"SpecDecoding metrics: Mean acceptance length: (?P<length>\d+\.\d\d), "
    r"Accepted throughput: \d+\.\d\d tokens/s, Drafted throughput: \d+\.\d\d tokens/s, "
    r"Accepted: (?P<accepted>\d+) tokens, Drafted: (?P<drafted>\d+) tokens, "
    r"Per-position acceptance rate: (?P<rates>\d\.\d{3}(?:, \d\.\d{3})*), "
    rf"Avg Draft acceptance rate: (?P<rate>{NUMBER})%"
)


class Milestone(NamedTuple):
    """A line that every boot has: who says it, in which source file (None: the platform's), what."""

    process: set[str]
    file: str | None
    message: str  # a pattern for the whole message


def milestones(release: str, server: Server) -> list[Milestone]:
    api, engine = {"APIServer"}, {"EngineCore"}
    entry = "entry.py" if release == "0.32.0" else "api_server.py"
    size = r"(?:GPU|CPU) KV cache size: [\d,]+ tokens"
    concurrency = r"Maximum concurrency for 4,096 tokens per request: \d+\.\d\dx"
    kv = [f"{size}, {concurrency}"] if release == "0.32.0" else [size, concurrency]
    return [
        Milestone(api, "api_utils.py", rf".*█.*  version {re.escape(release)}"),
        Milestone(api, "api_utils.py", r".*█.*  model   \S+/models/tinyw"),
        Milestone(api, "api_utils.py", r"non-default args: \{.*\}"),
        Milestone(api, "model.py", r"Resolved architecture: \w+"),
        Milestone(api, "model.py", f"Using max model len {MAX_MODEL_LEN}"),
        Milestone(api, "vllm.py", re.escape(EAGER[release])),
        Milestone(
            engine,
            "core.py",
            rf"Initializing a V1 LLM engine \(v{re.escape(release)}\) with config: "
            r"model='\S+/models/tinyw', .+",
        ),
        Milestone(ENGINE, "parallel_state.py", r"rank 0 in world size 1 is assigned as DP rank 0, .+"),
        Milestone(ENGINE, None, LOADING),
        Milestone(ENGINE, "default_loader.py", r"Loading weights took \d+\.\d\d seconds"),
        *(Milestone(engine, "kv_cache_utils.py", message) for message in kv),
        Milestone(
            engine,
            "core.py",
            r"init engine \(profile, create kv cache, warmup model\) took \d+\.\d\d s(?: \(.+\))?",
        ),
        Milestone(api, entry, r"Supported tasks: \['generate'\]"),
        Milestone(api, entry, f"Starting vLLM server on {server.url}"),
        Milestone(api, "launcher.py", "Available routes are:"),
        Milestone(api, "launcher.py", "Route: /health, Methods: GET"),
        Milestone(api, "launcher.py", "Route: /v1/chat/completions, Methods: POST"),
        *(
            Milestone({UVICORN[release] or ""}, "", message)
            for message in (
                rf"Started server process \[{server.process.pid}\]",
                r"Waiting for application startup\.",
                r"Application startup complete\.",
            )
        ),
    ]


def fits(line: Line, wanted: Milestone) -> bool:
    file = (line.source or "").partition(":")[0]
    return (
        (line.process or "") in wanted.process
        and (wanted.file is None or file == wanted.file)
        and re.fullmatch(wanted.message, line.message) is not None
    )


def boot(server: Server) -> list[Line]:
    """The lines up to readiness."""
    lines = server.lines
    end = next(index for index, line in enumerate(lines) if READY in line.text)
    return lines[: end + 1]


def kind(line: Line) -> str:
    if line.source:
        return "record"
    if line.level:
        return "uvicorn"
    if PROGRESS.fullmatch(line.message):
        return "progress"
    if not line.message.strip():
        return "blank"
    return "foreign" if FOREIGN.match(line.message) else "unknown"


def test_every_line_of_the_boot_is_understood(server: Server) -> None:
    kinds = {kind(line): line.text for line in boot(server)}
    assert "unknown" not in kinds, kinds["unknown"]
    assert {"record", "uvicorn"} <= set(kinds)


def test_the_milestones_come_in_order(server: Server, release: str) -> None:
    lines = iter(boot(server))
    missing = [
        wanted for wanted in milestones(release, server) if not any(fits(line, wanted) for line in lines)
    ]
    assert not missing, f"not in the log after what comes before it: {missing[0]}"


def test_the_phases(server: Server) -> None:
    tracker = PhaseTracker()
    for line in boot(server):
        tracker.feed(line, float(line.number))
    assert [phase.name for phase in tracker.phases if phase.name not in GPU_ONLY] == PHASES


def test_the_processes_name_themselves(server: Server) -> None:
    lines = [line for line in boot(server) if line.source]
    names = {line.process for line in lines} - {None}
    assert names - CPU_ONLY == NAMES
    pids = {line.pid for line in lines if line.process == "APIServer"}
    assert pids == {server.process.pid}
    pids = {line.pid for line in lines if line.process == "EngineCore"}
    assert pids == {server.child("VLLM::EngineCore").pid}


def test_the_weights_progress_bar(spec: Server, release: str) -> None:
    bars = [line for line in boot(spec) if PROGRESS.fullmatch(line.message)]
    percents = [int(bar.message.partition("%")[0].split()[-1]) for bar in bars]
    assert percents.count(0) == percents.count(100) == 2  # the model's and the drafter's
    second = percents.index(0, 1)
    assert percents == sorted(percents[:second]) + sorted(percents[second:])
    prefixed = {bar.process is not None for bar in bars}
    assert prefixed == {release == "0.27.1"}


def test_uvicorn_lines_and_the_access_log(off: Server, release: str) -> None:
    get(off, "/version")
    line = off.line('"GET /version HTTP/1.1"')
    assert re.fullmatch(r'127\.0\.0\.1:\d+ - "GET /version HTTP/1\.1" 200 OK', line.message)
    assert (line.process, line.level, line.source) == (UVICORN[release], "INFO", None)


def test_non_default_args(server: Server, release: str) -> None:
    shown = server.line("non-default args: ").message.removeprefix("non-default args: ")
    args = {name: value for name, value in ast.literal_eval(shown).items() if not name.startswith("sim_")}
    model = args["model"]
    expected = {
        "model_tag": model, "host": "127.0.0.1", "port": server.port, "model": model, "dtype": "bfloat16",
        "max_model_len": MAX_MODEL_LEN, "enforce_eager": True, "served_model_name": ["tiny"],
        "max_num_seqs": MAX_NUM_SEQS, "max_num_batched_tokens": MAX_NUM_BATCHED_TOKENS,
    }  # fmt: skip
    if server.key:
        drafter = model.replace("tinyw", "draftw")
        assert f"'api_key': {API_KEY[release]!r}" in server.raw.decode()
        expected["api_key"] = MASK
        expected["speculative_config"] = {"model": drafter, "num_speculative_tokens": K}
    assert args == expected


def test_speculation_warns_of_what_it_costs(spec: Server, off: Server, release: str) -> None:
    """Up to 0.27.1 a draft model takes a slot for each request."""
    left = MAX_NUM_BATCHED_TOKENS - (MAX_NUM_SEQS if release == "0.27.1" else 0)
    start = f"max_num_scheduled_tokens is set to {left} based on the speculative decoding settings."
    line = next(line for line in boot(spec) if line.message.startswith("max_num_scheduled_tokens"))
    assert line.message.startswith(start)
    assert (line.process, line.level) == ("APIServer", "WARNING")
    assert not any(
        "max_num_scheduled_tokens" in line.message for line in boot(off) if line.level == "WARNING"
    )


def test_statistics_while_busy_and_once_when_idle(off: Server) -> None:
    seen = len(off.lines)
    post(off, CHAT, chat(max_tokens=150))
    busy = wait_for_line(off, seen, lambda line: is_stats(line) and IDLE not in line.message)
    idle = wait_for_line(off, busy.number, lambda line: is_stats(line) and IDLE in line.message)
    for line in (busy, idle):
        assert STATS.fullmatch(line.message)
        assert (line.process, line.level) == ("APIServer", "INFO")
        assert (line.source or "").partition(":")[0] == "loggers.py"
    assert not any("SpecDecoding" in line.text for line in off.lines)


def is_stats(line: Line) -> bool:
    return line.message.startswith("Engine 000: ")


def test_statistics_of_speculation(spec: Server) -> None:
    seen = len(spec.lines)
    post(spec, CHAT, chat(max_tokens=150))
    line = wait_for_line(spec, seen, lambda line: line.message.startswith("SpecDecoding metrics:"))
    found = SPEC_STATS.fullmatch(line.message)
    assert found is not None, line.message
    assert (line.process, (line.source or "").partition(":")[0]) == ("APIServer", "metrics.py")
    accepted, drafted = int(found["accepted"]), int(found["drafted"])
    assert drafted % K == 0
    assert float(found["length"]) == pytest.approx(1 + accepted / (drafted / K), abs=0.006)
    assert float(found["rate"]) == pytest.approx(100 * accepted / drafted, abs=0.06)
    rates = [float(rate) for rate in found["rates"].split(", ")]
    assert len(rates) == K
    assert sum(rates) == pytest.approx(accepted / (drafted / K), abs=0.002)


def wait_for_line(server: Server, start: int, condition: Callable[[Line], bool]) -> Line:
    """The first line from ``start`` on that fits."""

    def found() -> Line | None:
        return next((line for line in server.lines[start:] if condition(line)), None)

    line = until(found, server.limits.answer, "a line of statistics")
    assert line is not None
    return line

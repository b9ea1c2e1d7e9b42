"""The boot's lines by release: grammar, wording, numbers. No server."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from sparktui.bootlog.phases import PHASES
from sparktui.sim.boot.logfile import Log, source_of
from sparktui.sim.release import RELEASES, Release
from tests.sim.boots import boot

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORD = re.compile(
    r"\((APIServer|EngineCore\w*) pid=\d+\) (INFO|WARNING) \d\d-\d\d \d\d:\d\d:\d\d \[\S+:\d+\] "
)
DSPARK = ("--speculative-config", '{"method": "dspark", "model": "d", "num_speculative_tokens": 3}')
DENSE = ("--attention-backend", "FLASH_ATTN")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "VLLM_LOGGING_COLOR", "VLLM_USE_V2_MODEL_RUNNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("VLLM_DISABLE_LOG_LOGO", raising=False)


@pytest.mark.parametrize("version", ["0.19.1", "0.24.0", "0.27.1", "0.30.0"])
def test_up_to_030_every_line_has_its_process(version: str) -> None:
    for line in boot(version).lines[:-1]:
        assert line.startswith(("(APIServer pid=11) ", "(EngineCore pid=22) ")), line


def test_from_032_only_records_have_it() -> None:
    text = boot("0.32.0").text
    bare = [line for line in text.split("\n")[:-1] if not RECORD.match(line)]
    assert {re.sub(r"[\d:,.-]+", "", line.strip("\r"))[:25] for line in bare} == {
        "Capturing CUDA graphs (PI",
        "Capturing CUDA graphs (FU",
        "Loading safetensors check",
        "   INFO  autotunerpy  fla",
        "",
    }
    assert "\n\rCapturing CUDA graphs (PIECEWISE):   0%|" in text


@pytest.mark.parametrize(
    ("version", "name"),
    [("0.13.0", "EngineCore_DP0"), ("0.17.1", "EngineCore_DP0"), ("0.19.1", "EngineCore")],
)
def test_the_engines_name(version: str, name: str) -> None:
    assert f"({name} pid=22)" in boot(version).text.replace("\x1b[1;36m", "")


def test_the_configuration_shows_the_parallel_sizes_given() -> None:
    text = boot("0.27.1", "--tensor-parallel-size", "2", "-pp", "3").text
    assert "tensor_parallel_size=2, pipeline_parallel_size=3, data_parallel_size=1, " in text
    assert "tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, " in boot("0.27.1").text


def test_each_data_parallel_engine_logs() -> None:
    text = boot("0.27.1", "--data-parallel-size", "2").text
    for rank in (0, 1):
        prefix = f"(EngineCore_DP{rank} pid={22 + rank}) "
        assert f"{prefix}INFO" in text
        assert f"world_size=2 rank={rank} local_rank={rank}" in text
    assert "(EngineCore pid" not in text


@pytest.mark.parametrize("version", ["0.24.0", "0.27.1", "0.32.0"])
def test_the_logo_is_the_recorded_record_of_several_lines(version: str) -> None:
    folder = {"0.24.0": "vllm-0.24.0-h200-flashinfer/boot_fi_ngram.log"}.get(version)
    recorded = (FIXTURES / (folder or "vllm-0.24.0-h200-flashinfer/boot_fi_ngram.log")).read_bytes().decode()
    ours = [line for line in boot(version).lines if "api_utils" in line][:6]
    theirs = [line for line in recorded.split("\n") if "api_utils" in line][:6]
    assert len(ours) == 6
    for our, their in zip(ours, theirs, strict=True):
        assert our.endswith("\r") == their.endswith("\r")
        body = RECORD.sub("", their).replace("0.24.0", version).replace("/models/tiny-1b", "m")
        assert RECORD.sub("", our) == body


def test_files_and_lines_are_the_releases_own() -> None:
    assert source_of("core.py:121", Release("0.24.0")) == "core.py:114"
    assert source_of("core.py:121", Release("0.32.0")) == "core.py:133"
    assert source_of("core.py:121", Release("0.33.0")) == "core.py:133"
    assert source_of("core.py:121", Release("0.27.1")) == "core.py:121"
    assert source_of("mine.py:1", Release("0.32.0")) == "mine.py:1"


def test_every_line_of_the_recorded_v1_boot_that_is_modelled_has_its_source() -> None:
    """0.24.0 on an H200: where the same message is in both logs, its file and line are too."""
    recorded = (FIXTURES / "vllm-0.24.0-h200-flashinfer" / "boot_fi_ngram.log").read_text(encoding="utf-8")
    ngram = '{"method": "ngram", "num_speculative_tokens": 3}'
    ours = boot("0.24.0", "--attention-backend", "FLASHINFER", "--speculative-config", ngram).text

    def sources(text: str) -> dict[str, str]:
        found = re.findall(r"\[(\w+\.py:\d+)\] ([^\d'{\r\n]{12,40})", text)
        return {words.strip(): source for source, words in found}

    theirs, mine = sources(recorded), sources(ours)
    shared = set(theirs) & set(mine)
    assert len(shared) >= 15
    assert {words: mine[words] for words in shared} == {words: theirs[words] for words in shared}


@pytest.mark.parametrize(
    ("version", "wording"),
    [
        ("0.13.0", "vLLM API server version 0.13.0"),
        ("0.19.1", "init engine (profile, create kv cache, warmup model) took 165.00 seconds"),
        ("0.19.1", "Using TRITON backend for Unquantized MoE"),
        ("0.24.0", "Asynchronous scheduling is enabled."),
        ("0.24.0", "Kernel JIT monitor activated — Triton JIT compilations"),
        ("0.19.1", "Model loading took 19.12 GiB memory and"),  # V1
        ("0.27.1", "Model loading took 19.12 GiB and"),  # V2
        ("0.27.1", "Kernel JIT monitor activated; monitored JIT"),
        ("0.27.1", "GPU KV cache size: 656,128 tokens\n"),
        ("0.30.0", "GPU KV cache size: 656,128 tokens, Maximum concurrency for 32,768 tokens"),
        ("0.32.0", "[backbone] torch.compile took 60.00 s in total"),
        ("0.32.0", "Model loading took 19.12 GiB memory and"),
    ],
)
def test_wording_by_release(version: str, wording: str) -> None:
    text = boot(version, *DSPARK).text
    assert wording in text
    others = [other for other in RELEASES if wording not in boot(other, *DSPARK).text]
    assert others, "every release says this"


@pytest.mark.parametrize(
    ("version", "method", "warned"),
    [
        ("0.24.0", "ngram", True),
        ("0.24.0", "draft_model", True),
        ("0.24.0", "mtp", False),
        ("0.32.0", "ngram", True),
        ("0.32.0", "draft_model", False),
    ],
)
def test_async_scheduling(version: str, method: str, warned: bool) -> None:
    config = f'{{"method": "{method}", "model": "d", "num_speculative_tokens": 2}}'
    text = boot(version, "--speculative-config", config).text
    line = f"Async scheduling not supported with {method}-based speculative decoding and will be disabled."
    assert (line in text) == warned
    assert ("Asynchronous scheduling is" in text) == (version == "0.24.0")


def test_the_bars_say_which_runner() -> None:
    v1 = boot("0.27.1", "--max-num-seqs", "64").text
    bar = next(line for line in v1.split("\n") if "(decode, FULL)" in line)
    assert bar.startswith("(EngineCore pid=22) \rCapturing CUDA graphs (decode, FULL):   0%|          | 0/11")
    assert bar.count("\r") == 9
    assert "100%|██████████| 11/11" in bar
    assert "Profiling CUDA graph memory: PIECEWISE=19 (largest=128), FULL=11 (largest=64)\n" in v1
    v2 = boot("0.32.0", "--max-num-seqs", "64").text
    assert "Capturing CUDA graphs (FULL): 100%|" in v2
    assert "Using V2 Model Runner" in v2
    assert "Profiling CUDA graph memory" not in v2


@pytest.mark.parametrize(
    ("method", "k", "bars"),
    [
        ("mtp", 3, ["prefill", "decode"]),
        ("mtp", 1, ["prefill"]),
        ("dspark", 3, ["dspark"]),
        ("ngram", 3, []),
    ],
)
def test_a_drafter_has_bars_of_its_own_under_the_v2_runner(method: str, k: int, bars: list[str]) -> None:
    config = f'{{"method": "{method}", "model": "d", "num_speculative_tokens": {k}}}'
    text = boot("0.32.0", "--attention-backend", "FLASH_ATTN", "--speculative-config", config).text
    found = re.findall(r"\rCapturing (\w+) CUDA graphs \(FULL\): 100%", text)
    assert found == bars
    older = boot("0.21.0", "--attention-backend", "FLASH_ATTN", "--speculative-config", config).text
    assert not re.search(r"Capturing \w+ CUDA graphs \(FULL\)", older)


def test_eager_has_no_compilation_and_no_graphs() -> None:
    text = boot("0.27.1", "--enforce-eager", *DSPARK).text
    assert "Enforce eager set, disabling torch.compile and CUDAGraphs" in text
    for absent in (
        "torch.compile took",
        "Capturing",
        "Profiling CUDA graph",
        "is not supported with spec-decode",
    ):
        assert absent not in text


def test_the_config_dump_shows_the_mode_before_the_downgrade() -> None:
    text = boot("0.27.1", *DSPARK).text
    assert "'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>" in text
    assert "setting cudagraph_mode=PIECEWISE" in text


@pytest.mark.parametrize("version", ["0.19.1", "0.24.0", "0.27.1", "0.30.0"])
def test_the_reader_follows_every_phase(version: str) -> None:
    reader = boot(version, *DENSE, *DSPARK).read()
    names = [phase.name for phase in reader.phases]
    assert names == [name for name in PHASES if name not in ("warm-up", "ready")]
    facts = reader.facts
    assert facts["vllm_version"] == version
    assert facts["attention_backend"] == "FLASH_ATTN"
    assert facts["kv_cache_tokens"] == 656_128
    assert facts["cudagraph_mode"] == "FULL_AND_PIECEWISE"


def test_seconds_in_messages_are_the_modelled_machines() -> None:
    slow = boot("0.27.1", "--boot-speed", "1000").text
    assert "Loading weights took 60.00 seconds" in slow
    assert boot("0.27.1", "--sim-boot-seconds", "1").text.count("Loading weights took 60.00 seconds") == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("version", "environ", "coloured"),
    [
        ("0.27.1", {}, True),
        ("0.27.1", {"NO_COLOR": "1"}, False),
        ("0.27.1", {"VLLM_LOGGING_COLOR": "0"}, False),
        ("0.32.0", {}, True),
    ],
)
def test_colours_on_a_terminal(
    version: str, environ: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    text = boot(version, stream=Terminal()).text
    head = (
        r"\x1b\[0;36m\(APIServer pid=11\)\x1b\[0;0m \x1b\[32mINFO\x1b\[0m \x1b\[90m\d\d-\d\d [\d:]+\x1b\[0m "
    )
    assert bool(re.search(head + r"\x1b\[90m\[\w+\.py:\d+\]\x1b\[0m ", text)) == coloured
    assert ("\x1b" in text) == coloured


def test_colours_on_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in boot("0.27.1").text
    assert "\x1b[1;36m(APIServer pid=11)\x1b[0;0m INFO" in boot("0.13.0").text
    monkeypatch.setenv("VLLM_LOGGING_COLOR", "1")
    assert "\x1b[32mINFO" in boot("0.27.1").text


def test_uvicorn_on_a_terminal_is_green() -> None:
    stream = Terminal()
    Log(stream, 1, 2, Release("0.32.0")).api_raw("INFO:     Started server process [1]")
    assert stream.getvalue() == "\x1b[32mINFO\x1b[0m:     Started server process [1]\n"

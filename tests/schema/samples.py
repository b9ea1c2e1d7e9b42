"""One instance of every dataclass of the schema, no field at its default."""

from __future__ import annotations

from typing import Any

from sparktui.schema import bootlog, launch, live, messages, records

FINDING = live.Finding(
    "cg-piecewise", "costs speed", 212, "… setting cudagraph_mode=PIECEWISE", "graphs are split",
    "4.9x a step", "use FLASH_ATTN", "--attention-backend", "two reports", "attn-artifactory", 3, 12,
)  # fmt: skip
PHASE = live.BootPhase("load weights", 3.25, 41.5, 0.75, 12.5)
SERVER = live.ServerView(
    "ready", "on", True, "http://127.0.0.1:8000", 4242, 1796060000.5, 93.25, "0.27.1", -9, "told to", 12.5
)
LOAD_VIEW = live.LoadView(8, 7, 120, 2, "HTTP 500: broken", True, 3, 2.5, "code", "temperature 1.0", True, 4)
FIGURES = live.Figures(
    5.0, 136.5, 135.25, 17.0, "server", 210.5, 190.0, 7.5, 2.5, 0.5, (0.75, 0.5, 0.25), 2.5, False, 0.125,
    3, 1, 0.5, 50.5, 20.25, 41.0, True, 13.0, True, (0.125, 0.0625), 2, 12.5, 0.25, 3.0, 211.5, 0.75, "log",
)  # fmt: skip
GPU = live.GpuView(
    1, "NVIDIA H200", 79.5, 700.0, 96.0, 345.0, 1980.0, 615.0, 143771.0, 36.0, 21772.75,
    True, (live.GpuProcess(4242, 63931.0),), ("SW thermal",), {"SW power cap": 12.5},
)  # fmt: skip
MEMORY = live.HostMemory(124609.0, 98304.5, 12.0, 2048.5, 65536.0, 16384.0, 0.25)
EXPERIMENT_VIEW = live.ExperimentView("window", "on", 8, 41.5, "precision", 2, 4)
DRIVER = live.Driver(3, "pts/3", 1796060000.75)
EXPECTATION = live.Expectation("Using MARLIN", False, 12)
GRAPH_STEPS = live.GraphSteps(839, 14, 2, 11)
SILENCE = live.Silence(38.5, "kernels are tuned", 95.0)
SNAPSHOT = live.Snapshot(
    1, 77, 1796060001.5, "run-1", SERVER, LOAD_VIEW, FIGURES, (PHASE,), (GPU, live.GpuView(0)), MEMORY,
    EXPERIMENT_VIEW, DRIVER, 312, 4, 19, (EXPECTATION,), GRAPH_STEPS, SILENCE, "Loading: 40%", {"jit": 6},
    0.75, "driver lost", 4096.5,
)  # fmt: skip
EVENT = live.Event(19, 1796060002.5, "finding", "warning", "│ é “x” \u0000", {"id": "x", "n": [1, None]})

PROCESS = records.ProcessRef(4242, 1796060000.25)
SERVER_RECORD = records.ServerRecord(
    PROCESS, 1, "0.0.0.0", 8000, 1796060000.5, 8192, 97, (records.ProcessRef(4243, 1.5),), 1, 1796060100.0
)
RUN = records.RunRecord(
    1, "run-1", "ab", "nemotron", 1796060000.0, "done", PROCESS, SERVER_RECORD, "finished", 1796060200.0
)
TIMES = records.ServerTimes(120.5, 3.25, 900.0, 12.5, 77.0, 2.5, 0.5)
ROW = records.RequestRow(
    7, 1234.5, True, 210.5, 950.25, 4100.0, 512, 256, 252, 3.5, 90, 16, "length", True, "no data",
    503, "continuous", 41.5, TIMES,
)  # fmt: skip
BATCH = records.Batch(5.0, 512, 500, 4.75)
CELL = records.Cell(
    1, "on", 2, 8, 60.0, (BATCH, BATCH), 17.5, 136.5, {"p50": 210.5, "p95": 400.0}, 0.5, (0.75, 0.25), 2.5,
    2.75, 7.5, 0.5, 90.5, 0.625, 135.0, 120, 2, 3, 0.125, {"p50": 20.0, "p95": 30.5},
    211.5, ("not steady", "client-limited"),
)  # fmt: skip
ARM = records.ArmReport(
    "on", True, ("vllm", "serve", "m"), "0.27.1", 93.25, (FINDING,), {"cudagraph_mode": "PIECEWISE", "k": 3},
    (CELL,), (PHASE,), "died",
)  # fmt: skip
VERDICT = records.Verdict(
    1, "decode_tok_s", True, 0.53, (0.51, 0.55), "slower", (1, 1), True, "Turn speculation OFF"
)
HEALTH = records.ClientHealth(1.25, 0.25, True)
SERVER_WINDOW = records.ServerWindow(
    136.5, 210.5, 7.5, 2.5, 0.5, (0.75, 0.25), 2.25, 0.125, 0.5, 2.0, 211.5, 40.0
)
LOAD_RESULT = records.LoadResult(
    1, "http://127.0.0.1:8000", "served", "chat", 512, 256, 8, 1796060000.0, 30.0, 25.5, 120, 2, 3, 4,
    {"p50": 210.5}, {"p50": 20.0}, {"p50": 77.5}, 136.5, 50.5, HEALTH, SERVER_WINDOW, {"p50": 950.0},
    {"p50": 205.0}, {"HTTP 503": 2}, {"temperature": 1.0}, 90.5, 0.625, ("not steady",), False,
)  # fmt: skip
PROBE_ANSWER = records.ProbeAnswer(210.5, 512, 496, 496.0, 512.0)
PROBE = records.PrefixProbe("works", "3 of 3", (PROBE_ANSWER,))
REPORT = records.Report(
    1, "nemotron", 1796060000.0, "run-1", (ARM,), (VERDICT,), ("a step takes 4.9x",), "done", "A serves"
)

LAUNCH = launch.LaunchSpec(
    "nemotron", "k2", "docker", ("docker", "run", "a b"), "0.0.0.0", 8001, "served", True,
    {"VLLM_LOGGING_LEVEL": "INFO"}, "/etc/keys.env", (3, 4), "0.27.1", 32, 900.0,
    ("Using MARLIN",), {"weights": 12.5},
)  # fmt: skip
LOAD = launch.LoadSpec(
    "code", 128, 64, 1.0, 0.95, 20, 0.05, 0.5, 0.25, 1.125, {"enable_thinking": False}, False, 9,
    "http://proxy:4000", "alias",
)  # fmt: skip
ROOF = launch.Roof(273.0, 1.5)
MEASURE = launch.MeasureSpec(10.0, 2.5, 30.0, 90.0, 0.03, 20.0)
PLAN = launch.Plan(
    1, "nemotron", "/p/nemotron.yaml", (LAUNCH,), LOAD, MEASURE, (1, 8, 32), 2, "winner", 1, ROOF
)

TOTALS = messages.LoadTotals(
    1234.5, 8, 7, 120, 115, 2, 3, 30000, 29000, 1700.5, 1.25, 0.125, "HTTP 500", 12000, "final", 2, 1.5,
    (210.5, 198.0), {"1005": 12}, "prompts have about 512 tokens",
)  # fmt: skip
MESSAGES: tuple[Any, ...] = (
    messages.Hello("run-1", 4242, 3, 2),
    messages.Subscribe(12, 300, False),
    messages.LogLines(301, ("a", "b")),
    messages.Finished("done", "all measured", REPORT),
    messages.SetLoad(32, cut=True),
    messages.SetWindow(15),
    messages.StopRun("enough"),
    messages.CancelExperiment(),
    messages.Drive("pts/3"),
    messages.SwitchArm(1),
    messages.SetWorkload("code"),
    messages.ProbePrefixCache(),
    messages.StartExperiment((1, 0), (1, 8), 2, "last"),
    messages.LoadConfig("http://127.0.0.1:8000", "served", LOAD, "abc123", 0.5, 7.0, "http://127.0.0.1:8001"),
    messages.LoadTarget(4, True, 100, False),
    TOTALS,
    messages.LoadRow(ROW),
    messages.LoadFailed("the first line must be a LoadConfig"),
    messages.Problem("no", {"schema": 2}),
    messages.SnapshotMessage(SNAPSHOT),
    messages.EventMessage(EVENT),
)
ENGINE_STATS = bootlog.EngineStats(5.0, 124.5, 1, 2, 0.125, 0.5, 3, "0")
SPEC_STATS = bootlog.SpecStats(2.5, 987, 1584, (0.75, 0.5), 0.625)
BOOT = bootlog.BootReport(
    1,
    "0.27.1",
    True,
    (PHASE,),
    (FINDING,),
    {"model_runner": "V1"},
    (EXPECTATION,),
    "ValueError: no",
    GRAPH_STEPS,
    212,
)
CHANGE = bootlog.FactChange("model_runner", "V1", "V2")
DIFFERENCE = bootlog.BootDifference(1, (CHANGE,), (FINDING,), (FINDING,), ("scheduler: V1 → V2",))
SAMPLES: tuple[Any, ...] = (
    FINDING, PHASE, EXPECTATION, GRAPH_STEPS, SILENCE, ENGINE_STATS, SPEC_STATS, BOOT, CHANGE, DIFFERENCE,
    SERVER, LOAD_VIEW, FIGURES, GPU, MEMORY, EXPERIMENT_VIEW, DRIVER, SNAPSHOT, EVENT,
    live.GpuProcess(4242, 63931.0), TIMES, HEALTH, SERVER_WINDOW, LOAD_RESULT, PROBE_ANSWER, PROBE, ROOF,
    PROCESS, SERVER_RECORD, RUN, ROW, BATCH, CELL, ARM, VERDICT, REPORT, LAUNCH, LOAD, MEASURE, PLAN,
    *MESSAGES,
)  # fmt: skip

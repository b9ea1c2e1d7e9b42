"""States of a run that the golden screens show, beyond those of a healthy life."""

from __future__ import annotations

import dataclasses

from sparktui.schema.live import Figures, GpuProcess, GpuView, HostMemory, LoadView, Snapshot
from sparktui.ui.app import SparkApp
from sparktui.ui.messages import SnapshotArrived
from tests.ui.canned import GPU, LOADED, LOADED_BY_US, RUNNING, snapshot
from tests.ui.conftest import arrive, live

HOT = dataclasses.replace(
    GPU, power_w=698.0, sm_mhz=1245.0, temperature_c=87.0, utilization_pct=99.0,
    throttle=("SW thermal slowdown",), throttled_ms={"SW thermal slowdown": 340.0, "SW power cap": 0.0},
    processes=(GpuProcess(4190, 40448.0),),
)  # fmt: skip
COOL = dataclasses.replace(GPU, index=1, power_w=512.0, temperature_c=71.0, utilization_pct=97.0)
SPARK = GpuView(
    0, "NVIDIA GB10", 31.2, None, 96.0, 2405.0, 2418.0, None, None, 61.0, None, True,
    (GpuProcess(4190, 63931.0),),
)  # fmt: skip
SPARK_MEMORY = HostMemory(124609.0, 31040.0, 2048.0, 1800.0, 21000.0, 16384.0, 12.5)
BUSY = dataclasses.replace(
    LOADED, running=11, waiting=6, others_running=5, others_tok_s=96.5, kv_usage=0.934,
    kv_usage_each=(0.934, 0.871), preemptions=3.0, prefix_hit_rate=0.31, server_ttft_bound=True,
    server_ttft_ms=7500.0, ttft_ms=5120.0, read_gb_s=2310.0, roof_share=0.48,
)  # fmt: skip
QUEUED = dataclasses.replace(
    LOADED_BY_US, asked=12, in_flight=12, waiting=6, longest_wait_s=14.2, errors=2, workload="code",
    last_error="HTTP 503: [/x] overloaded", client_limited=True,
)  # fmt: skip
CHUNKS = dataclasses.replace(
    LOADED, client_output_tok_s=None, decode_tok_s=None, output_tok_s=None, client_chunks_s=122.4,
    server_ttft_ms=None, server_tpot_ms=None, step_ms=None, tokens_per_step=None, kv_usage=None,
    running=None, waiting=None, scrape_age_s=None, acceptance_by_position=(), acceptance_rate=None,
    mean_acceptance_length=None, drafted=None, others_running=None, others_tok_s=None, preemptions=None,
    prefix_hit_rate=None,
)  # fmt: skip


def then(app: SparkApp, *snapshots: Snapshot) -> None:
    for made in snapshots:
        live(app).on_snapshot_arrived(SnapshotArrived(made))


def stalled(app: SparkApp) -> None:
    """Requests run and no counter moves; /metrics answers."""
    arrive(app, samples=10)
    for seq in range(11, 35):
        still = dataclasses.replace(RUNNING, stalled_s=(seq - 10) * 0.5)
        then(app, snapshot(seq, server=still))


def no_answer(app: SparkApp) -> None:
    """/metrics is silent: first its last page is shown, then nothing of it."""
    arrive(app, samples=10)
    for seq in range(11, 35):
        age = 0.4 + (seq - 10) * 0.5
        figures = dataclasses.replace(LOADED, scrape_age_s=age)
        if age > 10:  # the host gives up
            figures = Figures(
                5.0, client_output_tok_s=317.9, decode_tok_s=41.0, ttft_ms=129.0, scrape_age_s=age
            )
        then(app, snapshot(seq, figures=figures))


def no_link(app: SparkApp) -> None:
    """The host died while its figures stood there."""
    arrive(app, samples=10)
    live(app).model.lose("the host of nemotron-1 keeps dying [/x]")
    live(app).show_all()


def busy(app: SparkApp) -> None:
    """Others use the server, which queues and preempts; a GPU is too hot."""
    arrive(app, samples=10)
    then(app, *(snapshot(seq, figures=BUSY, load=QUEUED, gpus=(HOT, COOL)) for seq in range(11, 21)))


def no_usage(app: SparkApp) -> None:
    """A server that counts no tokens for its clients and has no /metrics in reach."""
    load = dataclasses.replace(LOADED_BY_US, waiting=2, longest_wait_s=0.2, no_usage=True)
    arrive(app, samples=10, figures=CHUNKS, load=load, gpus=(), gpu_problem="NVML is not there")


def watched(app: SparkApp) -> None:
    """No load of ours, one stream of somebody else's: all is the server's; unified memory."""
    alone = dataclasses.replace(
        LOADED, client_output_tok_s=None, ttft_ms=None, chunk_gap_ms=None, chunk_gap_p99_ms=None,
        decode_source="server", running=1, others_running=1, others_tok_s=41.0, output_tok_s=41.0,
        roof_share=0.71,
    )  # fmt: skip
    arrive(app, samples=10, figures=alone, load=LoadView(), gpus=(SPARK,), memory=SPARK_MEMORY,
           server_gpu_mib=63931.0)  # fmt: skip


def died(app: SparkApp) -> None:
    """The server is gone and nobody knows why; its last figures still come."""
    arrive(app, samples=10)
    gone = dataclasses.replace(RUNNING, state="lost", pid=None)
    then(app, *(snapshot(seq, server=gone, load=LoadView()) for seq in range(11, 15)))


TROUBLE = {
    "stalled": stalled,
    "no_answer": no_answer,
    "no_link": no_link,
    "busy": busy,
    "no_usage": no_usage,
    "watched": watched,
    "died": died,
}
FIGURE_STATES = {"busy": busy, "watched": watched, "no_usage": no_usage}

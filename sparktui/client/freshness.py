"""Which figures are of now: what a silent, stalled or dead source said last is no figure any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparktui.schema.live import Figures, Snapshot

SILENT_S = 7.0  # a scrape that takes 4 s is dated at its midpoint: 6 s old just before the next one
STALLED_S = 5.0  # a long prompt's prefill moves no counter for a while either
GPU_SILENT_S = 3.0  # six readings

_CLIENT_RATES = (
    "client_output_tok_s", "client_chunks_s", "ttft_ms", "chunk_gap_ms", "chunk_gap_p99_ms",
)  # fmt: skip
_SERVER_RATES = (
    "output_tok_s", "server_ttft_ms", "server_tpot_ms", "step_ms", "tokens_per_step", "acceptance_rate",
    "mean_acceptance_length", "drafted", "others_tok_s", "prefix_hit_rate", "preemptions", "read_gb_s",
    "roof_share",
)  # fmt: skip
_GAUGES = ("kv_usage", "running", "waiting", "others_running")
_SERVES = ("ready", "stopping")  # a server that stops finishes what runs


def stalled_s(snapshot: Snapshot) -> float | None:
    """For how long requests have run and no counter moved; None: the server lives, or has just paused."""
    seconds = snapshot.server.stalled_s
    return seconds if seconds is not None and seconds >= STALLED_S else None


def silent_s(snapshot: Snapshot) -> float | None:
    """Age of the last /metrics page where it is too old to tell anything; None: it answers, or never did.

    The log stands in for a /metrics that was never in reach. It does not for one that has fallen silent: then
    the newest lines of the log are as old.
    """
    age = snapshot.figures.scrape_age_s
    return age if age is not None and age >= SILENT_S else None


def gpu_silent_s(snapshot: Snapshot) -> float | None:
    """Age of the last GPU reading where it is too old; None: it is fresh."""
    age = snapshot.gpu_age_s
    return age if age is not None and age >= GPU_SILENT_S else None


def fresh(snapshot: Snapshot) -> Figures:
    """The figures without those that a silent /metrics, a stalled or a dead server left behind.

    A stalled server's gauges are of now: it still answers. Without /metrics the client's own figures are.
    """
    stalled, silent = stalled_s(snapshot) is not None, silent_s(snapshot) is not None
    figures = snapshot.figures
    if snapshot.server.state not in _SERVES:
        return Figures(figures.window_s, scrape_age_s=figures.scrape_age_s)
    if not (stalled or silent):
        return figures
    old = [*_SERVER_RATES, *(_CLIENT_RATES if stalled else ()), *(_GAUGES if silent else ())]
    if stalled or figures.decode_source == "server":
        old.append("decode_tok_s")
    gone: dict[str, Any] = dict.fromkeys(old) | {"acceptance_by_position": ()}
    if silent:
        gone["kv_usage_each"] = ()
    return replace(figures, **gone)

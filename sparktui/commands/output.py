"""Plain text for terminals and pipes. All output passes here: foreign text loses its control codes."""

from __future__ import annotations

import sys
import time

from sparktui.client.freshness import fresh, gpu_silent_s, silent_s, stalled_s
from sparktui.schema.live import Event, Figures, LoadView, Snapshot
from sparktui.schema.text import printable

_WAIT_S = 1.0  # a shorter one is a prefill
_MARK = {"info": " ", "warning": "▲", "error": "✖"}


def say(text: str = "") -> None:
    """A line on stdout, at once: a pipe must see it too."""
    print(printable(text, keep="\t\n"), flush=True)


def complain(text: str) -> None:
    """A line on stderr."""
    print("sparktui: " + printable(text, keep="\n"), file=sys.stderr, flush=True)


def event_line(event: Event) -> str:
    """``14:02:11 ▲ text``."""
    clock = time.strftime("%H:%M:%S", time.localtime(event.t))
    return f"{clock} {_MARK[event.level]} {event.text}"


def event_lines(event: Event) -> list[str]:
    """The event; a finding with what it means and what to do below it, and none that is a mere note."""
    if event.kind != "finding":
        return [event_line(event)]
    told = [f"           {event.data[key]}" for key in ("meaning", "remedy") if event.data.get(key)]
    return [event_line(event), *told] if event.level != "info" else []


def status_line(snapshot: Snapshot) -> str:
    """One line: state, tok/s (chunks/s without usage), others' traffic, acceptance, KV, TTFT, load, power.
    ``—`` for what is not known, or known no more since the server stalls or does not answer."""
    figures = fresh(snapshot)
    parts = [
        f"{server_state(snapshot):<8}",
        *_rates(figures, snapshot.load),
        acceptance(figures, snapshot.server.speculating),
        f"KV {_percent(figures.kv_usage)}",
        f"TTFT {_number(figures.ttft_ms, 0)} ms",
        f"load {snapshot.load.in_flight}/{snapshot.load.asked}",
        *_queue(snapshot.load),
        f"power {power(snapshot)}",
    ]
    if snapshot.load.errors:
        parts.append(f"{snapshot.load.errors} failed: {snapshot.load.last_error}")
    return " · ".join(parts)


def server_state(snapshot: Snapshot) -> str:
    """``ready``; ``STALLED for 12 s`` and ``no answer for 8 s`` where it is ready in name only."""
    silent, stalled = silent_s(snapshot), stalled_s(snapshot)
    if snapshot.server.state == "ready" and silent is not None:
        return f"no answer for {silent:.0f} s"
    if snapshot.server.state == "ready" and stalled is not None:
        return f"STALLED for {stalled:.0f} s"
    return snapshot.server.state


def _rates(figures: Figures, load: LoadView) -> list[str]:
    """Tokens by the server's count; ours are chunks, and called so, where it sends no usage."""
    parts = [f"out {_number(figures.output_tok_s)} tok/s"]
    if load.no_usage:
        parts = [f"out {_number(figures.client_chunks_s)} chunks/s"]
    else:
        parts.append(f"decode {_number(figures.decode_tok_s)} tok/s/stream")
    if figures.others_tok_s or figures.others_running:
        requests = "" if figures.others_running is None else f" in {figures.others_running} requests"
        parts.append(f"others {_number(figures.others_tok_s)} tok/s{requests}")
    return parts


def _queue(load: LoadView) -> list[str]:
    """A queue is told as soon as somebody waits in it."""
    if not load.waiting or load.longest_wait_s < _WAIT_S:
        return []
    return [f"{load.waiting} waiting, longest {load.longest_wait_s:.0f} s"]


def acceptance(figures: Figures, speculating: bool) -> str:
    """Acceptance by position, or why there is none."""
    if figures.drafted is None:
        return "accept —" if speculating else "spec off"
    if not figures.drafted:
        return "nothing drafted"
    by = "/".join(f"{share:.0%}" for share in figures.acceptance_by_position)
    return f"accept {by} (length {_number(figures.mean_acceptance_length, 2)})"


def power(snapshot: Snapshot) -> str:
    """Watts of all GPUs together, as far as they were read lately."""
    if gpu_silent_s(snapshot) is not None:
        return "—"
    watts = [gpu.power_w for gpu in snapshot.gpus if gpu.power_w is not None]
    return f"{sum(watts):.0f} W" if watts else "—"


def progress_line(snapshot: Snapshot) -> str:
    """Where an A/B stands."""
    experiment = snapshot.experiment
    if experiment is None:
        return status_line(snapshot)
    left = "" if experiment.remaining_s is None else f", {experiment.remaining_s:.0f} s left at most"
    load = "" if experiment.concurrency is None else f" c={experiment.concurrency}"
    where = f"[{experiment.step}/{experiment.steps}] {experiment.arm}{load} {experiment.stage}{left}"
    if experiment.stage == "boot" and snapshot.phases:
        return f"{where}: {snapshot.phases[-1].name}"
    return f"{where}: {_number(fresh(snapshot).decode_tok_s)} tok/s per stream"


def _number(value: float | None, digits: int = 1) -> str:
    return "—" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{value:.1%}"

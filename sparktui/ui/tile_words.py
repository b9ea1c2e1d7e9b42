"""What the six tiles say: values with their units, and what must stand beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sparktui.client.freshness import fresh, silent_s, stalled_s
from sparktui.schema.live import Figures, LoadView, Snapshot
from sparktui.ui.format import NOTHING, duration, number, percent, watts
from sparktui.ui.gpu_text import load_words, memory_notes, missing, throttling
from sparktui.ui.model import RunModel

_LONG_WAIT_S = 1.0
_LONG_WAIT = 2.0  # times the usual TTFT
_FEW_TOK_S = 0.5  # of others: less is a rounding between two clocks
_HITS = 0.01  # more of a prefix cache changes what TTFT means


@dataclass(frozen=True, slots=True)
class Said:
    """``details`` and ``notes``: at length first, then shorter for less room; ``insist``: the detail may
    take the history's place."""

    value: str = NOTHING
    details: tuple[str, ...] = ()
    series: str = ""
    level: Literal["normal", "warning"] = "normal"
    notes: tuple[str, ...] = ()
    insist: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """A snapshot with the figures that are of now."""

    model: RunModel
    snapshot: Snapshot
    figures: Figures

    @property
    def load(self) -> LoadView:
        return self.snapshot.load

    @property
    def log(self) -> tuple[str, ...]:
        """A word on the border where the server's figures come from its log."""
        return ("log",) if self.figures.server_source == "log" else ()

    def ago(self, series: str) -> tuple[str, ...]:
        """How old the last value is, where one is missing that ought to be there."""
        age = self.model.age(series)
        wanted = self.load.in_flight or stalled_s(self.snapshot) or silent_s(self.snapshot)
        return (f"last {duration(age)} ago", f"{duration(age)} ago") if age and wanted else ()


def tile_words(model: RunModel) -> dict[str, Said]:
    """By tile; empty before the first snapshot."""
    if model.snapshot is None:
        return {}
    now = Now(model, model.snapshot, fresh(model.snapshot))
    return {name: say(now) for name, say in _TILES.items()}


def _output(now: Now) -> Said:
    """The server's count; our own, named so, while the server doesn't tell."""
    figures = now.figures
    if now.load.no_usage:
        return _chunks(now, figures.client_chunks_s)
    value = figures.output_tok_s
    if value is None and figures.client_output_tok_s is not None:
        return Said(_with(number(figures.client_output_tok_s), "tok/s"), ("ours",), "output")
    if value is None:
        return Said(details=now.ago("output"), series="output", notes=now.log)
    others = figures.others_tok_s or 0.0
    if others < _FEW_TOK_S:
        return Said(_with(number(value), "tok/s"), (), "output", notes=now.log)
    told = (f"others {number(others)} tok/s", f"others {number(others, 0)}")
    return Said(_with(number(value), "tok/s"), told, "output", notes=now.log, insist=True)


def _decode(now: Now) -> Said:
    figures = now.figures
    if now.load.no_usage:
        return _chunks(now, per_stream(figures.client_chunks_s, now.load))
    if figures.decode_tok_s is None:
        return Said(details=now.ago("decode"), series="decode")
    value = _with(number(figures.decode_tok_s), "tok/s")
    server = ("server",) if figures.decode_source == "server" else ()
    share = figures.roof_share
    notes = (
        ()
        if share is None
        else (f"{share:.0%} of roof, est.".replace("%", " %"), f"roof {share * 100:.0f} %")
    )
    return Said(value, server or gap_words(figures), "decode", notes=notes)


def _chunks(now: Now, value: float | None) -> Said:
    """Without usage nobody counts tokens for us: what came is chunks, and is called so."""
    details = ("chunks/s",) if value is not None else now.ago("chunks") or ("chunks/s",)
    return Said(number(value), details, "chunks", insist=True)


def per_stream(chunks_s: float | None, load: LoadView) -> float | None:
    """Chunks a second over the streams that answer."""
    answering = load.in_flight - load.waiting
    return None if chunks_s is None or answering <= 0 else chunks_s / answering


def gap_words(figures: Figures) -> tuple[str, ...]:
    """``gap 24/61 ms``: median and p99 of the time between chunks."""
    gap, p99 = figures.chunk_gap_ms, figures.chunk_gap_p99_ms
    if gap is None:
        return ()
    short = f"gap {number(gap, 0)} ms"
    return (f"gap {number(gap, 0)}/{number(p99, 0)} ms", short) if p99 is not None else (short,)


def _ttft(now: Now) -> Said:
    """Ours, the server's beside it; a queue is told although no first text came."""
    figures = now.figures
    value = _with(number(figures.ttft_ms, 0), "ms")
    waits = long_wait(now.load, figures)
    if waits:
        return Said(value, waits, "ttft", "warning", insist=True)
    if figures.ttft_ms is None and (ago := now.ago("ttft")):
        return Said(value, ago, "ttft")
    return Said(value, server_ttft(figures), "ttft")


def server_ttft(figures: Figures) -> tuple[str, ...]:
    """``srv ≤ 131``: from the server's histogram; a bound where all of it fell into one bucket."""
    if figures.server_ttft_ms is None:
        return ()
    bound = "≤ " if figures.server_ttft_bound else ""
    return (f"srv {bound}{number(figures.server_ttft_ms, 0)}",)


def long_wait(load: LoadView, figures: Figures) -> tuple[str, ...]:
    """``5 waiting, longest 12 s``: requests of ours without a text for unusually long."""
    usual = (figures.ttft_ms or 0.0) / 1000
    if not load.waiting or load.longest_wait_s < max(_LONG_WAIT_S, _LONG_WAIT * usual):
        return ()
    longest = duration(load.longest_wait_s)
    return f"{load.waiting} waiting, longest {longest}", f"{load.waiting} wait {longest}", f"wait {longest}"


def _kv(now: Now) -> Said:
    """Of the fullest engine."""
    figures = now.figures
    if figures.kv_usage is None:
        return Said(details=now.ago("kv"), series="kv", notes=now.log)
    value, hits = percent(figures.kv_usage), figures.prefix_hit_rate or 0.0
    notes = now.log or (
        (f"prefix hits {hits * 100:.0f} %", f"hits {hits * 100:.0f} %") if hits > _HITS else ()
    )
    if figures.preemptions:
        lost = f"{figures.preemptions:.0f}"
        return Said(value, (f"{lost} preempted", f"{lost} preempt."), "kv", "warning", notes, insist=True)
    several = len(figures.kv_usage_each)
    return Said(value, (f"max of {several}",) if several > 1 else (), "kv", notes=notes)


def _requests(now: Now) -> Said:
    """What runs on the server; whose it is, and what queues."""
    figures, load = now.figures, now.load
    if figures.running is None:
        return Said(details=now.ago("running"), notes=now.log)
    value, others = f"{figures.running} run", figures.others_running or 0
    whose = (f"{load.in_flight} ours · {others} others", f"{others} others") if others else ()
    queue = long_wait(load, figures)
    if not queue and figures.waiting:
        queue = (f"{figures.waiting} waiting",)
    if not queue:
        return Said(value, whose, notes=now.log)
    both = (f"{whose[1]} · {queue[-1]}",) if whose else ()
    return Said(value, (*both, *queue), level="warning", notes=now.log)


def _power(now: Now) -> Said:
    """All GPUs together."""
    snapshot = now.snapshot
    if why := missing(snapshot):
        return Said(details=why, series="power", insist=True)
    value = _with(number(watts(snapshot), 0), "W")
    reasons = throttling(snapshot.gpus)
    if reasons:
        told = (f"throttled: {reasons}", "throttled")
        return Said(value, told, "power", "warning", memory_notes(snapshot), insist=True)
    return Said(value, load_words(snapshot.gpus), "power", notes=memory_notes(snapshot))


def _with(value: str, unit: str) -> str:
    return value if value == NOTHING else f"{value} {unit}"


_TILES = {
    "output": _output, "decode": _decode, "ttft": _ttft, "kv": _kv, "requests": _requests, "power": _power,
}  # fmt: skip

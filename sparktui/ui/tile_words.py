"""What the six tiles say: values with their units, and what must stand beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sparktui.client.freshness import fresh, silent_s, stalled_s
from sparktui.schema.live import Figures, LoadView, Snapshot
from sparktui.ui.format import NOTHING, bounded, duration, number, others_text, per_stream, percent, watts
from sparktui.ui.gpu_text import load_words, memory_notes, missing, throttling
from sparktui.ui.model import NO_LINK, RunModel

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
        if self.model.lost:
            return NO_LINK, "no link"
        age = self.model.age(series)
        waited_for = self.load.in_flight or stalled_s(self.snapshot) or silent_s(self.snapshot)
        wanted = waited_for or self.snapshot.server.state != "ready"
        return (f"last {duration(age)} ago", f"{duration(age)} ago") if age and age >= 1 and wanted else ()


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
        return _chunks(now, figures.client_chunks_s, "chunks")
    value = figures.output_tok_s
    if value is None and figures.client_output_tok_s is not None:
        return Said(_with(number(figures.client_output_tok_s), "tok/s"), (), "output", notes=("ours",))
    if value is None:
        return Said(details=now.ago("output"), series="output", notes=now.log)
    others = figures.others_tok_s or 0.0
    if others < _FEW_TOK_S:
        return Said(_with(number(value), "tok/s"), (), "output", notes=now.log)
    told = (f"others {number(others)} tok/s", f"others {number(others, 0)}", f"oth. {number(others, 0)}")
    return Said(_with(number(value), "tok/s"), told, "output", notes=now.log, insist=True)


def _decode(now: Now) -> Said:
    figures = now.figures
    if now.load.no_usage:
        return _chunks(now, per_stream(figures.client_chunks_s, now.load), "stream_chunks")
    if figures.decode_tok_s is None:
        return Said(details=now.ago("decode"), series="decode")
    value = _with(number(figures.decode_tok_s), "tok/s")
    return Said(value, gap_words(figures), "decode", notes=_decode_notes(figures))


def _decode_notes(figures: Figures) -> tuple[str, ...]:
    """Whose figure it is, if it isn't ours; the share of the roof."""
    server = ("server",) if figures.decode_source == "server" else ()
    if figures.roof_share is None:
        return server
    share = f"{figures.roof_share * 100:.0f} %"
    roof = (f"{share} of roof, est.", f"roof {share}")
    return tuple(f"server · {text}" for text in roof) + server if server else roof


def _chunks(now: Now, value: float | None, series: str) -> Said:
    """Without usage nobody counts tokens for us: what came is chunks, and is called so."""
    details = ("chunks/s",) if value is not None else now.ago(series) or ("chunks/s",)
    return Said(number(value), details, series, insist=True)


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
    notes = ("client-limited", "limited") if now.load.client_limited else ()
    if waits and not now.model.lost:
        return Said(value, waits, "ttft", "warning", notes, insist=True)
    if figures.ttft_ms is None and (ago := now.ago("ttft")):
        return Said(value, ago, "ttft")
    return Said(value, server_ttft(figures), "ttft", notes=notes)


def server_ttft(figures: Figures) -> tuple[str, ...]:
    """``srv ≤ 131``: from the server's histogram; a bound where all of it fell into one bucket."""
    if figures.server_ttft_ms is None:
        return ()
    return (f"srv {bounded(figures.server_ttft_ms, figures.server_ttft_bound, 0)}",)


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
    each = figures.kv_usage_each
    shares = "/".join(f"{share * 100:.0f}" for share in each)
    told = (f"engines {shares} %", f"max of {len(each)}") if len(each) > 1 else ()
    return Said(value, told, "kv", notes=notes)


def _requests(now: Now) -> Said:
    """What runs on the server; whose it is, and what queues."""
    figures, load = now.figures, now.load
    if figures.running is None:
        return Said(details=now.ago("running"), series="running", notes=now.log)
    value, others = f"{figures.running} run", figures.others_running or 0
    whose = (f"{load.in_flight} ours · {others_text(others)}", others_text(others)) if others else ()
    late = long_wait(load, figures)
    queue = late or ((f"{figures.waiting} waiting",) if figures.waiting else ())
    both = (f"{whose[1]} · {queue[-1]}",) if whose and queue else ()
    told = (*both, *queue) if queue else whose
    if load.failed_lately:
        told = (f"{load.failed_lately} of ours failed", f"{load.failed_lately} failed")
    bad = late or load.failed_lately
    return Said(value, told, "running", "warning" if bad else "normal", now.log, insist=True)


def _power(now: Now) -> Said:
    """All GPUs together."""
    snapshot = now.snapshot
    if why := (NO_LINK, "no link") if now.model.lost else missing(snapshot):
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

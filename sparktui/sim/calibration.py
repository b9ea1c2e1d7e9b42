"""Published figures beside the stand-in's own: each is measured on the engine model when it is asked for.

W1: Nemotron 3.5 Lightning 30B-A3B on a GB10, one stream, vLLM 0.27.1. W2: Nemotron-3-Super-120B-A12B on a
GB10, 512-token prompts, 256-token answers, temperature 1.0, vLLM 0.19. H200: a 1B Llama, vLLM 0.24.0, n-gram
drafts. Their model files say more.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Iterator
from functools import partial

from sparktui.sim import arguments
from sparktui.sim.boot import graphs
from sparktui.sim.boot.facts import boot_facts
from sparktui.sim.boot.logfile import Log
from sparktui.sim.boot.script import banner, moments
from sparktui.sim.claims import SET, Claim, Row, Theirs, above, between, judge, point
from sparktui.sim.model import modelfile
from sparktui.sim.model.power import GpuReading
from sparktui.sim.model.truth import Truth
from sparktui.sim.model.virtual import Figures, Load, run

SEQUENCES = (4, 8, 16, 32)  # W2's grid
CLIENTS = (1, 4, 8, 16, 32, 64)
Measure = Callable[[], float]
_PIECEWISE = "setting cudagraph_mode=PIECEWISE"
_DRAFTERS = {"W1": "dspark", "W2": "mtp", "H200": "ngram"}
_MODELS = {"W1": "nemotron-lightning-gb10", "W2": "nemotron-super-gb10", "H200": "tiny-h200"}
_RELEASES = {"W1": "0.27.1", "W2": "0.19.1", "H200": "0.24.0"}


def rows() -> list[Row]:
    """Measure everything: a few seconds."""
    return [judge(claim) for claim in claims()]


def claims() -> Iterator[Claim]:
    """Every published figure."""
    yield from _w1()
    yield from _w1_machine()
    yield from _w1_derived()
    yield from _w2_single()
    yield from _w2_grid()
    yield from _w2_kv()
    yield from _w2_load()
    yield from _w2_cache()
    yield from _h200()


@functools.cache
def truth(source: str) -> Truth:
    """The shipped model that is held to this source."""
    return modelfile.load(_MODELS[source])


def given(source: str, k: int, *flags: str) -> arguments.ServeArguments:
    """The source's command line: speculation with ``k`` draft tokens, 0 = off."""
    config = json.dumps({"method": _DRAFTERS[source], "model": "d", "num_speculative_tokens": k})
    spec = ("--speculative-config", config) if k else ()
    return arguments.parse(["m", "--sim-vllm", _RELEASES[source], *spec, *flags])


@functools.cache
def figures(source: str, k: int, load: Load, max_num_seqs: int = 256, flags: tuple[str, ...] = ()) -> Figures:
    """The load on the engine, in the graph mode that this boot would have."""
    parsed = given(source, k, "--max-num-seqs", str(max_num_seqs), *flags)
    mode = graphs.plan(parsed.release, truth(source).boot, parsed).mode
    return run(truth(source), parsed.k, load, max_num_seqs=max_num_seqs, graphs=mode)


def _alone(source: str, k: int, temperature: float | None, *flags: str) -> Figures:
    seconds = 900.0 if k else 100.0  # without drafts there is no luck to average
    return figures(source, k, Load(temperature=temperature, seconds=seconds), 256, flags)


def _rate(source: str, k: int, temperature: float | None, *flags: str) -> float:
    return _alone(source, k, temperature, *flags).decode_tok_s


def _w1() -> Iterator[Claim]:
    def rate(k: int, *flags: str) -> Measure:
        return partial(_rate, "W1", k, None, *flags)

    def accepted(k: int) -> Measure:
        return lambda: 100 * _alone("W1", k, None).acceptance_rate

    def effect() -> float:
        return rate(3, "--async-scheduling")() / rate(3)()

    yield Claim("W1", "off, tok/s", point(77.5, 0.01), rate(0))
    yield Claim("W1", "k=2, tok/s", point(40, 0.03), rate(2))
    yield Claim("W1", "k=2, accepted %", point(62.4, 0.02), accepted(2))
    yield Claim("W1", "k=3, tok/s", point(41, 0.02), rate(3))
    yield Claim("W1", "k=3, accepted %", point(53.7, 0.02), accepted(3))
    yield Claim("W1", "k=4, tok/s", between(27, 34, 0.0), rate(4))
    yield Claim("W1", "k=4, accepted %", point(45.2, 0.02), accepted(4))
    horizontal = rate(0, "--mamba-ssu-algorithm", "horizontal")
    yield Claim("W1", "off, --mamba-ssu-algorithm horizontal, tok/s", point(77.5, 0.01), horizontal)
    yield Claim("W1", "k=3, --async-scheduling / without", point(1.0, 0.01), effect, 3)


def _w1_machine() -> Iterator[Claim]:
    def sensors() -> GpuReading:
        return _alone("W1", 3, None).gpu

    name = "piecewise warnings in the boot log"
    for k in (0, 2, 3, 4):
        head = f"k={k}" if k else "off"
        yield Claim("W1", f"{head}, {name}", point(min(k, 1), 0.0), partial(warnings, "W1", k), 0)
    yield Claim("W1", f"power, W{SET}", point(32, 0.02), lambda: sensors().power_w)
    yield Claim("W1", f"utilisation, %{SET}", point(94, 0.01), lambda: 100 * sensors().utilization)
    yield Claim("W1", f"SM clock, MHz{SET}", point(2405, 0.005), lambda: sensors().sm_clock_mhz, 0)
    largest = f"largest SM clock, MHz{SET}"
    yield Claim("W1", largest, point(3003, 0.0), lambda: sensors().max_sm_clock_mhz, 0)


def warnings(source: str, k: int, *flags: str) -> float:
    """How often the stand-in's boot with this source's command line says that it fell back to PIECEWISE."""
    return float(boot_log(source, k, *flags).count(_PIECEWISE))


def boot_log(source: str, k: int, *flags: str) -> str:
    """The stand-in's boot with this source's command line, banner and all."""
    stream, parsed = io.StringIO(), given(source, k, *flags)
    log, facts = Log(stream, 1, 2, parsed.release), boot_facts(parsed, truth(source))
    banner(log, facts)
    for moment in moments(facts):
        moment.emit(log)
    return stream.getvalue()


def _w1_derived() -> Iterator[Claim]:
    def off() -> Figures:
        return _alone("W1", 0, None)

    def on() -> Figures:
        return _alone("W1", 3, None)

    source = "W1, derived"
    yield Claim(source, "k=3, tokens a step", point(2.61, 0.02), lambda: 1 + sum(on().acceptance), 2)
    yield Claim(source, "off, ms a step", point(12.9, 0.01), lambda: off().step_ms)
    yield Claim(source, "k=3, ms a step", point(63.7, 0.01), lambda: on().step_ms)
    yield Claim(source, "off / k=3", point(1.89, 0.02), lambda: off().decode_tok_s / on().decode_tok_s, 2)


def _w2_single() -> Iterator[Claim]:
    def accepted(position: int) -> float:
        return 100 * _alone("W2", 3, 1.0).acceptance[position]

    yield Claim("W2", "off, tok/s", between(15, 17, 0.0), partial(_rate, "W2", 0, 1.0))
    yield Claim("W2", "k=3, tok/s", point(23.5, 0.03), partial(_rate, "W2", 3, 1.0))
    yield Claim("W2", "k=2, tok/s", point(24.2, 0.03), partial(_rate, "W2", 2, 1.0))
    yield Claim("W2", "k=2, temperature 0, tok/s", point(25, 0.03), partial(_rate, "W2", 2, 0.0))
    for place, share in enumerate((67, 36, 16)):
        name = f"k=3, accepted at position {place + 1}, %"
        yield Claim("W2", name, point(share, 0.04), partial(accepted, place))


def cell(max_num_seqs: int, clients: int, k: int = 3) -> Figures:
    """One cell of W2's grid: each client asks twice, and eight requests are the least."""
    load = Load(clients=clients, temperature=1.0, requests=max(8, 2 * clients))
    return figures("W2", k, load, max_num_seqs)


def peak(max_num_seqs: int, clients: int, k: int = 3) -> float:
    """W2's "engine peak": the largest logged Avg generation throughput."""
    return cell(max_num_seqs, clients, k).peak_tok_s


def grid() -> dict[tuple[int, int], float]:
    """Engine peak by max_num_seqs and clients."""
    return {(seqs, clients): peak(seqs, clients) for seqs in SEQUENCES for clients in CLIENTS}


def _cell(max_num_seqs: int, clients: int) -> Theirs:
    """Published of the grid: its ends, and what max_num_seqs gains. The cells between are not judged."""
    if clients == 1:
        return point(23.9, 0.05)
    if (max_num_seqs, clients) == (32, 64):
        return point(136.3, 0.05)
    if (max_num_seqs, clients) == (4, 64):
        return point(49.6, 0.05)  # 136.3 / 2.75
    return between(23.9, 136.3, None)


def _w2_grid() -> Iterator[Claim]:
    name = "k=3, engine peak"
    for seqs in SEQUENCES:
        for clients in CLIENTS:
            row = f"{name} tok/s, max_num_seqs {seqs}, clients {clients}"
            theirs = _cell(seqs, clients)
            source = "W2" if theirs.tolerance is None else "W2, derived"
            yield Claim(source, row, theirs, partial(peak, seqs, clients))
    yield Claim("W2", f"{name}, smallest of the grid", point(23.9, 0.05), lambda: min(grid().values()))
    yield Claim("W2", f"{name}, largest of the grid", point(136.3, 0.05), lambda: max(grid().values()))
    row = f"{name}, max_num_seqs 32 / 4, clients 64"
    yield Claim("W2", row, point(2.75, 0.05), lambda: peak(32, 64) / peak(4, 64), 2)


def _w2_kv() -> Iterator[Claim]:
    def usage(max_num_seqs: int, clients: int, k: int) -> float:
        return 100 * cell(max_num_seqs, clients, k).kv_mean

    odd = " (theirs: 1.9 each, not 2.15)"  # their reading doesn't fit their own figure for one sequence
    for seqs, share, tolerance, why in (
        (4, 7.6, 0.14, odd),
        (8, 16.6, 0.05, ""),
        (16, 33.1, 0.05, ""),
        (32, 68.9, 0.05, ""),
    ):
        row = f"k=3, KV usage %, max_num_seqs {seqs}, clients 64{why}"
        yield Claim("W2", row, point(share, tolerance), partial(usage, seqs, 64, 3))
    yield Claim("W2", "off, KV usage % a sequence", point(0.57, 0.03), partial(usage, 4, 1, 0), 2)
    yield Claim("W2", "k=3, KV usage % a sequence", point(2.15, 0.03), partial(usage, 4, 1, 3), 2)


def _w2_load() -> Iterator[Claim]:
    def gain(n: int) -> float:
        return peak(n, n) / peak(n, n, 0)

    def wait(n: int) -> float:
        return cell(n, n).mean_ttft_s

    yield Claim("W2", "off, engine peak tok/s, clients 32", between(96, 109, 0.02), partial(peak, 32, 32, 0))
    yield Claim("W2", "off, engine peak tok/s, clients 64", point(121, 0.05), partial(peak, 64, 64, 0))
    for n in (1, 4, 8, 16, 32):
        yield Claim("W2", f"k=3 / off, engine peak, clients {n}", above(1), partial(gain, n), 2)
    row = "k=3 / off, engine peak, clients 32"
    yield Claim("W2, derived", row, between(1.25, 1.42, 0.05), partial(gain, 32), 2)
    # theirs waited for the first `content` while a reasoning parser ran: not the first token
    for seqs, seconds in zip(SEQUENCES, (1.2, 6.6, 7.7, 9.1), strict=True):
        row = f"k=3, TTFT s, max_num_seqs and clients {seqs} (theirs: first content)"
        yield Claim("W2", row, point(seconds, None), partial(wait, seqs), 2)


def _w2_cache() -> Iterator[Claim]:
    def repeated() -> Figures:
        return figures("W2", 3, Load(temperature=1.0, requests=6, same_prompt=True))

    def flat() -> float:
        return repeated().ttft_s[-1] / repeated().ttft_s[0]

    name = "one prompt again and again"
    yield Claim("W2", f"{name}, prefix cache hits{SET}", point(0, 0.0), lambda: repeated().cache_hits, 0)
    yield Claim("W2", f"{name}, TTFT last / first{SET}", point(1.0, 0.1), flat, 2)


def _h200() -> Iterator[Claim]:
    """Five seconds a cell, once: two equal arms differed by up to a quarter."""

    def rate(k: int, clients: int, temperature: float, *flags: str) -> float:
        load = Load(clients=clients, max_tokens=512, temperature=temperature, seconds=10.0)
        return figures("H200", k, load, 64, flags).decode_tok_s

    fast = ("--attention-backend", "FLASH_ATTN")
    for clients, off, on in ((1, 445.0, 844.3), (8, 434.2, 670.6), (32, 392.5, 493.2)):
        row = f"tok/s, temperature 0, clients {clients}"
        yield Claim("H200", f"off, {row}", point(off, 0.25), partial(rate, 0, clients, 0.0))
        yield Claim("H200", f"k=3, {row}", point(on, 0.25), partial(rate, 3, clients, 0.0))
    row = "k=3, tok/s, temperature 1, clients 1"
    yield Claim("H200", row, point(206.4, 0.25), partial(rate, 3, 1, 1.0))
    row = "k=3, FLASH_ATTN (FULL graphs), tok/s, temperature 0, clients 1"
    yield Claim("H200", row, point(1388.0, 0.25), partial(rate, 3, 1, 0.0, *fast))
    row = "piecewise warnings in the boot log"
    yield Claim("H200", f"k=3, {row}", point(1, 0.0), partial(warnings, "H200", 3), 0)
    yield Claim("H200", f"k=3, FLASH_ATTN, {row}", point(0, 0.0), partial(warnings, "H200", 3, *fast), 0)

"""What the user may order on the live screen: sheets and questions first, then an intent to the host."""

from __future__ import annotations

from dataclasses import replace

from sparktui.schema.launch import LaunchSpec, LoadSpec
from sparktui.schema.live import Snapshot
from sparktui.schema.text import printable
from sparktui.schema.workloads import FILE, WORKLOADS, lengths
from sparktui.ui.format import clock, requests_text
from sparktui.ui.model import RunModel
from sparktui.ui.screens.sheet import Sheet

_WORKLOAD = 20  # cells of a file's name


def other_arm(arms: tuple[LaunchSpec, ...], variant: str) -> tuple[int, int] | None:
    """A and B for the A/B key: speculation off against the variant that serves (or the first that
    speculates); None when the run has no such pair."""
    off = next((i for i, arm in enumerate(arms) if not arm.speculating), None)
    current = next((i for i, arm in enumerate(arms) if arm.variant == variant), None)
    if off is None:
        return None
    if current is not None and arms[current].speculating:
        return off, current
    on = next((i for i, arm in enumerate(arms) if arm.speculating), None)
    return None if on is None else (off, on)


def refusal(snapshot: Snapshot | None, number: int | None) -> str:
    """Why a server or load key is off; empty when it works."""
    if snapshot is None:
        return "not connected yet"
    driver = snapshot.driver
    if driver is not None and driver.client != number:
        return f"driven from {driver.label} since {clock(driver.since)}: D takes over"
    return ""


def workload_text(own: LoadSpec, name: str) -> str:
    """``chat 512→256``: input and output tokens; ``own`` is the profile's load, whose lengths count for its
    own workload only. Of a file's prompts the input is what it is."""
    spec = own if not name or name == own.workload else replace(
        own, workload=name, input_tokens=None, output_tokens=None
    )  # fmt: skip
    takes, gives = lengths(spec)
    shown = (
        spec.workload.removeprefix(FILE).rpartition("/")[2]
        if spec.workload.startswith(FILE)
        else spec.workload
    )
    return f"{_cut(printable(shown))} {takes or ''}→{gives}"


def workload_choices(own: LoadSpec, now: str) -> list[tuple[str, str, str]]:
    """Key, name and text of each workload; the profile's own file among them."""
    names = [*WORKLOADS, *([own.workload] if own.workload not in WORKLOADS else [])]
    return [
        (str(i), name, f"{workload_text(own, name)}: {_about(name)}{', now' if name == now else ''}")
        for i, name in enumerate(names, 1)
    ]


def _about(name: str) -> str:
    return WORKLOADS[name].about if name in WORKLOADS else "the prompts of the profile's file"


def _cut(name: str) -> str:
    return name if len(name) <= _WORKLOAD else f"{name[: _WORKLOAD - 1]}…"


def loads_of(snapshot: Snapshot) -> tuple[int, ...]:
    """One stream, and the slider's stop."""
    return tuple(sorted({1, max(1, snapshot.load.asked)}))


def ab_sheet(
    model: RunModel,
    snapshot: Snapshot,
    arms: tuple[LaunchSpec, LaunchSpec],
    loads: tuple[int, ...],
    minutes: float | None,
    typed: bool,
) -> Sheet:
    """The sheet of `a`. ``typed``: the key came inside typing, so nothing starts by itself."""
    a, b = arms
    serving = snapshot.server.variant
    first, second = (a, b) if b.variant != serving else (b, a)
    lines = (
        f"A  {a.variant}   B  {b.variant}   at {', '.join(f'c={load}' for load in loads)}",
        "",
        f"First {first.variant} is measured"
        + (" as it runs now." if first.variant == serving else " after a restart."),
        f"Then the server stops, boots as {second.variant}, and is measured again.",
        f"Afterwards {serving} serves again: one more boot.",
        "",
        _who(model),
        f"Expected: {_expected(minutes)}.",
        "One start each proves differences above roughly 6 %; the verdict is provisional.",
    )
    return _guarded("A/B", lines, model, typed)


def switch_sheet(model: RunModel, snapshot: Snapshot, target: LaunchSpec, typed: bool) -> Sheet:
    """The sheet of `s` and `v`."""
    lines = (
        f"The server stops and boots as {target.variant}, and goes on serving so.",
        "",
        _who(model),
    )
    return _guarded(f"Switch to {target.variant}", lines, model, typed)


def _expected(minutes: float | None) -> str:
    if minutes is None:
        return "unknown, no earlier boot to go by"
    return "under a minute" if minutes < 1 else f"about {minutes:.0f} min"


def _who(model: RunModel) -> str:
    others = model.others()
    verb = "is" if others == 1 else "are"
    return f"▲ {requests_text(others)} of others {verb} on it now." if others else "Nobody else uses it now."


def _guarded(title: str, lines: tuple[str, ...], model: RunModel, typed: bool) -> Sheet:
    why = "Others use the server." if model.others() else "That came like typed text." if typed else ""
    return Sheet(title, lines, not why, why)

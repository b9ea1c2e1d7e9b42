"""The top line: which run, its state in words, and what must not be overlooked."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from sparktui.client.freshness import silent_s, stalled_s
from sparktui.schema.live import Snapshot
from sparktui.schema.text import printable
from sparktui.ui.format import clock, duration
from sparktui.ui.model import RunModel
from sparktui.ui.widgets.finding_text import sorted_findings

_STATES = {
    "idle": ("·", "dim"),
    "booting": ("▸", "bold yellow"),
    "ready": ("●", "bold green"),
    "stopping": ("▾", "yellow"),
    "stopped": ("■", "bold"),
    "failed": ("✖", "bold red"),
    "lost": ("?", "bold red"),
}


class RunHeader(Static):
    """One row."""

    DEFAULT_CSS = """
    RunHeader { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self._shown = ""

    def show(self, model: RunModel, number: int | None, *, held: bool = False) -> None:
        """The state of ``model``; ``number`` is this terminal's, to know whether it drives.

        ``held``: the panes below stand still.
        """
        text = header_text(model, number)
        if held:
            text = Text.assemble(
                (" HELD, space goes on ", "bold reverse"), " ", text, no_wrap=True, overflow="ellipsis"
            )
        if text.plain != self._shown:
            self._shown = text.plain
            self.update(text, layout=False)


def header_text(model: RunModel, number: int | None) -> Text:
    """Run, state, port, speculation, warnings, driver: what fits, in this order."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append("sparktui ▸ ", "dim")
    text.append(model.title or "…", "bold")
    snapshot = model.snapshot
    if model.finished is not None:
        mark, style = _STATES["failed" if model.finished.state == "failed" else "stopped"]
        text.append(f"  {mark} {model.finished.state.upper()}", style)
        return text
    if model.lost:
        text.append("  ? NO CONNECTION", "bold red")
        text.append(f"  {printable(model.lost)}")
        return text
    if snapshot is None:
        text.append("  ▸ STARTING the host …", "bold yellow")
        return text
    _append_server(text, snapshot)
    warnings = warning_text(model)
    if warnings:
        text.append(f"  {warnings}", "bold red" if warnings.endswith("boot fails") else "bold yellow")
    _append_place(text, snapshot)
    driver = snapshot.driver
    if driver is not None and driver.client != number:
        text.append(f"  driven from {driver.label} since {clock(driver.since)}", "magenta")
    return text


def warning_text(model: RunModel) -> str:
    """``2 ▲ CUDA graphs downgraded``: how many warnings and the gravest; nothing without any."""
    found, unmet = sorted_findings(model.warnings()), model.unmet()
    if not found:
        return f"{len(unmet)} ▲ expected line missing" if unmet else ""
    worst = found[0]
    mark = "✖" if worst.severity == "boot fails" else "▲"
    what = "CUDA graphs downgraded" if worst.id.startswith("cg-") else worst.severity
    return f"{len(found) + len(unmet)} {mark} {what}"


def _append_server(text: Text, snapshot: Snapshot) -> None:
    server = snapshot.server
    text.append(*_state(snapshot))
    if server.variant:
        text.append(f"  {server.variant}")
        text.append(" SPEC ON" if server.speculating else " SPEC OFF", "bold" if server.speculating else "")


def _state(snapshot: Snapshot) -> tuple[str, str]:
    """The state with its age; of a server that is ready in name only, what is wrong with it."""
    server = snapshot.server
    silent, stalled = silent_s(snapshot), stalled_s(snapshot)
    if server.state == "ready" and silent is not None:
        return f"  ? READY, no answer for {duration(silent)}", "bold red"
    if server.state == "ready" and stalled is not None:
        return f"  ✖ STALLED for {duration(stalled)}", "bold red"
    mark, style = _STATES[server.state]
    return f"  {mark} {server.state.upper()} {duration(max(0.0, snapshot.t - server.since))}", style


def _append_place(text: Text, snapshot: Snapshot) -> None:
    server = snapshot.server
    if server.url:
        text.append(f"  :{server.url.rpartition(':')[2]}", "dim")
    if server.pid is not None:
        text.append(f" pid {server.pid}", "dim")

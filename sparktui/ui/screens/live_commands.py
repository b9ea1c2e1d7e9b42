"""The palette's entries for a run: what its screen can do now, by name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.app import SystemCommand

from sparktui.ui.screens.live import LiveScreen
from sparktui.ui.screens.orders import workload_choices


def live_commands(screen: LiveScreen) -> Iterator[SystemCommand]:
    """In the order of their weight."""
    yield SystemCommand("A/B: speculation on against off", "Measures both arms", screen.action_ab)
    yield SystemCommand("Server: switch arm", "Restart as the other arm", screen.action_switch)
    yield SystemCommand("Server: stop", "Asks first", screen.action_stop_server)
    yield SystemCommand("Server: relaunch", "Asks first", screen.action_relaunch)
    yield SystemCommand("Load: idle", "No streams", screen.action_idle)
    now = screen.model.snapshot.load.workload if screen.model.snapshot else ""
    for _, name, text in workload_choices(screen.plan.load, now):
        shown, _, about = text.partition(": ")
        yield SystemCommand(f"Workload: {shown}", about, partial(screen.set_workload, name))
    yield SystemCommand(
        "Probe the prefix cache", "The same request three times: hits and TTFT", screen.action_probe
    )
    yield SystemCommand("Prefix cache: the last probe", "With its answers", screen.action_show_probe)
    yield SystemCommand("Boot facts", "What the log says of each variant's boot", screen.action_boot_facts)
    yield SystemCommand("Show dismissed findings", "Bring all of them back", screen.action_restore_findings)
    yield SystemCommand("Report: export", "As Markdown", screen.action_export)

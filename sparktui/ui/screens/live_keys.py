"""The live screen's keys, as a table. Ids are for users' keymaps."""

from __future__ import annotations

from textual.binding import Binding


def _key(key: str, action: str, label: str, id: str, tooltip: str, show: bool = False) -> Binding:
    return Binding(key, action, label, show=show, id=f"live.{id}", tooltip=tooltip)


def _pane(number: int, name: str) -> Binding:
    return _key(str(number), f"pane({number})", name, f"pane{number}", f"Maximise {name}, or go back")


LIVE_KEYS = [
    _key("a", "ab", "A/B", "ab", "Does speculation pay? A sheet first", show=True),
    _key("s", "switch", "Switch", "switch", "Restart as the other arm", show=True),
    _key("h,left", "load(-1)", "Load −", "load_down", "A stop less load", show=True),
    _key("l,right", "load(1)", "Load +", "load_up", "A stop more load", show=True),
    _key("d", "dismiss_finding", "Dismiss", "dismiss", "Hide the selected finding from now on"),
    _key("u", "restore_findings", "Undismiss", "restore", "Show dismissed findings again"),
    _key("0", "idle", "Idle", "idle", "No load"),
    _key("X", "cut", "Cut", "cut", "Cut draining streams, or cancel the A/B"),
    _key("space", "hold", "Hold", "hold", "Hold the display; sampling goes on"),
    _key("t", "window", "Window", "window", "Figures over 5, 15 or 60 s"),
    _key("v", "variant", "Variant", "variant", "Restart as another variant"),
    _key("W", "workload", "Workload", "workload", "What kind of requests the load sends"),
    *(
        _pane(i + 1, name)
        for i, name in enumerate(("tiles", "charts", "acceptance", "findings", "log", "A/B"))
    ),
    _key("escape", "back", "Back", "back", "Out of a pane; hide or show the A/B"),
    _key("slash", "log('find')", "Find", "find", "Find in the log"),
    _key("n", "log('match(1)')", "Next match", "match_next", "Next match in the log"),
    _key("N", "log('match(-1)')", "Previous match", "match_previous", "Previous match in the log"),
    _key("w", "log('warnings')", "Warnings", "warnings", "Only warnings in the log"),
    _key("f", "log('follow')", "Follow", "follow", "Follow the log"),
    _key("g", "log('top')", "Top", "log_top", "Top of the log"),
    _key("G", "log('bottom')", "End", "log_end", "End of the log"),
    _key("A", "log('access')", "Access lines", "access", "Show or fold access lines"),
    _key("left_square_bracket", "log('finding(-1)')", "Finding ‹", "finding_previous", "Previous finding"),
    _key("right_square_bracket", "log('finding(1)')", "Finding", "finding_next", "Next finding", show=True),
    _key("D", "take_over", "Take over", "take_over", "Drive this run from this terminal"),
    _key("E", "edit", "Edit", "edit", "Edit the profile in $EDITOR; counts at the next launch"),
    _key("c", "past", "Compare", "compare", "Arms and loads measured so far with this profile"),
    _key("H", "past", "History", "history", "Earlier verdicts, cells and boots of this profile"),
    _key("y", "copy", "Copy", "copy", "Copy the report, or the log on screen"),
    _key("e", "export", "Export", "export", "Write the report as Markdown"),
    _key("x", "stop_server", "Stop", "stop", "Stop the server (asks)"),
    _key("r", "relaunch", "Relaunch", "relaunch", "Stop and launch anew (asks)"),
    _key("R", "app.picker", "Runs", "runs", "Runs and profiles; this one goes on"),
]

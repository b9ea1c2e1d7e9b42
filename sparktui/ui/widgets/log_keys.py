"""The log pane's keys, as a table, and its bottom border. Ids are for users' keymaps."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from sparktui.ui.widgets.log_store import LogStore


def _key(key: str, action: str, label: str, tooltip: str, show: bool = False, id: str = "") -> Binding:
    name = id or label.lower().replace(" ", "_")
    return Binding(key, action, label, show=show, id=f"log.{name}", tooltip=tooltip)


# The border says what / w and f do, so the footer's room is for others.
LOG_KEYS: list[BindingType] = [
    _key("slash", "find", "Find", "Find plain text in the log"),
    _key("n", "match(1)", "Next match", "Go to the next match"),
    _key("N", "match(-1)", "Previous match", "Go to the previous match"),
    _key("w", "warnings", "Warnings", "Only warnings, errors and findings; not what is harmless"),
    _key("f", "follow", "Follow", "Scroll along with new lines, or stop"),
    _key("g,home", "top", "Top", "First line"),
    _key("G,end", "bottom", "End", "Last line, and follow"),
    _key("left_square_bracket", "finding(-1)", "Previous finding", "Previous line with a finding"),
    _key("right_square_bracket", "finding(1)", "Finding", "Next line with a finding", True, "next_finding"),
    _key("enter", "open", "Record", "The whole record of this line, with its rule", True, "open_finding"),
    _key("A", "access", "Access lines", "Show or fold requests that went well"),
    _key("p", "whole", "Prefixes", "Lines as the server wrote them: process, date and source too"),
    _key("escape", "close_find", "End search", "Forget the query"),
    _key("up", "scroll(-1)", "Line up", "Scroll a line up"),
    _key("down", "scroll(1)", "Line down", "Scroll a line down"),
    _key("pageup", "page(-1)", "Page up", "Scroll a page up"),
    _key("pagedown", "page(1)", "Page down", "Scroll a page down"),
    _key("shift+left", "sideways(-1)", "Left", "Scroll half a width to the left"),
    _key("shift+right", "sideways(1)", "Right", "Scroll half a width to the right"),
]


def subtitle(store: LogStore, follow: bool, query: str, cursor: int | None) -> str:
    """The bottom border: whether new lines scroll in, how many lines, what is sought, what is left out."""
    shown, total = len(store.rows), f"{store.last:,} lines"
    hidden = store.held - shown
    parts = ["follow ▾" if follow else "f follow"]
    if store.warnings_only:
        known = store.left_out
        parts.append(f"{shown:,} of {total}  warnings only" + f", less {known:,} harmless" * (known > 0))
    else:
        parts.append(f"{total}  {hidden:,} folded (A)" if hidden else total)
    if query:
        found = store.matches(query)
        place = f"{found.index(cursor) + 1} of " if cursor in found else ""
        parts.append(f"/{query[:20]}  {place}{len(found):,} found" if found else f"/{query[:20]}  not found")
    else:
        parts.append("/ find")
    return "  ".join([*parts, "w all" if store.warnings_only else "w warnings"])

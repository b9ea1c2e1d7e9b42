"""What is known of each variant's last boot, as sections of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from sparktui.schema.codec import SchemaError, from_plain
from sparktui.schema.live import BootPhase, Expectation
from sparktui.schema.text import printable
from sparktui.ui.format import NOTHING, duration
from sparktui.ui.model import RunModel
from sparktui.ui.screens.text import Section

T = TypeVar("T")
NO_FACTS = "No boot has told its facts yet: they are read from the log and settle when the server is ready."


def boot_sections(model: RunModel) -> tuple[Section, ...]:
    """Facts, phases and expected lines of every variant that was ready once, the newest boot first."""
    boots = dict(model.boots)
    for arm in model.report.arms if model.report else ():
        boots.setdefault(arm.name, {"boot_s": arm.boot_s, "facts": arm.facts})
    if not boots:
        return (Section("Boot facts", (("", NO_FACTS),)),)
    names = sorted(boots, key=lambda name: name != model.booting)
    return tuple(section for name in names for section in _boot(name, boots[name]))


def fact_text(value: Any) -> str:
    """A fact as a reader would say it: on and off, grouped digits, lists in a row."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(str(key))} {fact_text(each)}" for key, each in value.items()) or NOTHING
    if isinstance(value, list | tuple):
        return ", ".join(fact_text(each) for each in value) or NOTHING
    return printable(str(value))


def _boot(name: str, told: Mapping[str, Any]) -> list[Section]:
    seconds = told.get("boot_s")
    ready = f", ready after {duration(seconds)}" if isinstance(seconds, int | float) else ""
    facts = told.get("facts")
    known = facts if isinstance(facts, Mapping) else {}
    rows = [(printable(str(key)).replace("_", " "), fact_text(value)) for key, value in known.items()]
    sections = [Section(f"{printable(name)}{ready}", rows or (("", "the log states none"),))]
    for title, more in (("Expected in the log", _expected(told)), ("Phases", _phases(told))):
        if more:
            sections.append(Section(f"{printable(name)}: {title.lower()}", more))
    return sections


def _expected(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for each in _built(Expectation, told.get("expected")):
        where = "not there" if each.met is False else f"line {each.line}" if each.line else NOTHING
        mark = "✖" if each.met is False else "✔" if each.met else "·"
        rows.append((f"{mark} {where}", printable(each.text)))
    return rows


def _phases(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for phase in _built(BootPhase, told.get("phases")):
        if phase.name != "ready" and phase.seconds is not None:
            quiet = f", longest silence {duration(phase.quiet_s)}" if phase.quiet_s >= 1 else ""
            rows.append((printable(phase.name), f"{phase.seconds:.1f} s{quiet}"))
    return rows


def _built(kind: type[T], values: Any) -> list[T]:
    try:
        return [from_plain(kind, value) for value in values or ()]
    except (SchemaError, TypeError):
        return []  # another version's data

"""Findings and expectations as text: rows of the list, the explanation below it, the whole record."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Sequence

from sparktui.schema.live import Expectation, Finding
from sparktui.ui.format import NOTHING
from sparktui.ui.widgets.log_lines import MARKS
from sparktui.ui.widgets.log_store import SEVERITIES
from sparktui.ui.widgets.log_text import plain

SELECTED = "▸"
RECORD_LINES = 300  # shown of one record; the log file has the rest
_MISSING_SHOWN = 3
_QUIET = ("note", "harmless")


def matters(finding: Finding) -> bool:
    """Whether it is above a note."""
    return finding.severity not in _QUIET


_ANNOUNCEMENTS = ("core-fail", "core-init-fail")  # say that something failed, not what


def sorted_findings(findings: Sequence[Finding], dismissed: Collection[str] = ()) -> tuple[Finding, ...]:
    """Those above harmless that are not dismissed (by id), the most expensive first.

    By severity; then CUDA graphs, which cost on every step; then causes before what follows from them; then
    by line, those of no single line last.
    """
    kept = [f for f in findings if f.severity != "harmless" and f.id not in dismissed]

    def weight(f: Finding) -> tuple[int, bool, bool, bool, int]:
        follows = bool(f.cause) or f.id in _ANNOUNCEMENTS
        return SEVERITIES.index(f.severity), not f.id.startswith("cg-"), follows, not f.line, f.line

    return tuple(sorted(kept, key=weight))


def heading(findings: Sequence[Finding], dismissed: int) -> str:
    """``Findings  2 ▲ 1 ·``: how many of each mark."""
    counts = Counter(MARKS[f.severity] for f in findings)
    parts = [f"{counts[mark]} {mark}" for mark in dict.fromkeys(MARKS.values()) if counts[mark]]
    told = "  ".join(["Findings", " ".join(parts)] if parts else ["Findings"])
    return f"{told}  ({dismissed} dismissed: u)" if dismissed else told


def shortened(text: str, width: int) -> str:
    """Head and tail of a long text: vLLM says what is wrong first and what it does about it last."""
    if len(text) <= width:
        return text
    if width < 8:
        return text[: max(0, width - 1)] + "…"[: max(0, width)]
    head = (width - 1) // 4
    return f"{text[:head].rstrip()}…{text[len(text) - (width - 1 - head) :]}"


def line_number(finding: Finding) -> str:
    """The line in the log, or — where no single line says it."""
    return str(finding.line) if finding.line else NOTHING


def because(finding: Finding, findings: Sequence[Finding]) -> str:
    """``because of line 34``, when another finding is its cause."""
    cause = next((f for f in findings if finding.cause and f.id == finding.cause), None)
    if cause is None:
        return ""
    return (
        f"because of line {cause.line}" if cause.line else f"because of: {shortened(plain(cause.text), 60)}"
    )


def finding_row(
    finding: Finding,
    width: int,
    *,
    selected: bool = False,
    line_width: int = 1,
    word_width: int = 0,
    reason: str = "",
) -> str:
    """``▸▲ 144 costs speed  ×3 CUDAGraphMode…cudagraph_mode=PIECEWISE``, at most ``width`` characters."""
    mark = (SELECTED if selected else " ") + MARKS[finding.severity]
    head = f"{mark} {line_number(finding):>{line_width}} {finding.severity:<{word_width}}  "
    head += f"×{finding.count} " * (finding.count > 1) + f"{reason}: " * bool(reason)
    return head[:width] + shortened(plain(finding.text), max(0, width - len(head)))


def cost(finding: Finding) -> str:
    """What it costs, and who measured that in brackets."""
    if not finding.cost or not finding.source:
        return finding.cost
    return f"{finding.cost.rstrip('.')} ({finding.source.rstrip('.')})."


def explanation(finding: Finding, width: int, reason: str = "") -> list[str]:
    """Meaning, cause, cost and remedy, wrapped."""
    follows = f"{reason[:1].upper()}{reason[1:]}." if reason else ""
    told = (("", finding.meaning), ("", follows), ("Costs: ", cost(finding)), ("Do: ", finding.remedy))
    return [line for label, text in told if text for line in _wrapped(label + plain(text), width)]


def record_text(
    finding: Finding, record: Sequence[str] = (), reason: str = "", version: str | None = None
) -> list[str]:
    """Everything about a finding as lines of any length. ``record``: its lines as far as they are kept."""
    lines = [_title(finding)]
    if finding.count > 1:
        lines.append(f"said {finding.count} times, with other names or numbers")
    lines += ["", *record_lines(record, finding.lines)] if record else ["", plain(finding.text)]
    told = (
        ("Meaning", finding.meaning),
        ("Follows", reason),
        ("Costs", finding.cost),
        ("Source", finding.source),
        ("Do", finding.remedy),
        ("Flag", finding.flag),
        ("Rule", finding.id),
        ("vLLM", version or ""),
    )
    for label, text in told:
        if text:
            lines += ["", label, f"  {plain(text)}"]
    return lines


def record_lines(record: Sequence[str], whole: int) -> list[str]:
    """A record's lines, and how many of its ``whole`` number are not among them."""
    shown = [plain(line) for line in record[:RECORD_LINES]]
    missing = max(whole, len(record)) - len(shown)
    return [*shown, f"… {missing} more lines in server.log"] if missing > 0 else shown


def plain_record(first: int, record: Sequence[str]) -> list[str]:
    """The record of a line that no rule knows."""
    return [
        *record_lines(record, len(record)),
        "",
        f"No rule says anything about {_lines(first, len(record))}.",
    ]


def expected_rows(expected: Sequence[Expectation], width: int) -> list[tuple[str, bool | None]]:
    """What the profile expects in the log: what is missing by name, the rest counted; with how it stands."""
    if not expected:
        return []
    missing = [plain(e.text) for e in expected if e.met is False]
    rows: list[tuple[str, bool | None]] = []
    for text in missing[:_MISSING_SHOWN]:
        told = _wrapped(f'✖ expected and not in the log: "{text}"', width, indent="  ")
        rows += [(line, False) for line in told]
    if len(missing) > _MISSING_SHOWN:
        rows.append((f"✖ and {len(missing) - _MISSING_SHOWN} more", False))
    met = sum(e.met is True for e in expected)
    if any(e.met is None for e in expected):
        return [*rows, (f"· expected {met} of {len(expected)} so far", None)]
    return [*rows, (f"✔ {met} of {len(expected)} expected lines are there", True)] if met else rows


def _title(finding: Finding) -> str:
    where = f"log {_lines(finding.line, finding.lines)}" if finding.line else "no single line says it"
    return f"{MARKS[finding.severity]} {finding.severity}, {where}".strip()


def _lines(first: int, count: int) -> str:
    return f"line {first}" if count < 2 else f"lines {first} to {first + count - 1}"


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, max(1, width), break_on_hyphens=False, subsequent_indent=indent)

"""The A/B's report: from arms and cells to JSON's shape, to Markdown and to plain lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sparktui.compare.verdict import Naming, verdicts_at
from sparktui.compare.why import why
from sparktui.schema.codec import SCHEMA_VERSION
from sparktui.schema.records import ArmReport, Cell, Report, Verdict


def build(
    *,
    profile: str,
    created: float,
    run_id: str,
    workload: str,
    arms: Sequence[ArmReport],
    outcome: str,
    after: str = "",
) -> Report:
    """A report of what was measured. Two arms compare; with less there is no verdict, and it says so."""
    verdicts: list[Verdict] = []
    reasons: tuple[str, ...] = ()
    if len(arms) == 2:
        a, b = arms
        naming = Naming(a.name, b.name, a.speculating, b.speculating, workload)
        for load in sorted({c.concurrency for arm in arms for c in arm.cells}):
            verdicts += verdicts_at(load, _at(a, load), _at(b, load), naming)
        reasons = why(a, b)
    reasons += tuple(f"{arm.name}: {arm.failure}" for arm in arms if arm.failure)
    return Report(
        SCHEMA_VERSION, profile, created, run_id, tuple(arms), tuple(verdicts), reasons, outcome, after
    )


def _at(arm: ArmReport, load: int) -> tuple[Cell, ...]:
    return tuple(cell for cell in arm.cells if cell.concurrency == load)


def decided(report: Report) -> bool:
    """Whether every load has a headline with a ratio."""
    headlines = [v for v in report.verdicts if v.headline]
    return bool(headlines) and all(v.ratio is not None for v in headlines)


def lines(report: Report) -> list[str]:
    """Plain text for a terminal: the verdicts, the figures, the why."""
    out: list[str] = []
    for verdict in report.verdicts:
        if verdict.headline:
            out += [verdict.text, *_disagreement(verdict, report.verdicts)]
    if not report.verdicts:
        out.append(f"No verdict: {report.outcome}.")
    out.append("")
    out += _table(report)
    if report.why:
        out += ["", "Why:", *(f"  {line}" for line in report.why)]
    if report.after:
        out += ["", report.after]
    return out


def markdown(report: Report) -> str:
    """The same as Markdown, arms' commands included."""
    out = [f"# sparktui A/B: {_cell_text(report.profile)}", ""]
    out += [f"- {'**' + _md(v.text) + '**' if v.headline else _md(v.text)}" for v in report.verdicts]
    if not report.verdicts:
        out.append(f"No verdict: {_md(report.outcome)}.")
    out += ["", *_markdown_table(report), ""]
    if report.why:
        out += ["## Why", "", *(f"- {_md(line)}" for line in report.why), ""]
    for arm in report.arms:
        out += [f"## {_md(arm.name)}", "", f"vLLM {_md(arm.vllm_version or 'unknown')}", ""]
        out += ["```", _flat(" ".join(arm.argv)).replace("```", "'''"), "```", ""]
        out += [f"- line {f.line}, {f.severity}: `{_code(f.text)}`" for f in arm.findings]
        out.append("")
    return "\n".join(out)


_COLUMNS = (
    "arm",
    "c",
    "decode tok/s",
    "output tok/s",
    "TTFT ms",
    "accepted",
    "step ms",
    "W",
    "requests",
    "notes",
)


def _rows(report: Report) -> list[tuple[str, ...]]:
    return [_row(arm, cell) for arm in report.arms for cell in arm.cells]


def _row(arm: ArmReport, cell: Cell) -> tuple[str, ...]:
    requests = f"{cell.requests}" + (f" ({cell.errors} failed)" if cell.errors else "")
    return (
        arm.name,
        str(cell.concurrency),
        _number(cell.decode_tok_s),
        _number(cell.output_tok_s),
        _number(cell.ttft_ms.get("p50"), 0),
        "—" if cell.acceptance_rate is None else f"{cell.acceptance_rate:.1%}",
        _number(cell.step_ms),
        _number(cell.power_w, 0),
        requests,
        ", ".join(cell.flags),
    )


def _table(report: Report) -> list[str]:
    rows = [_COLUMNS, *_rows(report)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _markdown_table(report: Report) -> list[str]:
    head = ["| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS)]
    return head + ["| " + " | ".join(_cell_text(text) for text in row) + " |" for row in _rows(report)]


def _disagreement(headline: Verdict, verdicts: Sequence[Verdict]) -> list[str]:
    other = next(v for v in verdicts if v.load == headline.load and not v.headline)
    if {headline.call, other.call} == {"faster", "slower"}:
        return [f"  The other figure disagrees: {other.text}"]
    return []


def _number(value: float | None, digits: int = 1) -> str:
    return "—" if value is None else f"{value:.{digits}f}"


def _md(text: str) -> str:
    """Foreign text must not become Markdown or HTML."""
    text = _flat(text)
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, "\\" + mark)
    return text


def _cell_text(text: str) -> str:
    return _code(text).replace("|", "\\|").replace("<", "&lt;")


def _code(text: str) -> str:
    return _flat(text).replace("`", "'")


def _flat(text: str) -> str:
    """One line: what is no printable character (line ends, escape codes, bidi marks) becomes a space."""
    return "".join(char if char.isprintable() else " " for char in text)

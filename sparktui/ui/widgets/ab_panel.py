"""The A/B while it runs and its verdict after: stage with countdown, the measured arm's table pinned."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from sparktui.schema.live import ExperimentView, Finding
from sparktui.schema.records import ArmReport, Cell, Report, Verdict
from sparktui.ui.format import NOTHING, number, percent
from sparktui.ui.model import RunModel
from sparktui.ui.widgets.finding_text import cost, matters, shortened, sorted_findings
from sparktui.ui.widgets.log_lines import MARKS
from sparktui.ui.widgets.log_text import plain

_COLUMNS = ("arm", "c", "decode tok/s", "output tok/s", "TTFT ms", "accepted", "step ms", "W")
_WIDTHS = (6, 4, 13, 13, 8, 9, 8, 6)
_WIDEST_NAME = 12
_QUOTED = 160  # characters of a log line below a verdict


class AbPanel(VerticalScroll, can_focus=True):
    """Shows whatever the model knows of an A/B; empty without one."""

    DEFAULT_CSS = """
    AbPanel { border: round $accent; height: auto; max-height: 16; padding: 0 1; }
    AbPanel > Static { width: 1fr; }
    AbPanel.verdict { border: round $success; }
    """
    BORDER_TITLE = "A/B"
    ALLOW_MAXIMIZE = True

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, id="ab-text")

    def on_mount(self) -> None:
        self._shown = ""

    def show(self, model: RunModel) -> None:
        """Stage and cells while it runs; verdict, table and why when it is over."""
        experiment = model.snapshot.experiment if model.snapshot else None
        over = model.report is not None and experiment is None
        lines = report_lines(model.report) if over and model.report else progress_lines(model, experiment)
        plain = "\n".join(line.plain for line in lines)
        if plain == self._shown:
            return
        self._shown = plain
        self.set_class(over, "verdict")
        self.border_title = "Verdict" if over else "A/B"
        self.border_subtitle = "6 shows all of it · esc hides and shows it"
        self.query_one("#ab-text", Static).update(Group(*lines))


def progress_lines(model: RunModel, experiment: ExperimentView | None) -> list[Text]:
    """Stage line, the table so far, and what only this boot's log has said."""
    lines = []
    if experiment is not None:
        lines.append(stage_line(experiment))
    if model.cells:
        lines += table_lines(model.cells)
    lines += [
        only_line(finding, model.booting)
        for finding in sorted_findings(model.only_here())
        if matters(finding)
    ]
    return lines


def stage_line(experiment: ExperimentView) -> Text:
    """``[2/2] on c=1 window · 7 s left (ends by precision)``."""
    text = Text(f"[{experiment.step}/{experiment.steps}] ", "dim")
    text.append(experiment.arm, "bold")
    if experiment.concurrency is not None:
        text.append(f" c={experiment.concurrency}")
    text.append(f" {experiment.stage}", "bold yellow")
    if experiment.remaining_s is not None:
        text.append(f" · {experiment.remaining_s:.0f} s left")
        if experiment.ends_by == "precision":
            text.append(" at most, less if precise", "dim")
    return text


def table_lines(cells: Sequence[Cell]) -> list[Text]:
    """A row a cell under a dim head; below a row what flags its window, where it can't be cut off."""
    name = (
        max(_WIDTHS[0], *(min(_WIDEST_NAME, len(cell.variant)) + 1 for cell in cells))
        if cells
        else _WIDTHS[0]
    )
    widths = (name, *_WIDTHS[1:])
    lines = [Text(_row(_COLUMNS, widths), "dim")]
    for cell in cells:
        values = (
            plain(cell.variant),
            str(cell.concurrency),
            number(cell.decode_tok_s),
            number(cell.output_tok_s),
            number(cell.ttft_ms.get("p50"), 0),
            percent(cell.acceptance_rate),
            number(cell.step_ms),
            number(cell.power_w, 0),
        )
        lines.append(Text(_row(values, widths)))
        if cell.flags:
            lines.append(Text(f"  ▲ {', '.join(cell.flags)}", "yellow"))
    return lines


def _row(values: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (value[:width].ljust(width) for value, width in zip(values, widths, strict=True))
    return first + "".join(value.strip().rjust(width) for value, width in zip(rest, widths[1:], strict=True))


def only_line(finding: Finding, variant: str) -> Text:
    """``▲ only in on so far, line 144: …``."""
    return _finding_line(finding, f"only in {variant} so far{_at(finding)}")


def arm_lines(arms: Sequence[ArmReport]) -> list[Text]:
    """Findings above note: those of one arm only with their cost, then those of both."""
    if len(arms) != 2:
        return [_costed(f, f"in {arm.name}{_at(f)}") for arm in arms for f in _grave(arm)]
    a, b = arms
    lines = []
    for arm, other in ((b, a), (a, b)):
        known = {finding.id for finding in other.findings}
        alone = (f for f in _grave(arm) if f.id not in known)
        lines += [_costed(f, f"only in {arm.name}{_at(f)}") for f in alone]
    there = {finding.id: finding for finding in reversed(a.findings)}
    shared = ((there[f.id], f) for f in _grave(b) if f.id in there)
    return lines + [_finding_line(f, f"in {a.name}{_at(g)}, and {b.name}{_at(f)}") for g, f in shared]


def _grave(arm: ArmReport) -> list[Finding]:
    """One a rule, the most expensive first."""
    first: dict[str, Finding] = {}
    for finding in sorted_findings(arm.findings):
        if matters(finding):
            first.setdefault(finding.id, finding)
    return list(first.values())


def _at(finding: Finding) -> str:
    return f", line {finding.line}" if finding.line else ""


def _finding_line(finding: Finding, where: str) -> Text:
    mark = MARKS[finding.severity]
    text = Text(f"{mark} ", "bold red" if mark == "✖" else "bold yellow")
    text.append(f"{where}, {finding.severity}: ", "bold")
    text.append(shortened(plain(finding.text), _QUOTED))
    return text


def _costed(finding: Finding, where: str) -> Text:
    text = _finding_line(finding, where)
    if finding.cost:
        if text.plain.endswith("."):
            text.right_crop(1)
        text.append(f". Costs: {plain(cost(finding))}", "dim")
    return text


def report_lines(report: Report) -> list[Text]:
    """The headline first, in words; then the figures, the findings of the arm that has them, and the why."""
    lines = [_verdict_line(verdict) for verdict in report.verdicts if verdict.headline]
    if not report.verdicts:
        lines.append(Text(f"✖ No verdict: {report.outcome}.", "bold red"))
    lines += table_lines([cell for arm in report.arms for cell in arm.cells])
    lines += arm_lines(report.arms)
    if report.after:
        lines.append(Text(f"{report.after} s switches the arm, e exports this, ] shows the causes", "dim"))
    told = tuple(f"Only in {arm.name}" for arm in report.arms)  # they stand above
    lines += [Text(f"· {line}") for line in report.why if not line.startswith(told)]
    return lines


def _verdict_line(verdict: Verdict) -> Text:
    mark = {"faster": "✔", "slower": "▲", "could not measure": "✖"}.get(verdict.call, "~")
    return Text(f"{mark} {verdict.text}", "bold" if verdict.ratio is not None else "bold red")


def summary(report: Report | None) -> str:
    """One line for the header and for notifications."""
    if report is None:
        return NOTHING
    return next((v.text for v in report.verdicts if v.headline), f"No verdict: {report.outcome}.")

"""The A/B while it runs and its verdict after: stage with countdown, the measured arm's table pinned."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from sparktui.schema.live import ExperimentView, Finding
from sparktui.schema.records import Cell, Report, Verdict
from sparktui.ui.format import NOTHING, number, percent
from sparktui.ui.model import RunModel

_COLUMNS = ("arm", "c", "decode tok/s", "output tok/s", "TTFT ms", "accepted", "step ms", "W")
_WIDTHS = (6, 4, 13, 13, 8, 9, 8, 6)


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
    lines += [only_line(finding, model.booting) for finding in model.only_here() if _matters(finding)]
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
    """A row a cell under a dim head."""
    lines = [Text(_row(_COLUMNS), "dim")]
    for cell in cells:
        values = (
            cell.variant,
            str(cell.concurrency),
            number(cell.decode_tok_s),
            number(cell.output_tok_s),
            number(cell.ttft_ms.get("p50"), 0),
            percent(cell.acceptance_rate),
            number(cell.step_ms),
            number(cell.power_w, 0),
        )
        lines.append(Text(_row(values) + "  " + ", ".join(cell.flags)))
    return lines


def _row(values: Sequence[str]) -> str:
    first, *rest = (value[:width].ljust(width) for value, width in zip(values, _WIDTHS, strict=True))
    return first + "".join(value.strip().rjust(width) for value, width in zip(rest, _WIDTHS[1:], strict=True))


def only_line(finding: Finding, variant: str) -> Text:
    """``▲ only in on, line 144: …``."""
    text = Text("▲ ", "bold yellow")
    text.append(f"only in {variant} so far, line {finding.line}: ", "bold")
    text.append(finding.text)
    return text


def report_lines(report: Report) -> list[Text]:
    """The headline first, in words; then the figures and the why."""
    lines = [_verdict_line(verdict) for verdict in report.verdicts if verdict.headline]
    if not report.verdicts:
        lines.append(Text(f"✖ No verdict: {report.outcome}.", "bold red"))
    lines += table_lines([cell for arm in report.arms for cell in arm.cells])
    if report.after:
        lines.append(Text(f"{report.after} s switches the arm, e exports this, ] shows the causes", "dim"))
    lines += [Text(f"· {line}") for line in report.why]
    return lines


def _verdict_line(verdict: Verdict) -> Text:
    mark = {"faster": "✔", "slower": "▲", "could not measure": "✖"}.get(verdict.call, "~")
    return Text(f"{mark} {verdict.text}", "bold" if verdict.ratio is not None else "bold red")


def _matters(finding: Finding) -> bool:
    return finding.severity not in ("note", "harmless")


def summary(report: Report | None) -> str:
    """One line for the header and for notifications."""
    if report is None:
        return NOTHING
    return next((v.text for v in report.verdicts if v.headline), f"No verdict: {report.outcome}.")

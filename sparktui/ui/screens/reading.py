"""The live screen's reading side: the log, its findings, their records, the facts of a boot."""

from __future__ import annotations

from textual import on

from sparktui.rundir import RunDir
from sparktui.schema.live import Finding
from sparktui.ui.boot_facts import boot_sections
from sparktui.ui.follower import Follower
from sparktui.ui.model import RunModel
from sparktui.ui.screens.ordering import Connect, OrderingScreen
from sparktui.ui.screens.text import TextScreen
from sparktui.ui.widgets.finding_text import because, plain_record, record_text
from sparktui.ui.widgets.findings import FindingsPane
from sparktui.ui.widgets.log_view import LogView

_WAITING = "starting the host …"


class ReadingScreen(OrderingScreen):
    """A screen with a log and a findings pane that follow each other."""

    def __init__(self, run: RunDir, connect: Connect = Follower) -> None:
        super().__init__(run, connect)
        self._log, self._findings = LogView(), FindingsPane()

    def show_all(self) -> None:
        """Every pane from the model; a subclass's business."""
        raise NotImplementedError

    def show_reading(self) -> None:
        """Log and findings as the model has them."""
        model = self.model
        expected = model.snapshot.expected if model.snapshot else ()
        self._findings.show(model.counted_findings(), model.dismissed, expected)
        self._log.show_partial(partial_text(model))

    async def action_log(self, action: str) -> None:
        """A key of the log, from anywhere on the screen."""
        if self.query_one("#bottom").display:
            self._log.focus()  # so that enter opens what the key went to
        await self._log.run_action(action)

    def action_dismiss_finding(self) -> None:
        """The selected finding is known: the header and the list forget it."""
        self._findings.action_dismiss()

    def action_restore_findings(self) -> None:
        """Show the dismissed findings again."""
        self.notify(f"{len(self.model.dismissed)} dismissed findings are back", timeout=3)
        self.model.dismissed.clear()
        self.show_all()

    def action_boot_facts(self) -> None:
        """What the logs say of each variant's last boot."""
        self.app.push_screen(TextScreen("Boot facts", boot_sections(self.model)))

    def _open_finding(self, finding: Finding) -> None:
        known = self.model.counted_findings()
        told = next((f for f in known if (f.id, f.line) == (finding.id, finding.line)), finding)
        record = self._log.store.texts(told.line, told.lines) if told.line else []
        version = self.model.snapshot.server.version if self.model.snapshot else None
        text = "\n".join(record_text(told, record, because(told, known), version))
        title = f"log line {told.line}" if told.line else "finding"
        self.app.push_screen(TextScreen(title, text))

    @on(LogView.FindingOpened)
    @on(FindingsPane.Opened)
    def _finding_opened(self, message: LogView.FindingOpened | FindingsPane.Opened) -> None:
        self._open_finding(message.finding)

    @on(LogView.RecordOpened)
    def _record_opened(self, message: LogView.RecordOpened) -> None:
        text = "\n".join(plain_record(message.first, message.lines))
        self.app.push_screen(TextScreen(f"log line {message.first}", text))

    @on(LogView.FindingSelected)
    def _line_selected(self, message: LogView.FindingSelected) -> None:
        self._findings.select(message.finding)
        if not self.query_one("#bottom").display:
            self._open_finding(message.finding)

    @on(FindingsPane.Selected)
    def _finding_selected(self, message: FindingsPane.Selected) -> None:
        if message.finding.line:
            self._log.reveal(message.finding.line)

    @on(FindingsPane.Dismissed)
    def _finding_dismissed(self, message: FindingsPane.Dismissed) -> None:
        self.model.dismissed.add(message.finding.id)
        if not self._findings.size.height:  # nothing on screen says so
            self.notify(f"dismissed: {message.finding.text}\nu shows it again", markup=False, timeout=5)
        self.show_all()

    @on(FindingsPane.Restored)
    def _findings_restored(self) -> None:
        self.action_restore_findings()


def partial_text(model: RunModel) -> str:
    """What stands below the log's last line: the progress bar now, or why there is no log yet."""
    if model.finished is not None:
        return ""
    return _WAITING if model.snapshot is None else model.snapshot.log_partial

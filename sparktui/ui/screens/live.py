"""The live screen: one run, booting, serving or being measured."""

from __future__ import annotations

import time
from pathlib import Path
from time import monotonic

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Footer

from sparktui.client.freshness import fresh
from sparktui.compare.report import markdown
from sparktui.rundir import RunDir
from sparktui.schema.live import Snapshot
from sparktui.schema.records import PrefixProbe
from sparktui.ui.backend import CannotDo
from sparktui.ui.figure_rows import figure_sections
from sparktui.ui.follower import Follower
from sparktui.ui.messages import (
    EventsArrived,
    LinkLost,
    LogArrived,
    Refused,
    RunFinished,
    SnapshotArrived,
)
from sparktui.ui.probe_text import probe_line, probe_text
from sparktui.ui.screens import orders
from sparktui.ui.screens.live_keys import LIVE_KEYS
from sparktui.ui.screens.ordering import Connect
from sparktui.ui.screens.panes import CHARTS, TILES, show_acceptance, show_charts, show_tiles
from sparktui.ui.screens.reading import ReadingScreen
from sparktui.ui.screens.text import TextScreen
from sparktui.ui.widgets.ab_panel import AbPanel, summary
from sparktui.ui.widgets.acceptance import AcceptanceBars
from sparktui.ui.widgets.chart import Chart
from sparktui.ui.widgets.failure import FailureBox
from sparktui.ui.widgets.figure_table import FigureTable
from sparktui.ui.widgets.header import RunHeader
from sparktui.ui.widgets.phases import Phases
from sparktui.ui.widgets.tile import Tile

SILENT_HOST_S = 5.0  # the host tells twice a second


class Tiles(Vertical):
    """Pane 1: the tiles; with the whole screen, all figures below them."""

    ALLOW_MAXIMIZE = True


class Charts(Vertical):
    """Pane 2."""

    ALLOW_MAXIMIZE = True


class LiveScreen(ReadingScreen):
    """Panes 1 to 6: tiles, charts, acceptance, findings, log, A/B."""

    BINDINGS = [Binding(*key) if isinstance(key, tuple) else key for key in LIVE_KEYS]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]
    CSS_PATH = "live.tcss"

    def __init__(self, run: RunDir, connect: Connect = Follower) -> None:
        super().__init__(run, connect)
        self.held = False
        self._told = monotonic()  # when the host's last word came
        self._opened = time.time()  # what happened before is shown, not announced
        self._panel_hidden = False
        self._tiles = {name: Tile(label, id=f"tile-{name}") for name, label in TILES}
        self._charts = {name: Chart(label, id=f"chart-{name}") for name, label in CHARTS}
        self._header, self._phases = RunHeader(), Phases()
        self._bars, self._panel, self._failure = AcceptanceBars(), AbPanel(), FailureBox()
        self._table = FigureTable()
        self._usual_s: dict[str, dict[str, float]] = {}  # seconds by variant and phase, in earlier boots

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._phases
        with Tiles(id="tiles"):
            yield Horizontal(*self._tiles.values(), id="tile-row")
            with VerticalScroll(id="figures"):
                yield self._table
        yield self._failure
        yield self._panel
        with Horizontal(id="middle"):
            yield Charts(*self._charts.values(), id="charts")
            yield self._bars
        with Horizontal(id="bottom"):
            yield self._log
            yield self._findings
        yield self.slider
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.slider.configure(self.plan.arms[self.plan.first].max_num_seqs)
        self._log.focus()
        self.set_class(True, "-booting")
        self._panel.display = False
        self._header.show(self.model, None)
        self.show_reading()
        self._look_back()
        self.set_interval(1.0, self.look_for_silence)
        self.run_worker(self.follower.run(), name="follower", exclusive=True, exit_on_error=False)

    @work(thread=True, exit_on_error=False, group="look back")
    def _look_back(self) -> None:
        """How long earlier boots took; on disk, so in a thread."""
        self._usual_s = self.spark.backend.boot_phases(self.run)

    # what arrives

    def on_snapshot_arrived(self, message: SnapshotArrived) -> None:
        self._told = monotonic()
        self.model.take_snapshot(message.snapshot)
        self.show_all()

    def on_events_arrived(self, message: EventsArrived) -> None:
        for event in message.events:
            self.model.take_event(event)
            if "begun" in event.data or "report" in event.data:
                self._panel_hidden = False
            if "report" in event.data and event.t > self._opened:
                self.held = False
                self._announce()
            if "prefix_probe" in event.data and event.t > self._opened and self.model.probe:
                self._announce_probe(self.model.probe)
        self._log.mark(self.model.current_findings())
        self.show_all()

    def _announce(self) -> None:
        """The verdict, where its pane can't be seen: below another screen, or behind a maximised pane."""
        if self.app.screen is not self or self.maximized not in (None, self._panel):
            self.notify(summary(self.model.report), title="Verdict", markup=False, timeout=15)

    def _announce_probe(self, probe: PrefixProbe) -> None:
        """What was found: all of it, or where something else lies on the screen, the answer."""
        if self.app.screen is self:
            self.action_show_probe()
            return
        self.notify(
            probe_line(probe),
            title="Prefix cache",
            severity="warning" if probe.call == "useless" else "information",
            markup=False,
            timeout=15,
        )

    def action_show_probe(self) -> None:
        """The last probe of the prefix cache, with its three answers."""
        self.app.push_screen(TextScreen("Prefix cache", probe_text(self.model.probe)))

    def on_log_arrived(self, message: LogArrived) -> None:
        self._log.extend(message.first, message.lines)

    def on_run_finished(self, message: RunFinished) -> None:
        self.model.finished = message.finished
        self.held = False
        if self.quit_when_over:
            self.app.exit(0)
            return
        if self.relaunch_when_over:
            self.spark.relaunch(self.run)
            return
        if message.finished.state == "failed" and (self.app.screen is not self or self.maximized is not None):
            self.notify(message.finished.reason, title="Failed", severity="error", markup=False, timeout=15)
        self.show_all()

    def on_link_lost(self, message: LinkLost) -> None:
        self.model.lose(message.why)
        self.notify(message.why, title="No connection", severity="error", markup=False)
        self.show_all()

    def look_for_silence(self) -> None:
        """A host that says nothing any more leaves no figure behind that looks alive."""
        if self.model.snapshot is None or self.model.finished is not None or self.model.lost:
            return
        if monotonic() - self._told > SILENT_HOST_S:
            self.model.lose("the host is silent")
            self.show_all()

    def on_refused(self, message: Refused) -> None:
        self.notify(message.why, severity="warning", markup=False)

    def show_all(self) -> None:
        """Every pane from the model, unless the display is held."""
        self._header.show(self.model, self.follower.number, held=self.held)
        if self.held or not self.is_mounted:
            return
        snapshot = self.model.snapshot
        with self.app.batch_update():
            state = snapshot.server.state if snapshot else "booting"
            over = self.model.finished is not None
            self.set_class(state == "booting" or (over and not self.model.cells), "-booting")
            show_tiles(self._tiles, self.model)
            show_charts(self._charts, self.model)
            show_acceptance(self._bars, self.model)
            self.show_reading()
            self._panel.show(self.model)
            experiment = snapshot.experiment if snapshot else None
            self._panel.display = not self._panel_hidden and bool(experiment or self.model.report)
            self.set_class(self._panel.display, "-measuring")
            self._failure.show(self.model.finished)
            self.slider.display = not over
            self.set_class(over, "-over")
            if snapshot is not None:
                self._show_snapshot(snapshot)

    def _show_snapshot(self, snapshot: Snapshot) -> None:
        """What comes from the newest snapshot alone."""
        if self.maximized is self.query_one("#tiles"):
            self._table.show(figure_sections(snapshot))
        self._phases.show(
            snapshot.phases,
            state=self.model.finished.state if self.model.finished else snapshot.server.state,
            now_s=snapshot.t - snapshot.server.since,
            expected=self._usual_s.get(snapshot.server.variant),
            silence=snapshot.silence,
        )
        locked = (
            "locked: measuring" if snapshot.experiment else orders.refusal(snapshot, self.follower.number)
        )
        load = snapshot.load
        self.slider.show(
            load.asked,
            load.in_flight,
            fresh(snapshot).running,
            locked=locked,
            workload=orders.workload_text(self.plan.load, load.workload),
        )

    def action_hold(self) -> None:
        """Hold the display; sampling goes on."""
        self.held = not self.held
        self.show_all()
        self.notify("display held: space goes on" if self.held else "display goes on", timeout=3)

    def action_pane(self, number: int) -> None:
        """Maximise a pane, or go back."""
        panes: tuple[Widget, ...] = (
            self.query_one("#tiles"), self.query_one("#charts"), self._bars,
            self._findings, self._log, self._panel,
        )  # fmt: skip
        pane = panes[number - 1]
        if self.maximized is pane:
            self.minimize()
        elif pane is not self._panel or pane.display:
            self.maximize(pane, container=False)
            scrolls = self.query_one("#figures") if isinstance(pane, Tiles) else pane
            if scrolls.can_focus:
                scrolls.focus()  # by key
            self.show_all()

    def action_back(self) -> None:
        """Out of a maximised pane, else hide the A/B panel."""
        if self.maximized is not None:
            self.minimize()
        else:
            self._panel_hidden = not self._panel_hidden
            self.show_all()

    def action_edit(self) -> None:
        """The profile in $EDITOR."""
        if self.plan.profile_path:
            self.spark.edit(self.plan.profile_path)
        else:
            self.notify("this run has no profile to edit", severity="warning")

    def action_past(self) -> None:
        """The grid of arms and loads, earlier boots and the last verdict of this profile."""
        try:
            text = self.spark.backend.past(self.run)
        except CannotDo as exc:
            self.notify(str(exc), severity="error", markup=False)
            return
        self.app.push_screen(TextScreen(f"{self.model.title} so far", text))

    def action_copy(self) -> None:
        """The verdict if there is one, else what the log shows."""
        report = self.model.report
        self.app.copy_to_clipboard(markdown(report) if report else self._log.copy_text())
        self.notify("copied", timeout=3)

    def action_export(self) -> None:
        """The report as Markdown in the working folder."""
        if self.model.report is None:
            self.notify("no report yet", severity="warning")
            return
        path = Path.cwd() / f"{self.run.id}.md"
        path.write_text(markdown(self.model.report), "utf-8")
        self.notify(str(path), title="Written", markup=False)

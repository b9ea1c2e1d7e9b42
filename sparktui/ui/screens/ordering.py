"""The live screen's orders: what the keys ask of the host, with the sheets and questions before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual import on
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer

from sparktui.rundir import RunDir
from sparktui.schema.launch import Plan
from sparktui.schema.messages import (
    CancelExperiment,
    ProbePrefixCache,
    SetLoad,
    SetWindow,
    SetWorkload,
    StartExperiment,
    StopRun,
    SwitchArm,
)
from sparktui.schema.text import printable
from sparktui.ui.follower import Follower
from sparktui.ui.model import RunModel
from sparktui.ui.screens import orders
from sparktui.ui.screens.ask import AskScreen
from sparktui.ui.screens.sheet import Sheet, SheetScreen
from sparktui.ui.widgets.slider import LoadSlider

if TYPE_CHECKING:
    from sparktui.ui.app import SparkApp

Connect = Callable[[RunDir, Callable[[Message], object]], Follower]
_DEBOUNCE_S = 0.15
_WINDOWS = (5, 15, 60)


class OrderingScreen(Screen[None]):
    """A screen of one run whose keys give orders. What it shows is its subclass's business."""

    def __init__(self, run: RunDir, connect: Connect = Follower) -> None:
        super().__init__()
        self.run = run
        self.plan: Plan = run.plan()
        self.model = RunModel(title=printable(self.plan.profile))
        self.follower = connect(run, self.post_message)
        self.slider = LoadSlider()
        self.relaunch_when_over = False
        self.quit_when_over = False
        self._load_timer: Timer | None = None

    @property
    def spark(self) -> SparkApp:
        """The app, by its own type."""
        return cast("SparkApp", self.app)

    def _ask(self, question: AskScreen, wanted: str, then: Callable[[], None]) -> None:
        """Push a question; ``then`` only on the wanted answer."""

        def answered(value: str | None) -> None:
            if value == wanted:
                then()

        self.app.push_screen(question, answered)

    def _may(self) -> bool:
        why = orders.refusal(self.model.snapshot, self.follower.number)
        if self.model.finished is not None:
            why = "the run is over: r relaunches, R shows what else there is"
        if why:
            self.notify(why, severity="warning", markup=False)
        return not why

    def _send(self, intent: object) -> None:
        self.run_worker(self.follower.send(intent), group="intents", exit_on_error=False)

    def action_ab(self) -> None:
        """The sheet, then the A/B."""
        snapshot = self.model.snapshot
        if not self._may() or snapshot is None:
            return
        arms = orders.other_arm(self.plan.arms, snapshot.server.variant)
        if arms is None:
            self.notify("this profile has no speculative: key, so there is nothing to compare", markup=False)
            return
        loads = orders.loads_of(snapshot)
        typed = self.spark.typed_before
        minutes = self.spark.backend.sheet(self.run, arms, loads).minutes
        pair = (self.plan.arms[arms[0]], self.plan.arms[arms[1]])
        sheet = orders.ab_sheet(self.model, snapshot, pair, loads, minutes, typed)
        self._after_sheet(sheet, StartExperiment(arms, loads))

    def action_switch(self) -> None:
        """The same sheet, then only the restart."""
        snapshot = self.model.snapshot
        arms = orders.other_arm(self.plan.arms, snapshot.server.variant) if snapshot else None
        if not self._may() or snapshot is None or arms is None:
            return
        target = arms[0] if self.plan.arms[arms[1]].variant == snapshot.server.variant else arms[1]
        typed = self.spark.typed_before
        self._after_sheet(
            orders.switch_sheet(self.model, snapshot, self.plan.arms[target], typed), SwitchArm(target)
        )

    def action_variant(self) -> None:
        """One of the profile's variants."""
        snapshot = self.model.snapshot
        if not self._may() or snapshot is None:
            return
        choices = [(str(i + 1), str(i), arm.variant) for i, arm in enumerate(self.plan.arms[:9])]

        def chosen(value: str | None) -> None:
            if value:
                target = self.plan.arms[int(value)]
                sheet = orders.switch_sheet(self.model, snapshot, target, typed=False)
                self._after_sheet(sheet, SwitchArm(int(value)))

        self.app.push_screen(AskScreen("Variant", "Restart as:", choices), chosen)

    def action_workload(self) -> None:
        """One of the workloads."""
        if self._may_measure() and self.model.snapshot is not None:
            choices = orders.workload_choices(self.plan.load, self.model.snapshot.load.workload)
            self.app.push_screen(AskScreen("Workload", "Send:", choices), self.set_workload)

    def set_workload(self, name: str | None) -> None:
        """Other requests from now on; none for an empty name."""
        if name and self._may_measure():
            self._send(SetWorkload(name))

    def action_probe(self) -> None:
        """Ask the host whether the prefix cache serves; an event has the answer."""
        if self._may_measure():
            self._send(ProbePrefixCache())
            self.notify("the same request three times: our load pauses meanwhile", timeout=5)

    def _may_measure(self) -> bool:
        """Whether what is sent may change now; says why not."""
        if not self._may():
            return False
        measuring = self.model.snapshot is not None and self.model.snapshot.experiment is not None
        if measuring:
            self.notify("locked: measuring", severity="warning")
        return not measuring

    def _after_sheet(self, sheet: Sheet, intent: object) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._send(intent)

        self.app.push_screen(SheetScreen(sheet), answered)

    def action_load(self, step: int) -> None:
        """A stop up or down."""
        if self._may():
            self.slider.step(step)

    def action_idle(self) -> None:
        if self._may():
            self.slider.set_idle()

    @on(LoadSlider.Changed)
    def _load_changed(self, message: LoadSlider.Changed) -> None:
        """Told to the host when the slider has rested for a moment."""
        if self._load_timer is not None:
            self._load_timer.stop()
        intent = SetLoad(message.concurrency)
        self._load_timer = self.set_timer(_DEBOUNCE_S, lambda: self._send(intent))

    def action_cut(self) -> None:
        """Cancel the A/B, or cut the streams above the load."""
        if not self._may():
            return
        if self.model.snapshot is not None and self.model.snapshot.experiment is not None:
            ways = [("y", "cancel", "cancel: end with what it has, go back to what served before")]
            question = AskScreen("Cancel the A/B?", "It can't be taken up again.", ways)
            self._ask(question, "cancel", lambda: self._send(CancelExperiment()))
        elif self.model.snapshot is not None:
            self._send(SetLoad(self.model.snapshot.load.asked, cut=True))

    def action_window(self) -> None:
        """5, 15, 60 s."""
        current = self.model.snapshot.figures.window_s if self.model.snapshot else 5
        following = next((w for w in _WINDOWS if w > current + 0.5), _WINDOWS[0])
        self._send(SetWindow(following))
        self.notify(f"figures over {following} s", timeout=3)

    def action_take_over(self) -> None:
        """Ask, then drive."""
        snapshot = self.model.snapshot
        if snapshot is None or snapshot.driver is None or snapshot.driver.client == self.follower.number:
            return
        question = AskScreen(
            "Take over?", f"{snapshot.driver.label} drives this run.", [("y", "yes", "take over its keys")]
        )
        take = self.follower.take_over
        self._ask(question, "yes", lambda: void(self.run_worker(take())))

    def action_stop_server(self) -> None:
        """Ask, then stop server and run."""
        if self._may():
            question = AskScreen("Stop the server?", self.run.id, [("y", "stop", "stop it, load and all")])
            self._ask(question, "stop", lambda: self._send(StopRun()))

    def action_relaunch(self) -> None:
        """Ask, then a new run of the same plan, after stopping this one."""
        if self.model.finished is not None:
            self.spark.relaunch(self.run)
        elif self._may():
            question = AskScreen("Relaunch?", "The server stops and boots anew.", [("y", "yes", "relaunch")])
            self._ask(question, "yes", self._stop_then_relaunch)

    def _stop_then_relaunch(self) -> None:
        self.relaunch_when_over = True
        self._send(StopRun("relaunched"))


def void(_: object) -> None:
    """For callbacks that must give nothing."""

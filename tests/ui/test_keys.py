"""Each key of the live screen: the intent it sends, the state after, the screen."""

from __future__ import annotations

import dataclasses
import time

import pytest

from sparktui.schema.codec import to_plain
from sparktui.schema.live import Driver, Event, ServerView
from sparktui.schema.messages import (
    CancelExperiment,
    Finished,
    SetLoad,
    SetWindow,
    StartExperiment,
    StopRun,
    SwitchArm,
)
from sparktui.ui.app import SparkApp
from sparktui.ui.messages import EventsArrived, Refused, RunFinished, SnapshotArrived
from sparktui.ui.screens.ask import AskScreen
from sparktui.ui.screens.live import LiveScreen
from sparktui.ui.screens.live_keys import LIVE_KEYS
from sparktui.ui.screens.sheet import SheetScreen
from sparktui.ui.screens.text import TextScreen
from tests.ui.canned import IDLE, LOADED, T0, experiment, report, snapshot
from tests.ui.conftest import arrive, follower, live
from tests.ui.hands import Hands
from tests.ui.screen_text import screen_text


async def test_a_opens_the_sheet_and_y_starts(hands: Hands) -> None:
    await hands.press("a")
    assert isinstance(hands.top, SheetScreen)
    assert "Starts in 5 s." in hands.text
    assert hands.sent == []
    await hands.press("y")
    assert hands.sent == [StartExperiment((0, 1), (1, 8))]


async def test_the_sheet_starts_by_itself_after_five_seconds(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparktui.ui.screens.sheet.TICK_S", 3600.0)  # the test ticks
    await hands.press("a")
    sheet = hands.top
    assert isinstance(sheet, SheetScreen)
    for left in (4, 3, 2, 1):
        sheet.tick()
        await hands.pilot.pause()
        assert f"Starts in {left} s." in hands.text
    assert hands.sent == []
    sheet.tick()
    await hands.pilot.pause()
    assert hands.sent == [StartExperiment((0, 1), (1, 8))]


@pytest.mark.parametrize("key", ["n", "escape", "enter", "q", "x", "space"])
async def test_any_other_key_cancels_the_sheet_and_does_nothing_else(hands: Hands, key: str) -> None:
    await hands.press("a", key)
    assert hands.on_live
    assert hands.sent == []


async def test_the_sheet_waits_when_others_use_the_server(hands: Hands) -> None:
    busy = dataclasses.replace(LOADED, running=11, others_running=3)
    live(hands.app).on_snapshot_arrived(SnapshotArrived(snapshot(7, figures=busy)))
    await hands.press("a")
    assert "▲ 3 requests of others are on it now." in hands.text
    assert "Others use the server.   y starts" in hands.text
    sheet = hands.top
    assert isinstance(sheet, SheetScreen)
    await hands.press("escape")
    assert hands.sent == []


async def test_s_switches_to_the_other_arm(hands: Hands) -> None:
    await hands.press("s")
    assert "boots as off" in hands.text
    await hands.press("y")
    assert hands.sent == [SwitchArm(0)]


async def test_v_chooses_a_variant(hands: Hands) -> None:
    await hands.press("v")
    assert isinstance(hands.top, AskScreen)
    await hands.press("1", "y")
    assert hands.sent == [SwitchArm(0)]


@pytest.mark.parametrize(
    ("key", "load"), [("l", 16), ("h", 4), ("right", 16), ("left", 4), ("0", 0)], ids=str
)
async def test_load_keys(hands: Hands, key: str, load: int) -> None:
    await hands.press(key)
    await hands.after_debounce()
    assert hands.sent == [SetLoad(load)]


async def test_a_burst_of_load_keys_is_one_intent(hands: Hands) -> None:
    await hands.press("l", "l", "h", "l")
    await hands.after_debounce()
    assert hands.sent == [SetLoad(32)]


async def test_space_holds_the_display_and_goes_on(hands: Hands) -> None:
    await hands.press("space")
    newer = dataclasses.replace(LOADED, output_tok_s=999.0)
    live(hands.app).on_snapshot_arrived(SnapshotArrived(snapshot(8, figures=newer)))
    await hands.pilot.pause()
    assert "999" not in hands.text
    assert list(live(hands.app).model.history["output"])[-1] == 999.0  # sampling goes on
    await hands.press("space")
    assert "999 tok/s" in hands.text


async def test_a_verdict_ends_the_hold_and_is_announced_only_when_new(hands: Hands) -> None:
    await hands.press("space")
    data = {"report": to_plain(report())}
    live(hands.app).post_message(EventsArrived((Event(50, T0, "verdict", "info", "old", data),)))
    await hands.pilot.pause()
    assert live(hands.app).held
    assert not announced(hands)
    later = time.time() + 1
    live(hands.app).post_message(EventsArrived((Event(51, later, "verdict", "info", "new", data),)))
    await hands.pilot.pause()
    assert not live(hands.app).held
    assert "Turn speculation OFF" in hands.text
    assert not announced(hands)  # its pane says so


@pytest.mark.parametrize("key", ["5", "question_mark"])
async def test_a_verdict_whose_pane_cant_be_seen_is_announced(hands: Hands, key: str) -> None:
    await hands.press(key)
    data = {"report": to_plain(report())}
    live(hands.app).post_message(EventsArrived((Event(51, time.time() + 1, "verdict", "info", "new", data),)))
    await hands.pilot.pause()
    assert announced(hands)


def announced(hands: Hands) -> list[str]:
    """Verdicts told by notification."""
    return [note.message for note in hands.app._notifications if note.title == "Verdict"]


async def test_when_the_run_is_over_no_old_figure_stays(hands: Hands) -> None:
    assert "318 tok/s" in hands.text
    live(hands.app).post_message(RunFinished(Finished("stopped", "stopped by the user")))
    await hands.pilot.pause()
    assert "The run is over: stopped" in hands.text
    assert "318 tok/s" not in hands.text
    assert "41.0 tok/s" not in hands.text


async def test_t_asks_for_the_next_window(hands: Hands) -> None:
    await hands.press("t")
    assert hands.sent == [SetWindow(15)]


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("1", "Output"),
        ("2", "Decode per stream"),
        ("3", "Accept by position"),
        ("4", "Findings"),
        ("5", "Boot & server log"),
    ],
)
async def test_numbers_maximise_a_pane_and_escape_goes_back(hands: Hands, key: str, title: str) -> None:
    await hands.press(key)
    assert live(hands.app).maximized is not None
    assert title in hands.text
    assert "Load ├" not in hands.text
    await hands.press("escape")
    assert live(hands.app).maximized is None
    assert "Load ├" in hands.text


async def test_6_shows_all_of_the_verdict(hands: Hands) -> None:
    data = {"report": to_plain(report())}
    live(hands.app).post_message(EventsArrived((Event(50, T0, "verdict", "info", "v", data),)))
    await hands.pilot.pause()
    await hands.press("6")
    panel = live(hands.app)._panel
    assert live(hands.app).maximized is panel
    assert panel.has_focus
    assert "cudagraph_mode: FULL in off, PIECEWISE in on." in hands.text
    await hands.press("escape")
    assert live(hands.app).maximized is None
    assert panel.display


@pytest.mark.parametrize("focus", ["_log", "_findings", "slider"])
async def test_the_footer_of_a_small_terminal_shows_help_and_quit(app: SparkApp, focus: str) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        booting = ServerView("booting", "on", True, "http://127.0.0.1:8000", 4127, T0)
        arrive(app, server=booting)
        await pilot.pause()
        getattr(live(app), focus).focus()
        await pilot.pause()
        last = screen_text(app).splitlines()[-1]
        assert last.endswith("? Help  q Quit")
        assert "a A/B  s Switch" in last


async def test_x_asks_and_only_y_stops(hands: Hands) -> None:
    await hands.press("x")
    assert "Stop the server?" in hands.text
    await hands.press("enter")
    assert hands.sent == []
    await hands.press("x", "y")
    assert hands.sent == [StopRun()]


async def test_X_cuts_and_during_an_experiment_cancels(hands: Hands) -> None:
    await hands.press("X")
    assert hands.sent == [SetLoad(8, cut=True)]
    hands.sent.clear()
    live(hands.app).on_snapshot_arrived(SnapshotArrived(snapshot(9, experiment=experiment("window", "on"))))
    await hands.pilot.pause()
    await hands.press("X", "y")
    assert hands.sent == [CancelExperiment()]


async def test_escape_hides_and_shows_the_ab_panel(hands: Hands) -> None:
    live(hands.app).on_snapshot_arrived(SnapshotArrived(snapshot(9, experiment=experiment("window", "on"))))
    await hands.pilot.pause()
    assert "[1/2] on c=1 window" in hands.text
    await hands.press("escape")
    assert "[1/2] on c=1 window" not in hands.text
    await hands.press("escape")
    assert "[1/2] on c=1 window" in hands.text


async def test_question_mark_shows_keys_and_definitions(hands: Hands) -> None:
    await hands.press("question_mark")
    assert isinstance(hands.top, TextScreen)
    assert "never since boot" in hands.text
    await hands.press("escape")
    assert hands.on_live


@pytest.mark.parametrize("key", ["c", "H"])
async def test_c_and_H_show_what_was_measured_before(hands: Hands, key: str) -> None:
    await hands.press(key)
    assert isinstance(hands.top, TextScreen)
    assert "Last verdict [/x]" in hands.text
    await hands.press("escape")
    assert hands.on_live


async def test_colon_opens_the_palette(hands: Hands) -> None:
    await hands.press("colon")
    assert "CommandPalette" in type(hands.top).__name__


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_quit_asks_whichever_way(hands: Hands, key: str) -> None:
    await hands.press(key)
    assert isinstance(hands.top, AskScreen)
    assert "leave it running" in hands.text
    await hands.press("z")
    assert hands.on_live
    await hands.press(key, "l")
    assert hands.app.return_code == 0
    assert hands.sent == []


async def test_the_palettes_quit_asks_too(hands: Hands) -> None:
    await hands.app.action_quit()
    await hands.pilot.pause()
    assert isinstance(hands.top, AskScreen)


async def test_quit_and_stop_waits_for_the_end(hands: Hands) -> None:
    await hands.press("q", "s")
    assert hands.sent == [StopRun()]
    assert hands.app.return_code is None


async def test_r_asks_then_stops_then_relaunches(hands: Hands) -> None:
    await hands.press("r", "y")
    assert hands.sent == [StopRun("relaunched")]
    assert live(hands.app).relaunch_when_over


@pytest.mark.parametrize("typed", ["cat x", "ls", "ls\n", "rm -rf /\n", "exit\n", "sudo halt\n"])
async def test_typing_into_the_wrong_window_stops_nothing(hands: Hands, typed: str) -> None:
    await hands.press(*("enter" if c == "\n" else "space" if c == " " else c for c in typed))
    if isinstance(hands.top, SheetScreen):
        assert "Starts in" not in hands.text  # it waits for y: nothing starts by itself
        await hands.press("escape")
    await hands.after_debounce()
    stopping = (StopRun, SwitchArm, StartExperiment, CancelExperiment)
    assert not [intent for intent in hands.sent if isinstance(intent, stopping)]


async def test_another_driver_has_the_keys_and_taking_over_asks(hands: Hands) -> None:
    other = Driver(9, "pts/3", 1_796_061_720.0)
    live(hands.app).on_snapshot_arrived(SnapshotArrived(snapshot(9, driver=other)))
    await hands.pilot.pause()
    assert "driven from pts/3 since 18:02" in hands.text
    await hands.press("l", "a", "x", "0")
    assert hands.on_live
    assert hands.sent == []
    await hands.press("D")
    assert "Take over?" in hands.text
    await hands.press("y")
    assert follower(hands.app).took_over == 1


async def test_E_edits_the_profile_or_says_why_not(hands: Hands) -> None:
    await hands.press("E")  # a test has no terminal to lend to an editor
    assert hands.app._notifications
    assert hands.on_live


def test_every_key_of_the_live_screen_has_its_action() -> None:
    for binding in LIVE_KEYS:
        name = binding.action.partition("(")[0]
        owner = SparkApp if name.startswith("app.") else LiveScreen
        assert hasattr(owner, f"action_{name.removeprefix('app.')}"), binding.key


async def test_a_refusal_of_the_host_is_shown(hands: Hands) -> None:
    live(hands.app).post_message(Refused("[/x] the load is locked while an A/B measures"))
    await hands.pilot.pause()
    assert any("[/x] the load is locked" in note.message for note in hands.app._notifications)


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (40, 10)])
async def test_tiny_terminals_do_not_crash(app: SparkApp, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        arrive(app)
        await pilot.pause()
        await pilot.press("a", "escape", "question_mark", "escape", "5", "escape")
        assert app.is_running
        live(app).on_snapshot_arrived(SnapshotArrived(snapshot(9, figures=IDLE)))
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "READY" in screen_text(app)

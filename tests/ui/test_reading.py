"""Log and findings on the live screen: jumping, dismissing, whole records, the facts of a boot."""

from __future__ import annotations

from sparktui.schema.codec import to_plain
from sparktui.schema.live import Event, Finding
from sparktui.schema.messages import Finished
from sparktui.ui.app import SparkApp
from sparktui.ui.messages import EventsArrived, RunFinished, SnapshotArrived
from sparktui.ui.screens.ask import AskScreen
from sparktui.ui.screens.text import TextScreen
from tests.ui.canned import T0, snapshot
from tests.ui.conftest import arrive, live
from tests.ui.hands import Hands
from tests.ui.screen_text import screen_text


async def test_before_the_first_snapshot_the_start_is_said(app: SparkApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "STARTING the host" in screen_text(app)
        assert "starting the host …" in screen_text(app)
        arrive(app, log=False)
        await pilot.pause()
        assert "starting the host" not in screen_text(app)


async def test_slash_finds_from_anywhere(hands: Hands) -> None:
    live(hands.app).set_focus(None)
    await hands.press("slash", *"piecewise", "enter")
    assert live(hands.app)._log.lines.sought == "piecewise"
    assert "PIECEWISE" in hands.text


async def test_brackets_go_from_finding_to_finding_and_enter_opens(hands: Hands) -> None:
    await hands.press("g", "right_square_bracket")
    cursor = live(hands.app)._log.lines.cursor
    assert cursor is not None
    await hands.press("right_square_bracket")
    assert (live(hands.app)._log.lines.cursor or 0) > cursor
    await hands.press("enter")
    assert isinstance(hands.top, TextScreen)
    await hands.press("escape")
    assert hands.on_live


async def test_d_dismisses_and_the_header_forgets(hands: Hands) -> None:
    assert "CUDA graphs downgraded" in hands.text
    live(hands.app)._findings.focus()
    await hands.press("d")
    assert live(hands.app).model.dismissed
    assert "CUDA graphs downgraded" not in hands.text.splitlines()[0]


async def test_d_works_from_the_log_and_u_brings_all_back(hands: Hands) -> None:
    await hands.press("d", "d")
    assert live(hands.app).model.dismissed == {"cg-spec-piecewise", "async-off"}
    assert "▲" not in hands.text.splitlines()[0]
    await hands.press("u")
    assert live(hands.app).model.dismissed == set()
    assert "2 ▲ CUDA graphs downgraded" in hands.text.splitlines()[0]


async def test_dismissing_what_is_not_on_screen_is_said(app: SparkApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        arrive(app)
        await pilot.pause()
        await pilot.press("d")
        await pilot.pause()
        assert any("u shows it again" in note.message for note in app._notifications)


async def test_4_shows_the_findings_on_a_small_terminal_too(app: SparkApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        arrive(app)
        await pilot.pause()
        assert "▸▲ 34" not in screen_text(app)
        await pilot.press("4")
        await pilot.pause()
        assert "▸▲ 34 costs speed" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "▸▲ 34" not in screen_text(app)


async def test_findings_of_a_failed_boot_stay_in_reach(hands: Hands) -> None:
    live(hands.app).post_message(RunFinished(Finished("failed", "out of memory")))
    await hands.pilot.pause()
    assert "▸▲ 34 costs speed" in hands.text


async def test_enter_shows_every_line_of_a_finding_and_its_cause(hands: Hands) -> None:
    follows = Finding("f", "costs speed", 58, "x", "m", cause="cg-spec-piecewise", lines=9, source="one")
    live(hands.app).post_message(
        EventsArrived((Event(60, T0, "finding", "warning", "x", to_plain(follows)),))
    )
    await hands.pilot.pause()
    live(hands.app)._findings.focus()
    await hands.press("down", "down")
    assert live(hands.app)._findings.selected == follows
    await hands.press("enter")
    assert "Route: /docs, Methods" in hands.text  # line 59
    assert "… 6 more lines in server.log" in hands.text  # 60 are there
    assert "because of line 34" in hands.text


async def test_a_finding_of_no_line_is_explained_and_leaves_the_log_alone(hands: Hands) -> None:
    nowhere = Finding("n", "costs speed", 0, "asked for and not taken", "m")
    live(hands.app).post_message(
        EventsArrived((Event(60, T0, "finding", "warning", "x", to_plain(nowhere)),))
    )
    await hands.pilot.pause()
    live(hands.app)._findings.focus()
    await hands.press("down", "down")
    assert live(hands.app)._findings.selected == nowhere
    assert "▸▲  — costs speed" in hands.text
    assert live(hands.app)._log.lines.cursor == 12  # of the one before
    await hands.press("enter")
    assert "no single line says it" in hands.text


async def test_enter_on_a_plain_line_shows_its_record(hands: Hands) -> None:
    await hands.press("slash", *"deepgemm pdl", "enter", "enter")
    assert isinstance(hands.top, TextScreen)
    assert "(EngineCore pid=1095) INFO" in hands.text
    assert "No rule says anything about line" in hands.text


async def test_the_progress_bar_stands_in_the_log_until_it_is_over(hands: Hands) -> None:
    live(hands.app).on_snapshot_arrived(SnapshotArrived(snapshot(9, log_partial="Loading: 45%|##  [/x]")))
    await hands.pilot.pause()
    assert "Loading: 45%|##  [/x]" in hands.text
    live(hands.app).on_snapshot_arrived(SnapshotArrived(snapshot(10)))
    await hands.pilot.pause()
    assert "Loading: 45%" not in hands.text


async def test_boot_facts_and_the_dismissed_come_by_the_palette(hands: Hands) -> None:
    commands = {c.title: c.callback for c in hands.app.get_system_commands(hands.app.screen)}
    await hands.press("d")
    commands["Show dismissed findings"]()
    assert not live(hands.app).model.dismissed
    data = {"variant": "on", "boot_s": 71.6, "facts": {"attention_backend": "FLASHINFER [/x]"}}
    live(hands.app).post_message(EventsArrived((Event(60, T0, "server", "info", "ready", data),)))
    await hands.pilot.pause()
    commands["Boot facts"]()
    await hands.pilot.pause()
    assert "FLASHINFER [/x]" in hands.text


async def test_titles_of_questions_are_no_markup(app: SparkApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for screen in (TextScreen("[/x] title", "text"), AskScreen("[/x] title", "why", [])):
            app.push_screen(screen)
            await pilot.pause()
            assert "[/x] title" in screen_text(app)

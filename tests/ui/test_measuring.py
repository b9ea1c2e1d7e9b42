"""Workload, probe, palette, stalls and silences on the live screen."""

from __future__ import annotations

import dataclasses

import pytest

from sparktui.schema.codec import to_plain
from sparktui.schema.launch import LoadSpec
from sparktui.schema.live import Driver, Event
from sparktui.schema.messages import ProbePrefixCache, SetWorkload
from sparktui.schema.records import PrefixProbe, ProbeAnswer
from sparktui.ui.messages import EventsArrived, LinkLost, SnapshotArrived
from sparktui.ui.model import RunModel
from sparktui.ui.probe_text import NO_PROBE, probe_line, probe_text
from sparktui.ui.screens.ask import AskScreen
from sparktui.ui.screens.orders import workload_choices, workload_text
from sparktui.ui.screens.text import TextScreen
from sparktui.ui.widgets.header import header_text
from tests.ui.canned import LOADED, LOADED_BY_US, RUNNING, T0, experiment, snapshot
from tests.ui.conftest import live
from tests.ui.hands import Hands
from tests.ui.states import then

PROBE = PrefixProbe(
    "useless",
    "the same prompt three times: 0 of 6,000 queried tokens hit [/x]\x1b[31m",
    (
        ProbeAnswer(519.4, 2000, 0, 0.0, 2000.0),
        ProbeAnswer(517.0, 2000, None, 0.0, 2000.0),
        ProbeAnswer(None, 2000, 0, 0.0, None),
    ),
)
FAR_OFF = T0 + 1e9  # after this test's screen was opened


def probed(probe: PrefixProbe = PROBE, t: float = FAR_OFF) -> EventsArrived:
    return EventsArrived((Event(70, t, "note", "info", probe.text, {"prefix_probe": to_plain(probe)}),))


def messages(hands: Hands) -> list[str]:
    return [note.message for note in hands.app._notifications]


def commands(hands: Hands) -> dict[str, object]:
    return {command.title: command for command in hands.app.get_system_commands(hands.app.screen)}


async def run_command(hands: Hands, title: str) -> None:
    found = next(c for c in hands.app.get_system_commands(hands.app.screen) if c.title == title)
    found.callback()
    await hands.pilot.pause()


async def test_W_asks_which_workload_and_sends_it(hands: Hands) -> None:
    await hands.press("W")
    assert isinstance(hands.top, AskScreen)
    assert "chat 512→256: a page of prose to continue, now" in hands.text
    assert hands.sent == []
    await hands.press("2")
    assert hands.sent == [SetWorkload("code")]


@pytest.mark.parametrize("key", ["escape", "enter", "9", "W"])
async def test_any_other_key_leaves_the_workload(hands: Hands, key: str) -> None:
    await hands.press("W", key)
    assert hands.on_live
    assert hands.sent == []


async def test_the_workload_in_force_stands_beside_the_slider(hands: Hands) -> None:
    load = dataclasses.replace(LOADED_BY_US, workload="shared-prefix")
    live(hands.app).on_snapshot_arrived(SnapshotArrived(snapshot(9, load=load)))
    await hands.pilot.pause()
    assert "shared-prefix 1024→256" in hands.text


async def test_what_is_sent_is_locked_while_measuring(hands: Hands) -> None:
    then(hands.app, snapshot(9, experiment=experiment("window", "on")))
    await hands.press("W")
    await run_command(hands, "Workload: code 160→250")
    await run_command(hands, "Probe the prefix cache")
    assert hands.on_live
    assert hands.sent == []
    assert messages(hands).count("locked: measuring") == 3


async def test_who_does_not_drive_neither_probes_nor_changes_the_workload(hands: Hands) -> None:
    then(hands.app, snapshot(9, driver=Driver(7, "pts/9", T0)))
    await hands.press("W")
    await run_command(hands, "Probe the prefix cache")
    assert hands.sent == []
    assert all("driven from pts/9" in message for message in messages(hands))


async def test_the_palette_has_each_workload_and_the_probe(hands: Hands) -> None:
    assert {
        "Workload: chat 512→256", "Workload: coder 4096→512", "Probe the prefix cache",
        "Prefix cache: the last probe",
    } <= set(commands(hands))  # fmt: skip
    await run_command(hands, "Workload: coder 4096→512")
    await run_command(hands, "Probe the prefix cache")
    assert hands.sent == [SetWorkload("coder"), ProbePrefixCache()]
    assert any("our load pauses" in message for message in messages(hands))


async def test_a_probes_answer_opens_by_itself_and_again_by_the_palette(hands: Hands) -> None:
    await run_command(hands, "Prefix cache: the last probe")
    assert "has not been probed" in hands.text
    await hands.press("escape")
    live(hands.app).post_message(probed())
    await hands.pilot.pause()
    assert isinstance(hands.top, TextScreen)
    assert "▲ the same prompt three times: 0 of 6,000 queried tokens hit [/x]" in hands.text
    await hands.press("escape")
    await run_command(hands, "Prefix cache: the last probe")
    assert isinstance(hands.top, TextScreen)


async def test_behind_another_screen_a_probes_answer_is_only_announced(hands: Hands) -> None:
    await hands.press("question_mark")
    live(hands.app).post_message(probed())
    await hands.pilot.pause()
    assert len(hands.app.screen_stack) == 4  # no second text on top of the help
    assert any(message.startswith("▲ the same prompt") for message in messages(hands))


async def test_an_old_probe_is_known_and_not_announced(hands: Hands) -> None:
    live(hands.app).post_message(probed(t=T0))
    await hands.pilot.pause()
    assert hands.on_live
    assert live(hands.app).model.probe == PROBE


def test_a_probe_is_a_sentence_and_three_requests() -> None:
    lines = probe_text(PROBE).splitlines()
    assert lines[0] == "▲ the same prompt three times: 0 of 6,000 queried tokens hit [/x][31m"
    assert lines[2].split() == ["request", "TTFT", "ms", "prompt", "cached", "hits", "queries"]
    assert [line.split() for line in lines[3:6]] == [
        ["1", "519", "2,000", "0", "0", "2,000"],
        ["2", "517", "2,000", "—", "0", "2,000"],
        ["3", "—", "2,000", "0", "0", "—"],
    ]
    assert probe_text(None) == NO_PROBE
    assert probe_line(PrefixProbe("works", "the prefix cache works", ())) == "✔ the prefix cache works"


def test_a_workload_is_told_with_its_lengths() -> None:
    own = LoadSpec("chat", input_tokens=100, output_tokens=20)
    assert workload_text(own, "chat") == "chat 100→20"  # the profile's lengths are its own workload's
    assert workload_text(own, "") == "chat 100→20"
    assert workload_text(own, "code") == "code 160→250"
    file = LoadSpec("file:/data/[x]/a-long-name-of-prompts.jsonl")
    assert workload_text(file, "") == "a-long-name-of-prom… →256"
    choices = workload_choices(file, "code")
    assert choices[-1][1:] == (file.workload, "a-long-name-of-prom… →256: the prompts of the profile's file")
    assert [name for _, name, text in choices if text.endswith(", now")] == ["code"]
    assert [key for key, _, _ in choices] == [str(i) for i in range(1, len(choices) + 1)]


def head(**changes: object) -> str:
    model = RunModel(title="m")
    model.take_snapshot(snapshot(1, **changes))
    return header_text(model, 1).plain


def test_the_header_tells_a_server_that_is_ready_in_name_only() -> None:
    stalled = dataclasses.replace(RUNNING, stalled_s=12.4)
    assert "✖ STALLED for 12 s" in head(server=stalled)
    assert "READY" not in head(server=stalled)
    assert "● READY" in head(server=dataclasses.replace(RUNNING, stalled_s=4.9))
    silent = dataclasses.replace(LOADED, scrape_age_s=12.4)
    assert "? READY, no answer for 12 s" in head(figures=silent)
    assert "? READY, no answer for 12 s" in head(figures=dataclasses.replace(silent, server_source="log"))
    booting = dataclasses.replace(RUNNING, state="booting", stalled_s=12.4)
    assert "▸ BOOTING" in head(server=booting)


def test_the_header_says_why_there_is_no_connection() -> None:
    model = RunModel(title="m")
    model.take_snapshot(snapshot(1))
    model.lose("the host keeps dying [/x]\x1b[31m")
    assert header_text(model, 1).plain == "sparktui ▸ m  ? NO CONNECTION  the host keeps dying [/x][31m"


async def test_a_host_that_falls_silent_leaves_no_figure_behind(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = live(hands.app)
    screen.look_for_silence()
    await hands.pilot.pause()
    assert "318 tok/s" in hands.text
    monkeypatch.setattr("sparktui.ui.screens.live.SILENT_HOST_S", -1.0)  # so long has it said nothing
    screen.look_for_silence()
    await hands.pilot.pause()
    assert "NO CONNECTION  the host is silent" in hands.text
    for figure in ("318", "41.0 tok/s", "129", "12.1 %", "215", "53.7", "75.0%"):
        assert figure not in hands.text.split("Boot & server log")[0], figure
    monkeypatch.setattr("sparktui.ui.screens.live.SILENT_HOST_S", 3600.0)
    then(hands.app, snapshot(20))
    await hands.pilot.pause()
    assert "318 tok/s" in hands.text
    assert "NO CONNECTION" not in hands.text


async def test_a_lost_link_leaves_no_figure_behind(hands: Hands) -> None:
    live(hands.app).post_message(LinkLost("the host of nemotron-1 keeps dying"))
    await hands.pilot.pause()
    assert "no connection" in hands.text
    assert "318" not in hands.text.split("Boot & server log")[0]
    await hands.press("1")
    assert "318" not in hands.text


async def test_pane_1_shows_every_figure_and_follows(hands: Hands) -> None:
    await hands.press("1")
    assert "chunk gap p99     141 ms" in hands.text
    then(hands.app, snapshot(9, figures=dataclasses.replace(LOADED, chunk_gap_p99_ms=987.0)))
    await hands.pilot.pause()
    assert "chunk gap p99     987 ms" in hands.text
    await hands.press("escape")
    assert "chunk gap p99  " not in hands.text

"""The boot line: states, expected times, and what gives way when it is narrow."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static

from sparktui.schema.live import BootPhase, Silence
from sparktui.ui.widgets.phases import Phases, phases_line, quiet_line, quiet_parts
from sparktui.ui.widgets.rows import Row

DONE = (BootPhase("launch", 0, 5.1), BootPhase("config", 5.1, 0.4), BootPhase("engine", 5.5, 3.2))
BOOTING = (*DONE, BootPhase("weights", 8.7, None, 0.62))
EXPECTED = {
    "launch": 5.0,
    "config": 1.0,
    "engine": 3.0,
    "weights": 55.0,
    "compile": 18.2,
    "capture": 6.0,
    "ready": 0.0,
}
READY = (*DONE, BootPhase("weights", 8.7, 41.0), BootPhase("ready", 49.7, 0.0))


def text(rows: list[Row]) -> list[str]:
    return ["".join(run for run, _ in row) for row in rows]


def line(
    phases: tuple[BootPhase, ...] = BOOTING,
    state: str = "booting",
    now_s: float | None = 49.7,
    expected: dict[str, float] | None = None,
    width: int = 200,
) -> list[str]:
    return text(phases_line(phases, state, now_s, expected or {}, width))


def test_done_current_and_to_come() -> None:
    assert line(expected=EXPECTED) == [
        "✔ launch 5.1 ─ ✔ config 0.4 ─ ✔ engine 3.2 ─ ▸ weights 41 s of about 55 (62 %)"
        " ─ · compile ~18 ─ · capture ~6 ─ · ready"
    ]


def test_current_says_what_is_known() -> None:
    one = (BootPhase("compile", 8.0, None),)
    assert line(one, now_s=10.4) == ["▸ compile 2 s"]
    assert line(one, now_s=None) == ["▸ compile"]
    assert line(one, now_s=None, expected={"compile": 18.0}) == ["▸ compile of about 18 s"]
    assert line(one, now_s=7.0) == ["▸ compile 0 s"]


def quiet(silence: Silence, width: int = 100) -> str:
    return quiet_line(*quiet_parts(silence), width)


def test_a_silence_is_explained_and_compared() -> None:
    assert quiet(Silence(38.2, "[/x] kernels compile.", 95.0)) == (
        "… quiet for 38 s: [/x] kernels compile; up to 95 s before"
    )
    assert quiet(Silence(120, "why", 95.0)) == "… quiet for 120 s: why; longer than the 95 s before"
    assert quiet(Silence(38, "why\x1b[2J")) == "… quiet for 38 s: why[2J"
    assert quiet(Silence(38, "")) == "… quiet for 38 s"


def test_a_silences_reason_gives_way_first() -> None:
    silence = Silence(38, "a reason of many words that say little", 95)
    assert quiet(silence, 50) == "… quiet for 38 s: a reason of…; up to 95 s before"
    assert quiet(silence, 36) == "… quiet for 38 s; up to 95 s before"
    assert all(len(quiet(silence, width)) <= width for width in range(1, 90))


def test_skipped_phases_are_not_to_come() -> None:
    assert line((*DONE, BootPhase("capture", 9, None)), expected=EXPECTED)[0].endswith(
        "▸ capture 41 s of about 6 ─ · ready"
    )


def test_ready_tells_the_whole_boot() -> None:
    assert line(READY, "ready", expected=EXPECTED)[0].endswith("✔ weights 41.0 ─ ✔ ready in 49.7 s")


def test_failed_boot_marks_where() -> None:
    rows = phases_line(BOOTING, "failed", 49.7, EXPECTED, 200)
    assert rows[0][-1] == ("✖ weights failed after 41 s", "failed")
    assert "compile" not in text(rows)[0]
    assert line(state="lost", now_s=None)[0].endswith("✖ weights lost")


def test_wraps_between_phases() -> None:
    assert line(expected=EXPECTED, width=80) == [
        "✔ launch 5.1 ─ ✔ config 0.4 ─ ✔ engine 3.2 ─ ▸ weights 41 s of about 55 (62 %)",
        "· compile ~18 ─ · capture ~6 ─ · ready",
    ]


def test_the_oldest_give_way_first_then_those_to_come_then_the_last_done() -> None:
    assert line(expected=EXPECTED, width=64) == [
        "… ─ ✔ config 0.4 ─ ✔ engine 3.2",
        "▸ weights 41 s of about 55 (62 %) ─ · compile ~18 ─ …",
    ]
    assert line(expected=EXPECTED, width=40) == [
        "… ─ ✔ config 0.4 ─ ✔ engine 3.2",
        "▸ weights 41 s of about 55 (62 %) ─ …",
    ]
    assert line(expected=EXPECTED, width=20) == ["▸ weights 41 s of a…"]
    assert line(width=20) == ["… ─ ✔ engine 3.2", "▸ weights 41 s (62…"]


def test_every_width_keeps_the_current_phase() -> None:
    for width in range(1, 130):
        rows = line(expected=EXPECTED, width=width)
        assert 1 <= len(rows) <= 2
        assert all(len(row) <= width for row in rows)
        if width >= 11:
            assert any("▸ weights" in row for row in rows)


def test_no_phases_no_rows() -> None:
    assert line((), "idle") == []
    assert line(width=0) == []


class PhasesApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Phases()
        yield Static("below", markup=False)

    def lines(self) -> list[str]:
        return [strip.text.rstrip() for strip in self.screen._compositor.render_strips()]


async def test_takes_the_rows_it_needs() -> None:
    app = PhasesApp()
    async with app.run_test(size=(80, 6)) as pilot:
        phases = app.query_one(Phases)
        phases.show(BOOTING, state="booting", now_s=49.7)
        await pilot.pause()
        assert app.lines()[:2] == [line(width=80)[0], "below"]
        phases.show(BOOTING, state="booting", now_s=49.7, expected=EXPECTED)
        await pilot.pause()
        assert app.lines()[:3] == [*line(expected=EXPECTED, width=80), "below"]
        await pilot.resize_terminal(160, 6)
        await pilot.pause()
        assert app.lines()[:2] == [*line(expected=EXPECTED, width=160), "below"]
        phases.show((), state="idle")
        await pilot.pause()
        assert app.lines()[0] == "below"


async def test_foreign_names_are_shown_as_they_are_and_the_same_again_repaints_nothing() -> None:
    app = PhasesApp()
    async with app.run_test(size=(80, 6)) as pilot:
        phases = app.query_one(Phases)
        foreign = (BootPhase("[/x] [red]\x1b[31m", 0, None),)
        phases.show(foreign, state="booting", now_s=3.1)
        await pilot.pause()
        assert app.lines()[0] == "▸ [/x] [red][31m 3 s"
        phases.show(foreign, state="booting", now_s=3.3)
        assert not phases._repaint_regions
        phases.show(foreign, state="booting", now_s=4.3)
        assert phases._repaint_regions

"""What earlier runs told, from run folders as the host writes them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from sparktui.client.history import (
    FailedBoot,
    KnownCell,
    ProfileHistory,
    expected_minutes,
    histories,
    history_of,
)
from sparktui.rundir import RunDir
from sparktui.schema.codec import dumps
from sparktui.schema.launch import MeasureSpec
from sparktui.schema.live import BootPhase, Event
from sparktui.schema.records import ArmReport, Cell, Report, Verdict
from tests.schema.samples import PLAN
from tests.support import Home

LOADING = (BootPhase("weights", 0.0, 40.0), BootPhase("capture", 40.0, 9.5), BootPhase("ready", 49.5, 0.0))
HEADLINE = Verdict(
    1, "decode_tok_s", True, 0.5, (0.4, 0.6), "slower", (1, 1), True, "Turn speculation OFF: 1.89x."
)


def told(run: RunDir, *texts: str | tuple[str, dict[str, Any]], t: float = 100.0) -> None:
    """events.jsonl with these texts, a second apart."""
    events = [(text, {}) if isinstance(text, str) else text for text in texts]
    lines = [
        dumps(Event(i + 1, t + i, "server", "info", text, data)) + b"\n"
        for i, (text, data) in enumerate(events)
    ]
    run.events.write_bytes(b"".join(lines))


def made(kind: Literal["run", "ab"] = "run", profile: str = "p") -> RunDir:
    return RunDir.create(kind, dataclasses.replace(PLAN, profile=profile))


def cell(variant: str, c: int, decode: float | None, output: float | None, *flags: str) -> Cell:
    return Cell(0, variant, 0, c, 60.0, (), decode, output, flags=flags)


def arm(
    name: str, *cells: Cell, boot_s: float | None = 49.5, phases: tuple[BootPhase, ...] = LOADING
) -> ArmReport:
    return ArmReport(name, name == "on", ("vllm",), "0.27.1", boot_s, (), {}, cells, phases)


def reported(
    *arms: ArmReport, created: float = 1000.0, verdicts: Sequence[Verdict] = (HEADLINE,), profile: str = "p"
) -> RunDir:
    run = made("ab", profile)
    run.write_report(Report(1, profile, created, run.id, arms, tuple(verdicts), (), "done"))
    return run


def test_nothing_known(state: Home) -> None:
    assert histories() == {}
    assert history_of("p") == ProfileHistory("p")


def test_boots_of_watched_runs_newest_first(state: Home) -> None:
    told(made(), "on: started, pid 5", "on: ready after 61.5 s", t=100)
    told(made(), "off: started, pid 5", "off: ready after 40.0 s", t=200)
    told(made(), "on: started, pid 5", "on: ready after 58.0 s", t=300)
    told(made(profile="other"), "on: started, pid 5", "on: ready after 1.0 s", t=400)
    assert history_of("p").boot_s == {"on": (58.0, 61.5), "off": (40.0,)}
    assert histories()["other"].boot_s == {"on": (1.0,)}


def test_the_data_of_an_event_goes_before_its_text(state: Home) -> None:
    data = {"variant": "a: b", "boot_s": 61.53, "phases": [dataclasses.asdict(phase) for phase in LOADING]}
    told(made(), ("a: b: started, pid 5", {}), ("a: b: ready after 61.5 s", data))
    known = history_of("p")
    assert known.boot_s == {"a: b": (61.53,)}
    assert known.phase_s == {"a: b": {"weights": 40.0, "capture": 9.5}}


@pytest.mark.parametrize(
    "data", [{"boot_s": "x", "variant": 3}, {"boot_s": True, "phases": [1]}, {"phases": 7}]
)
def test_odd_data_leaves_the_text(state: Home, data: dict[str, Any]) -> None:
    told(made(), ("on: ready after 61.5 s", data))
    assert history_of("p").boot_s == {"on": (61.5,)}


def ready(variant: str, **quiet_s: float) -> tuple[str, dict[str, Any]]:
    """An event whose phases were silent for so long."""
    phases = [dataclasses.asdict(BootPhase(name, 0.0, 1.0, None, quiet)) for name, quiet in quiet_s.items()]
    return f"{variant}: ready after 61.5 s", {"variant": variant, "boot_s": 61.5, "phases": phases}


def test_the_longest_silence_of_the_last_five_boots(state: Home) -> None:
    for number, config in enumerate((99.0, 5.0, 23.0, 8.0, 9.0, 10.0)):
        told(made(), ready("on", config=config, weights=float(number)), t=100.0 * number)
    told(made(), ready("off", config=2.0, kv=0.0, ready=50.0), t=700)
    assert history_of("p").quiet_s == {
        "on": {"config": 23.0, "weights": 5.0},  # the oldest is forgotten
        "off": {"config": 2.0, "kv": 0.0},
    }


def test_records_without_silences_say_nothing_about_them(state: Home) -> None:
    old = [
        {"name": "config", "start_s": 0.0, "seconds": 9.0, "progress": None},
        {"name": "ready", "start_s": 9.0, "seconds": 0.0},
    ]
    told(made(), ("on: ready after 9.0 s", {"variant": "on", "boot_s": 9.0, "phases": old}), t=200)
    assert history_of("p").phase_s == {"on": {"config": 9.0}}
    assert history_of("p").quiet_s == {}
    told(made(), ready("on", config=4.0), t=100)
    assert history_of("p").quiet_s == {"on": {"config": 4.0}}


def started(variant: str, *argv: str) -> tuple[str, dict[str, Any]]:
    return f"{variant}: started, pid 5", {"started": variant, "argv": list(argv)}


def failing(run: RunDir, *texts: str | tuple[str, dict[str, Any]], t: float = 100.0) -> None:
    """The same as ``told`` with the last one an error."""
    told(run, *texts, t=t)
    *before, last = run.events.read_bytes().splitlines(keepends=True)
    run.events.write_bytes(b"".join(before) + last.replace(b'"info"', b'"error"'))


def test_boots_that_failed_since_the_last_good_one(state: Home) -> None:
    failing(made(), started("on", "vllm"), "on: ValueError: too early", t=100)
    told(made(), started("on", "vllm"), "on: ready after 60.0 s", t=200)
    failing(made(), started("on", "vllm", "-k"), "on: ValueError: a: b", t=300)
    failing(made(), "on: started, pid 5", "on: OSError: c", t=400)
    failing(made(), started("off", "vllm"), "off: OSError: c", t=500)
    known = history_of("p")
    assert known.failed == {
        "on": (FailedBoot("OSError: c"), FailedBoot("ValueError: a: b", ("vllm", "-k"))),
        "off": (FailedBoot("OSError: c", ("vllm",)),),
    }
    assert known.boot_s == {"on": (60.0,)}


def test_a_server_that_dies_later_is_no_failed_boot(state: Home) -> None:
    failing(made(), started("on"), "on: ready after 60.0 s", "on: the server was killed by signal 9")
    failing(made(), "still alive after SIGKILL: VLLM::EngineCore (pid 7)")
    failing(made(), started("off"), "on: OSError: whose", t=300)
    assert history_of("p").failed == {}


def test_a_report_tells_the_good_boots_of_a_run_with_a_failed_one(state: Home) -> None:
    run = reported(arm("off", boot_s=30.0), arm("on", boot_s=None))
    failing(run, started("on"), "on: OSError: c", t=2000)
    known = history_of("p")
    assert known.boot_s == {"off": (30.0,)}
    assert known.failed == {"on": (FailedBoot("OSError: c"),)}


def test_an_adopted_server_tells_nothing_about_booting(state: Home) -> None:
    told(
        made(),
        "on: started, pid 5", "on: ready after 60.0 s", "on: adopted, pid 5", "on: ready after 9000.0 s",
        "off: started, pid 6", "off: ready after 30.0 s", "on: started, pid 7", "on: ready after 62.0 s",
    )  # fmt: skip
    assert history_of("p").boot_s == {"on": (62.0, 60.0), "off": (30.0,)}


def test_five_boots_are_kept(state: Home) -> None:
    for number in range(7):
        told(made(), f"on: ready after {number}.0 s", t=100.0 * number)
    assert history_of("p").boot_s == {"on": (6.0, 5.0, 4.0, 3.0, 2.0)}


def test_texts_that_only_look_alike(state: Home) -> None:
    run = made()
    told(
        run, "on: the server said: ready after a while", "ready after 3.0 s", "on: ready after 3.0 s, almost"
    )
    finding = Event(9, 1.0, "finding", "info", "x: ready after 3.0 s", {"server": "server"})
    run.events.write_bytes(run.events.read_bytes() + dumps(finding) + b'\n{"seq":10,"kind":"server","te')
    assert history_of("p").boot_s == {}


def test_an_ab_gives_each_boot_and_the_phases_of_the_first(state: Home) -> None:
    run = reported(arm("off", boot_s=30.0), arm("on"))
    told(
        run, "off: started, pid 1", "off: ready after 30.0 s", "on: started, pid 2", "on: ready after 50.0 s",
        "on: started, pid 3", "on: ready after 48.0 s",
    )  # fmt: skip
    known = history_of("p")
    assert known.boot_s == {"off": (30.0,), "on": (48.0, 50.0)}
    assert known.phase_s["on"] == {"weights": 40.0, "capture": 9.5}


def test_phases_come_from_the_last_good_boot(state: Home) -> None:
    slow = (BootPhase("weights", 0.0, 99.0), BootPhase("ready", 99.0, 0.0))
    failed = (BootPhase("weights", 0.0, 1.0), BootPhase("capture", 1.0, None))
    reported(arm("on"), created=2000)
    reported(arm("on", boot_s=99.0, phases=slow), created=1000)
    reported(arm("on", boot_s=None, phases=failed), created=3000)
    known = history_of("p")
    assert known.boot_s == {"on": (49.5, 99.0)}
    assert known.phase_s == {"on": {"weights": 40.0, "capture": 9.5}}


def test_the_newest_verdict(state: Home) -> None:
    later = dataclasses.replace(HEADLINE, text="Keep\nspeculation \x1b[1mON: 1.4x.")
    lost = dataclasses.replace(HEADLINE, call="could not measure", text="No verdict at c=1.")
    small = dataclasses.replace(later, headline=False, text="beside the point")
    reported(created=1000)
    reported(created=2000, verdicts=(lost, small, later))
    reported(created=3000, verdicts=())  # cancelled
    known = history_of("p")
    assert known.last_verdict == "Keep speculation [1mON: 1.4x."
    assert known.verdict_at == 2000


def test_a_verdict_that_could_not_be_had_is_told(state: Home) -> None:
    reported(created=1000)
    lost = dataclasses.replace(HEADLINE, call="could not measure", text="No verdict at c=1.")
    reported(created=2000, verdicts=(lost,))
    assert history_of("p").last_verdict == "No verdict at c=1."


def test_best_figures_by_variant_and_load(state: Home) -> None:
    reported(
        arm("off", cell("off", 1, 77.0, 70.0), cell("off", 8, 40.0, 300.0)),
        arm("on", cell("on", 1, 41.0, 38.0, "not steady")), created=1000,
    )  # fmt: skip
    reported(
        arm("off", cell("off", 1, 70.0, 72.0), cell("off", 1, 99.0, 99.0, "client-limited")),
        arm("on", cell("on", 32, None, None)), created=2000,
    )  # fmt: skip
    known = history_of("p").cells
    assert known == {
        ("off", 1): KnownCell(72.0, 77.0, 2000, 3),
        ("on", 32): KnownCell(None, None, 2000, 1),
        ("off", 8): KnownCell(300.0, 40.0, 1000, 1),
        ("on", 1): KnownCell(38.0, 41.0, 1000, 1),
    }
    assert [key[1] for key in known] == [1, 32, 8, 1]  # newest first


def test_broken_files_are_passed_over(state: Home) -> None:
    reported(arm("on"), created=1000)
    broken = reported(arm("on"), created=2000)
    (broken.path / "report.json").write_text('{"schema": 1, "profile": "p", ')
    told(broken, "on: ready after 20.0 s", t=5000)
    strange = made()
    (strange.path / "run.json").write_text("[]")
    (made().path / "events.jsonl").mkdir()
    known = history_of("p")
    assert known.verdict_at == 1000
    assert known.boot_s == {"on": (20.0, 49.5)}


def test_each_report_is_read_once_and_200_runs_at_most(state: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    report = RunDir.report

    def counted(run: RunDir) -> Report | None:
        read.append(run.id)
        return report(run)

    monkeypatch.setattr(RunDir, "report", counted)
    wanted = reported(arm("on"))
    histories()
    assert read == [wanted.id]
    os.utime(wanted.path, (0, 0))
    for number in range(205):
        (wanted.path.parent / f"newer-{number}").mkdir()
    read.clear()
    histories()
    assert wanted.id not in read


MEASURE = MeasureSpec(settle_s=30, min_window_s=60, max_window_s=240)


def test_expected_minutes() -> None:
    known = ProfileHistory("p", boot_s={"off": (60.0, 600.0, 50.0), "on": (120.0,)})
    # (60 + 2·180) + (120 + 2·180) = 900 s a round
    assert expected_minutes(known, ("off", "on"), (1, 32), MEASURE, 1) == pytest.approx(15)
    assert expected_minutes(known, ("off", "on"), (1, 32), MEASURE, 3) == pytest.approx(45)
    assert expected_minutes(known, ("off", "on"), (1,), MEASURE, 1) == pytest.approx(9)


def test_an_unknown_variant_boots_as_slowly_as_the_slowest() -> None:
    known = ProfileHistory("p", boot_s={"off": (60.0,), "on": (120.0,)})
    assert expected_minutes(known, ("k2",), (1,), MEASURE, 1) == pytest.approx(300 / 60)


def test_no_boot_known_no_minutes() -> None:
    assert expected_minutes(ProfileHistory("p"), ("off", "on"), (1,), MEASURE, 1) is None

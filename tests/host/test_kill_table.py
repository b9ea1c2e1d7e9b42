"""Client, host, API server, engine killed while booting and while measuring: what the design promises."""

from __future__ import annotations

import signal
from subprocess import Popen

import psutil
import pytest

from sparktui.compare.report import decided
from sparktui.rundir import RunDir
from tests.support import Home, at_stage, events, kill, until

STAGES = {"booting": "boot", "measuring": "window"}
WHEN = pytest.mark.parametrize("when", list(STAGES))


def begin(home: Home, when: str) -> tuple[Popen[str], RunDir]:
    """An A/B under way, its server alive and at the stage that is asked for."""
    process = home.start("ab", home.profile(boot=2.0 if when == "booting" else 0.6), "-c", 1)
    until(home.runs, what="a run folder")
    run = home.only_run()
    until(lambda: run.record().server, what="a server on record")
    until(lambda: at_stage(run, STAGES[when]), what=when)
    until(lambda: len(home.servers()) == 2, what="API server and engine")
    return process, run


def server_pid(run: RunDir) -> int:
    server = run.record().server
    assert server is not None
    return server.process.pid


def engine_pid(home: Home, run: RunDir) -> int:
    (engine,) = [p.pid for p in home.servers() if p.pid != server_pid(run)]
    return engine


def host_pid(run: RunDir) -> int:
    host = until(lambda: run.record().host)
    assert host is not None
    return host.pid


def ended(run: RunDir) -> bool:
    return run.record().ended is not None


def nothing_left(home: Home) -> bool:
    return not home.processes()


@WHEN
def test_client_killed_the_run_goes_on(home: Home, when: str) -> None:
    process, run = begin(home, when)
    kill(process.pid)
    process.wait()
    until(lambda: ended(run), what="the end of the A/B without its client")
    report = run.report()
    assert report is not None
    assert decided(report)
    assert run.record().state == "done"
    until(lambda: nothing_left(home), what="no process left")


@WHEN
def test_host_killed_the_server_lives_and_is_adopted(home: Home, when: str) -> None:
    process, run = begin(home, when)
    kill(process.pid)  # or it would start the next host itself
    process.wait()
    server, first_host = server_pid(run), host_pid(run)
    kill(first_host)
    until(lambda: not psutil.pid_exists(first_host) or not run.has_host(), what="the host gone")
    assert psutil.pid_exists(server)

    code, output = home.run("jobs")
    assert code == 0
    assert run.id in output
    until(lambda: any(f"adopted, pid {server}" in e.text for e in events(run)), what="the adoption")
    until(lambda: ended(run), what="the end of the A/B under its second host")
    report = run.report()
    assert report is not None
    assert decided(report), report.outcome
    assert {cell.variant for arm in report.arms for cell in arm.cells} == {"off", "on"}
    numbers = [event.seq for event in events(run)]
    assert numbers == list(range(1, len(numbers) + 1))
    until(lambda: nothing_left(home), what="no process left")


def test_host_killed_the_waiting_client_starts_the_next(home: Home) -> None:
    process, run = begin(home, "measuring")
    kill(host_pid(run))
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 0, output
    assert "a new host goes on" in output
    assert "(1v1, provisional)" in output or "Not settled" in output
    assert output.count("boot 1 of 2") == 1  # nothing is told twice
    until(lambda: nothing_left(home), what="no process left")


def test_host_and_server_killed_it_closes_with_what_it_has(home: Home) -> None:
    process, run = begin(home, "measuring")
    until(lambda: at_stage(run, "window", start=1), what="the second arm's window")
    kill(process.pid)
    process.wait()
    engine = engine_pid(home, run)
    kill(host_pid(run))
    kill(server_pid(run))
    kill(engine)
    code, _ = home.run("jobs")
    assert code == 0
    until(lambda: ended(run), what="the end")
    report = run.report()
    assert report is not None
    assert [len(arm.cells) for arm in report.arms] == [1, 0]
    assert "died while no host watched" in report.outcome
    assert run.record().state == "failed"


@WHEN
def test_api_server_killed_the_arm_fails_and_the_engine_goes(home: Home, when: str) -> None:
    process, run = begin(home, when)
    engine = engine_pid(home, run)
    kill(server_pid(run))
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 1, output
    assert "killed by signal 9" in output
    until(lambda: not psutil.pid_exists(engine), what="the orphaned engine gone")
    until(lambda: nothing_left(home), what="no process left")
    assert run.record().state == "failed"


@WHEN
def test_engine_killed_the_arm_fails_with_its_cause(home: Home, when: str) -> None:
    process, run = begin(home, when)
    kill(engine_pid(home, run))
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 1, output
    reason = run.record().reason
    assert "ngine" in reason, reason  # EngineCore … / Engine core …, not "exit code 1"
    until(lambda: nothing_left(home), what="no process left")


@WHEN
def test_stop_leaves_nothing(home: Home, when: str) -> None:
    process, run = begin(home, when)
    process.send_signal(signal.SIGINT)  # the client goes, the run stays
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the A/B goes on" in output
    code, output = home.run("stop", run.id)
    assert code == 0, output
    assert not home.processes()
    assert run.record().state == "cancelled"


def test_stop_after_everything_but_the_engine_was_killed(home: Home) -> None:
    process, run = begin(home, "measuring")
    engine = engine_pid(home, run)
    for pid in (process.pid, host_pid(run), server_pid(run)):
        kill(pid)
    process.wait()
    assert psutil.pid_exists(engine)
    code, output = home.run("stop", run.id)
    assert code == 0, output
    assert not home.processes()

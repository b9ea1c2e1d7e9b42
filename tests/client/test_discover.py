"""API servers that run on this machine: real processes and sockets."""

from __future__ import annotations

import dataclasses
import getpass
import sys
import time
from pathlib import Path

import psutil
import pytest

from sparktui.client.discover import FoundServer, merged, vllm_processes
from sparktui.rundir import RunDir
from sparktui.schema.records import ProcessRef, ServerRecord
from tests.client.servers import KEY, Nursery
from tests.schema.samples import PLAN
from tests.support import Home


def by_pid() -> dict[int | None, FoundServer]:
    return {server.pid: server for server in vllm_processes()}


def reference(pid: int) -> ProcessRef:
    return ProcessRef(pid, psutil.Process(pid).create_time())


def test_a_server_is_found_without_its_secrets(nursery: Nursery, state: Home) -> None:
    pid, _ = nursery.start(
        nursery.program(),
        "serve",
        "org/m",
        "--port",
        8123,
        "--host",
        "127.0.0.1",
        "--api-key",
        KEY,
        f"--hf-token={KEY}",
    )
    found = by_pid()[pid]
    assert (found.kind, found.model, found.host, found.port) == ("process", "org/m", "127.0.0.1", 8123)
    assert found.title == f"org/m on port 8123 (pid {pid})"
    assert found.url == "http://127.0.0.1:8123"
    assert found.user == getpass.getuser()
    assert found.start_time == pytest.approx(time.time(), abs=60)
    assert found.ours is None
    assert KEY not in repr(found)


def test_a_module_run_by_python_is_found(nursery: Nursery, tmp_path: Path, state: Home) -> None:
    path = nursery.program("vllm/entrypoints/openai/api_server.py")
    pid, _ = nursery.start(sys.executable, path, "--model", "org/m")
    assert by_pid()[pid].model == "org/m"
    assert by_pid()[pid].port == 8000


def test_without_a_flag_the_port_is_where_it_listens(nursery: Nursery, state: Home) -> None:
    pid, (port,) = nursery.start(nursery.program(), "serve", "m", "--test-listens")
    found = by_pid()[pid]
    assert (found.host, found.port) == ("127.0.0.1", port)


def test_escape_codes_in_a_command_line_are_dropped(nursery: Nursery, state: Home) -> None:
    pid, _ = nursery.start(nursery.program(), "serve", "a\x1b[2Jb\u202e[/x]")
    assert by_pid()[pid].model == "a[2Jb[/x]"
    assert by_pid()[pid].title.isprintable()


def test_forked_workers_and_orphaned_engines_are_no_servers(nursery: Nursery, state: Home) -> None:
    parent, (worker,) = nursery.start(nursery.program(), "serve", "m", "--test-forks")
    dying, (engine,) = nursery.start(nursery.program(), "serve", "m", "--test-forks", "engine")
    found = by_pid()
    assert {parent, dying} <= found.keys()
    nursery.kill(dying)
    found = by_pid()
    assert psutil.Process(engine).cmdline()[-1] == "engine"  # it lives, with the server's command line
    assert parent in found
    assert not {worker, engine, dying} & found.keys()


def test_a_headless_node_and_other_commands_are_no_servers(nursery: Nursery, state: Home) -> None:
    program = nursery.program()
    code = "import signal; print('up', flush=True); signal.pause()"
    pids = {
        nursery.start(program, "serve", "m", "--headless")[0],
        nursery.start(program, "bench", "serve", "m")[0],
        nursery.start(sys.executable, "-IS", "-c", code, "vllm", "serve", "m")[0],
    }
    assert not pids & by_pid().keys()


def test_unreadable_processes_are_passed_over(
    nursery: Nursery, state: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = nursery.program()
    (hidden, _), (open_one, _) = nursery.start(program, "serve", "a"), nursery.start(program, "serve", "b")
    real = psutil.Process.cmdline

    def cmdline(process: psutil.Process) -> list[str]:
        if process.pid == hidden:
            raise psutil.AccessDenied(hidden)
        return real(process)

    monkeypatch.setattr(psutil.Process, "cmdline", cmdline)
    found = by_pid()
    assert open_one in found
    assert hidden not in found


def test_our_own_are_known_by_pid_and_start_time(nursery: Nursery, state: Home) -> None:
    program = nursery.program()
    ours, reused, wrapped = (nursery.start(program, "serve", "m")[0] for _ in range(3))
    runs = [RunDir.create("run", PLAN) for _ in range(4)]
    earlier = dataclasses.replace(reference(reused), start_time=time.time() - 5000)
    shell = ProcessRef(1 << 22, 1.0)
    for run, server in zip(
        runs,
        (
            ServerRecord(reference(ours), 0, "", 8000, 0.0),
            ServerRecord(earlier, 0, "", 8000, 0.0),
            ServerRecord(shell, 0, "", 8000, 0.0, tree=(reference(wrapped),)),
        ),
        strict=False,
    ):
        run.write(dataclasses.replace(run.record(), server=server))
    (runs[3].path / "run.json").write_text("{broken")
    found = by_pid()
    assert found[ours].ours == runs[0].id
    assert found[reused].ours is None
    assert found[wrapped].ours == runs[2].id


def test_the_stand_in_is_one_server(home: Home, state: Home) -> None:
    process = home.start(
        "sim", "serve", "test/m", "--port", "0", "--api-key", KEY, "--sim-boot-seconds", "0.1"
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        assert any("Application startup complete." in line for line in lines)
        servers = {child.pid for child in home.servers()}
        assert len(servers) > 1  # its engine has a process of its own
        found = [server for server in vllm_processes() if server.pid in servers]
        (connection,) = (
            c for c in psutil.Process(process.pid).net_connections("tcp") if c.status == "LISTEN"
        )
        assert [(server.pid, server.model, server.port) for server in found] == [
            (process.pid, "test/m", tuple(connection.laddr)[1])
        ]
        assert KEY not in repr(found)
    finally:
        home.end_everything()
        process.wait()
        process.stdout.close()


def test_a_process_in_a_found_container_is_not_told_twice() -> None:
    box = FoundServer("container", "t", "m", "", 8001, container="ab" * 32)
    nameless = FoundServer("container", "t", "m", "", 8002)
    inside = FoundServer("process", "t", "m", "", 8000, pid=5, container="ab" * 32)
    outside = FoundServer("process", "t", "m", "", 8000, pid=6)
    assert merged((inside, outside), (box, nameless)) == (outside, box, nameless)

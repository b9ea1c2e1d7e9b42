"""``sparktui run``: launch and watch."""

from __future__ import annotations

import re
import signal

from tests.support import Home, until


def read_until(lines: list[str], pattern: str) -> bool:
    return any(re.search(pattern, line) for line in lines)


def test_run_watches_a_loaded_server_until_it_is_stopped(home: Home) -> None:
    process = home.start("run", f"{home.profile()}:on", "--plain", "-c", 2)
    assert process.stdout is not None
    seen: list[str] = []
    wanted = (
        r"ready .*out \d+\.\d tok/s .*decode \d+\.\d .*accept \d+%/\d+%/\d+% .*KV \d.*TTFT \d+ ms .*load 2/2"
    )
    for line in process.stdout:
        seen.append(line)
        if re.search(wanted, line):
            break
    assert read_until(seen, wanted), "".join(seen)
    assert read_until(seen, "▲ log line .*cudagraph_mode=PIECEWISE"), "".join(seen)
    assert read_until(seen, r"power 3\d W"), "the stand-in's own sensors"
    code, output = home.run("stop", "last")
    assert code == 0, output
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0, rest
    assert "nothing left" in rest
    assert not home.processes()


def test_interrupt_leaves_the_server_running(home: Home) -> None:
    process = home.start("run", home.profile(boot=0.3), "--plain")
    until(home.runs)
    run = home.only_run()
    until(lambda: run.record().server, what="a server on record")
    until(lambda: home.servers(), what="the server")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the server goes on" in output
    assert home.servers()
    assert home.run("stop", "--all")[0] == 0
    assert not home.processes()

"""``sparktui ab`` and ``demo`` end to end: the real host, load process and stand-in."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from sparktui.schema.codec import loads
from sparktui.schema.records import Report
from tests.support import Home, events, free_port, until

TRUE_RATIO = 41 / 77.5  # the stand-in's: tests/sim holds it to both rates


def test_demo_finds_the_true_ratio_and_says_why(home: Home, tmp_path: Path) -> None:
    shipped = (Path(__file__).parents[2] / "profiles/demo.yaml").read_text("utf-8")
    profile = home.path / "demo.yaml"  # its own port: somebody's demo may be running
    profile.write_text(shipped.replace("port: 8411", f"port: {free_port()}"), "utf-8")
    begun = time.monotonic()
    code, output = home.run("ab", profile, "-c", 1, "--json", tmp_path / "r.json", "--md", tmp_path / "r.md")
    seconds = time.monotonic() - begun
    assert code == 0, output
    report = loads(Report, (tmp_path / "r.json").read_bytes())
    headline = next(v for v in report.verdicts if v.headline)
    low, high = headline.ci95
    assert low < TRUE_RATIO < high, output
    assert high - low < 0.4
    assert headline.call == "slower"
    assert headline.text.startswith("Turn speculation OFF: 1.")
    assert headline.text in output
    assert any("setting cudagraph_mode=PIECEWISE" in line for line in report.why)
    assert any("no acceptance can pay" in line for line in report.why)
    assert "setting cudagraph_mode=PIECEWISE" in output
    assert headline.text.split(":")[0] in (tmp_path / "r.md").read_text()
    assert not home.processes()
    assert seconds < 100, "the demo is meant to take well under a minute on a quiet machine"


def test_report_has_what_its_readers_need(home: Home, tmp_path: Path) -> None:
    code, output = home.run("ab", home.profile(window=3.0), "-c", "1,4", "--json", tmp_path / "r.json")
    assert code == 0, output
    value = json.loads((tmp_path / "r.json").read_bytes())
    assert value["schema"] == 1
    assert value["profile"] == "fast"
    off, on = value["arms"]
    assert (off["name"], on["name"]) == ("off", "on")
    assert "--speculative-config" in on["argv"]
    assert "--speculative-config" not in off["argv"]
    assert off["vllm_version"] == "0.27.1"
    assert on["facts"]["cudagraph_mode"] == "PIECEWISE"
    assert off["facts"]["cudagraph_mode"] != "PIECEWISE"
    assert "cg-spec-piecewise" in [finding["id"] for finding in on["findings"]]
    assert "cg-spec-piecewise" not in [finding["id"] for finding in off["findings"]]
    assert [cell["concurrency"] for cell in on["cells"]] == [1, 4]
    cell = on["cells"][0]
    assert 0.2 < cell["acceptance_rate"] < 0.9
    assert len(cell["acceptance_by_position"]) == 3
    assert cell["step_ms"] == pytest.approx(63.7, rel=0.25)
    assert cell["power_w"] == pytest.approx(32.0, rel=0.1)  # the stand-in's own sensors
    assert cell["requests"] > 0
    assert cell["errors"] == 0
    assert {"decode_tok_s", "output_tok_s", "ttft_ms"} <= cell.keys()
    assert off["cells"][0]["acceptance_rate"] is None
    kinds = {(v["load"], v["metric"]): v["headline"] for v in value["verdicts"]}
    assert kinds == {
        (1, "decode_tok_s"): True,
        (1, "output_tok_s"): False,
        (4, "output_tok_s"): True,
        (4, "decode_tok_s"): False,
    }
    assert value["why"]
    served = off["cells"][1]["server_output_tok_s"]
    assert off["cells"][1]["output_tok_s"] == pytest.approx(served, rel=0.15)


def test_named_variants_and_two_rounds(home: Home, tmp_path: Path) -> None:
    path = home.profile(boot=0.3, window=1.2)
    code, output = home.run("ab", f"{path}:k2,on", "-c", 1, "--rounds", 2, "--json", tmp_path / "r.json")
    assert code == 0, output
    report = loads(Report, (tmp_path / "r.json").read_bytes())
    assert [arm.name for arm in report.arms] == ["k2", "on"]
    starts = {arm.name: [cell.start for cell in arm.cells] for arm in report.arms}
    assert starts == {"k2": [0, 3], "on": [1, 2]}  # A B B A
    assert report.verdicts[0].starts == (2, 2)
    assert '"num_speculative_tokens":2' in " ".join(report.arms[0].argv)


def test_detach_then_jobs_ps_logs_once_find_it(home: Home) -> None:
    begun = time.monotonic()
    code, output = home.run("ab", home.profile(window=6), "-c", 1, "--detach")
    assert code == 0, output
    assert time.monotonic() - begun < 20
    run = home.only_run()
    until(lambda: any("ready after" in e.text for e in events(run)), what="the first boot")

    assert run.id in home.run("ps")[1]
    assert re.search(rf"{run.id} +\[1/2\] off", home.run("jobs")[1])
    assert "Application startup complete" in home.run("logs", run.id[:14])[1]
    code, text = home.run("once", "--json")
    assert code == 0
    snapshot = json.loads(text)
    assert snapshot["server"]["state"] == "ready"
    assert snapshot["run_id"] == run.id
    assert "tok/s" in home.run("once", "--short", run.id)[1]

    until(lambda: run.record().state == "done", 120, "the end")
    assert "nothing runs" in home.run("ps")[1]
    assert f"{run.id}  ab  done" in home.run("ps", "--all")[1]
    assert run.report() is not None


def test_after_last_leaves_the_last_arm_serving(home: Home) -> None:
    code, output = home.run("ab", home.profile(boot=0.3), "-c", 1, "--after", "last")
    assert code == 0, output
    assert re.search(r"Serving: on at http://127\.0\.0\.1:\d+", output)
    assert len(home.servers()) == 2
    code, output = home.run("stop", "--all")
    assert code == 0, output
    assert not home.processes()


def test_files_are_the_users_own(home: Home) -> None:
    home.run("ab", home.profile(window=30), "-c", 1, "--detach")
    run = home.only_run()
    assert run.path.stat().st_mode & 0o077 == 0
    (socket,) = until(lambda: list(run.path.glob("*.sock")), what="the socket")
    assert socket.stat().st_mode & 0o777 == 0o600
    home.run("stop", "--all")


def test_a_server_that_refuses_its_arguments_says_why(home: Home, tmp_path: Path) -> None:
    broken = tmp_path / "box.yaml"
    broken.write_text("name: box\nfan: 1\n", "utf-8")
    code, output = home.run("ab", home.profile(args=f"sim-model: {broken}"), "-c", 1)
    assert code == 1, output
    assert f"ended with exit code 2: {broken}:2: unknown key 'fan'" in output
    assert not home.processes()

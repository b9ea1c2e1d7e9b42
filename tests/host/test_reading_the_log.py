"""What the host makes of a real server's log: facts, expected lines, tables, a user's own rules."""

from __future__ import annotations

import json
from typing import Any

from tests.support import Home, events, until

EXPECT = """
expect:
  - attention backend
  - {when: spec, line: Loading drafter model}
  - {when: "off", line: this is said by no log}
"""


def begin(home: Home, profile: str, variant: str, *more: object) -> dict[str, Any]:
    """The data of the ready event of a run of this variant."""
    process = home.start("run", f"{profile}:{variant}", *more)
    until(home.runs, what="a run folder")
    run = home.only_run()
    ready = until(
        lambda: [e for e in events(run) if e.kind == "server" and "facts" in e.data],
        what="a server that serves",
    )
    assert process.poll() is None
    return dict(ready[0].data)


def with_expect(home: Home) -> str:
    path = home.profile(args="cudagraph-metrics: true")
    path.write_text(path.read_text() + EXPECT)
    return str(path)


def test_expected_lines_and_facts_are_told_when_it_serves(home: Home) -> None:
    data = begin(home, with_expect(home), "on")
    assert data["facts"]["num_speculative_tokens"] == 3
    assert "non_default_args" in data["facts"]
    told = {e["text"]: e["met"] for e in data["expected"]}
    assert told == {"attention backend": True, "Loading drafter model": True}


def test_an_expected_line_that_is_missing_is_unmet(home: Home) -> None:
    data = begin(home, with_expect(home), "off")
    told = {e["text"]: e["met"] for e in data["expected"]}
    assert told == {"attention backend": True, "this is said by no log": False}


def test_graph_steps_come_with_the_snapshot(home: Home) -> None:
    path = home.profile(args="cudagraph-metrics: true, sim-vllm: 0.27.1")
    path.write_text(path.read_text() + "env: {VLLM_LOG_STATS_INTERVAL: '1'}\n")
    begin(home, str(path), "off", "-c", 2)

    def steps() -> Any:
        code, output = home.run("once", "--json")
        assert code == 0, output
        return json.loads(output)["graph_steps"]

    found = until(steps, what="a table of graph steps")
    assert found["full"] > 0
    assert found["none"] == 0


def test_a_users_own_rule_explains_a_line(home: Home) -> None:
    rules = home.path / "config" / "sparktui" / "rules"
    rules.mkdir(parents=True)
    (rules / "mine.yaml").write_text(
        "my-own:\n  needs: attention backend\n  pattern: 'Using \\w+ attention backend'\n"
        "  severity: note\n  meaning: House rule.\n"
    )
    begin(home, str(home.profile()), "off")
    run = home.only_run()
    found = until(lambda: [e for e in events(run) if e.kind == "finding" and e.data["id"] == "my-own"])
    assert found[0].data["meaning"] == "House rule."


def test_a_broken_rule_is_said_before_anything_starts(home: Home) -> None:
    rules = home.path / "config" / "sparktui" / "rules"
    rules.mkdir(parents=True)
    (rules / "mine.yaml").write_text("my-own:\n  needs: x\n  pattern: '('\n  severity: note\n  meaning: M.\n")
    code, output = home.run("run", str(home.profile()))
    assert code == 2
    assert "mine.yaml:3" in output
    assert home.runs() == []

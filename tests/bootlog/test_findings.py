from __future__ import annotations

from dataclasses import replace

from sparktui.bootlog.context import Context
from sparktui.bootlog.findings import FindingLog
from sparktui.bootlog.lines import Line, LineSplitter
from sparktui.bootlog.rules import load_rules, shipped_rules
from sparktui.schema.live import Finding
from tests.bootlog.logs import line, log_lines

NOWHERE = Context()
RULES = load_rules(
    """\
cause:
  needs: no network
  pattern: '^no network'
  severity: note
  meaning: There is none.
effect:
  needs: slow path
  pattern: '^slow path (?P<name>\\w+)'
  severity: costs speed
  meaning: It is slow.
  source: one report
  weighs: {with cause: note, cpu: harmless, sm_12x: note}
  follows: cause
  versions: 0.13.0-0.27.1
variable:
  needs: unknown variable
  pattern: '^unknown variable (?P<name>\\w+)'
  severity: note
  meaning: Nobody knows {name}.
  each: true
""",
    "test.yaml",
)


def log_of(*messages: str) -> FindingLog:
    log = FindingLog(RULES)
    for number, message in enumerate(messages, 1):
        log.read(line(message, number))
    return log


def record(*lines: str) -> list[Line]:
    """A record of several lines, as a log has it."""
    head = "(EngineCore pid=2) ERROR 11-30 12:00:00 [core.py:1] "
    return LineSplitter().feed("".join(f"{head}{text}\n" for text in lines).encode())


def test_repeats_with_other_names_are_one_finding() -> None:
    (finding,) = log_of("slow path a", "nothing", "slow path b", "slow path a").all(NOWHERE)
    assert (finding.line, finding.text, finding.count) == (1, "slow path a", 3)


def test_texts_count_apart_where_each_is_its_own() -> None:
    found = log_of("unknown variable A", "unknown variable B", "unknown variable A").all(NOWHERE)
    assert [(f.text, f.count) for f in found] == [("unknown variable A", 2), ("unknown variable B", 1)]
    assert [f.meaning for f in found] == ["Nobody knows A.", "Nobody knows B."]


def test_texts_that_never_end_are_bounded() -> None:
    found = log_of(*(f"unknown variable V{number}" for number in range(5000))).all(NOWHERE)
    assert len(found) == 100
    assert sum(f.count for f in found) == 5000


def test_a_cause_must_stand_before() -> None:
    (_, effect) = log_of("no network", "slow path a").all(NOWHERE)
    assert (effect.cause, effect.severity) == ("cause", "note")
    (effect, _) = log_of("slow path a", "no network").all(NOWHERE)
    assert (effect.cause, effect.severity) == ("", "costs speed")


def test_of_several_causes_the_last_one_counts() -> None:
    log = FindingLog(shipped_rules())
    artifactory, headdim = (
        "Failed to connect to NVIDIA artifactory: timed out",
        "FlashInfer XQA decode does not support head_dim=512; reverting this KV-cache group",
    )
    downgrade = (
        "CUDAGraphMode.FULL is not supported with spec-decode for attention backend X (support: A.B); "
        "setting cudagraph_mode=PIECEWISE"
    )
    for number, message in enumerate((artifactory, headdim, downgrade), 1):
        log.read(line(message, number))
    assert log.all(NOWHERE)[-1].cause == "attn-xqa-headdim"


def test_weighed_by_where_it_runs() -> None:
    log = log_of("slow path a")
    assert [f.severity for f in log.all(NOWHERE)] == ["costs speed"]
    assert [f.severity for f in log.all(Context("NVIDIA GB10"))] == ["note"]
    cpu = Context()
    cpu.learn({"device": "cpu"})
    assert [f.severity for f in log.all(cpu)] == ["harmless"]


def test_what_may_still_weigh_otherwise_waits() -> None:
    log, context = log_of("slow path a", "no network"), Context()
    assert [f.id for f in log.new(context, False)] == ["cause"]
    assert log.new(context, False) == ()
    context.learn({"device": "cpu"})
    assert [(f.id, f.severity) for f in log.new(context, False)] == [("effect", "harmless")]
    assert log.new(context, True) == ()


def test_the_first_situation_that_holds_is_certain_only_when_none_before_it_is_open() -> None:
    log = log_of("slow path a")
    assert log.new(Context("NVIDIA GB10"), False) == ()  # a CPU would make it harmless
    assert [f.severity for f in log.new(Context("NVIDIA GB10"), True)] == ["note"]


def test_once_settled_nothing_waits() -> None:
    assert [f.severity for f in log_of("slow path a").new(NOWHERE, True)] == ["costs speed"]


def test_a_release_outside_the_known_ones_is_said() -> None:
    log, context = log_of("slow path a"), Context()
    assert log.all(context)[0].source == "one report"
    context.learn({"vllm_version": "0.24.0"})
    assert log.all(context)[0].source == "one report"
    context.learn({"vllm_version": "0.32.0"})
    assert log.all(context)[0].source == "one report; the text is known from 0.13.0 to 0.27.1"
    context.learn({"vllm_version": "unknown"})
    assert log.all(context)[0].source == "one report"


def test_added_findings_stand_once_and_at_the_end() -> None:
    log = log_of("slow path a")
    added = Finding("derived", "costs memory", 0, "12 GiB", "Much.")
    log.add(added)
    log.add(added)
    log.add(replace(added, text="13 GiB"))
    assert [(f.id, f.text) for f in log.all(NOWHERE)] == [
        ("effect", "slow path a"),
        ("derived", "12 GiB"),
        ("derived", "13 GiB"),
    ]
    assert [f.id for f in log.new(NOWHERE, False)] == ["derived", "derived"]


def test_added_findings_are_bounded() -> None:
    log = FindingLog(RULES)
    for number in range(1000):
        log.add(Finding("derived", "note", 0, str(number), "One."))
    assert len(log.all(NOWHERE)) == 200


def test_a_finding_has_the_lines_of_its_record() -> None:
    log = FindingLog(RULES)
    for read in record("slow path a", "  because of", "  this"):
        log.read(read)
    (finding,) = log.all(NOWHERE)
    assert (finding.line, finding.lines) == (1, 3)


def test_a_line_of_its_own_has_one() -> None:
    log = FindingLog(RULES)
    for read in record("slow path a") + [replace(x, number=2, record=2) for x in record("other")]:
        log.read(read)
    assert [f.lines for f in log.all(NOWHERE)] == [1]


def test_a_recorded_crash() -> None:
    log = FindingLog(shipped_rules())
    for read in log_lines("0.32.0-cpu/runtime-crash-0.32.0-cpu.log"):
        log.read(read)
    found = {f.id: f for f in log.all(NOWHERE)}
    assert found["dead-error"].cause == "core-fatal"
    assert found["core-fatal"].lines > 10
    assert found["force-kill"].severity == "harmless"


def test_memory_is_bounded_by_the_rules() -> None:
    log = FindingLog(shipped_rules())
    for number in range(20_000):
        log.read(line(f"Triton kernel JIT compilation during inference: k{number}. This", number))
    (finding,) = log.all(NOWHERE)
    assert finding.count == 20_000

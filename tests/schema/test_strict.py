"""What has not the right shape is refused, with the path of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from sparktui.host.experiment import Experiment
from sparktui.schema.codec import SchemaError, dumps, from_plain, loads, to_plain
from sparktui.schema.launch import LaunchSpec, LoadSpec, Plan
from sparktui.schema.live import Event, Snapshot
from sparktui.schema.messages import from_line, to_line
from sparktui.schema.records import ProcessRef, Report, RunRecord
from tests.schema.samples import EVENT, LAUNCH, LOAD, MESSAGES, PLAN, REPORT, RUN, SNAPSHOT


def changed(sample: Any, path: str, value: Any) -> Any:
    """The plain form of ``sample`` with ``value`` at a dotted path; ``...`` takes the entry away."""
    plain = to_plain(sample)
    *way, last = path.split(".")
    place = plain
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return plain


@pytest.mark.parametrize(
    ("sample", "path", "value", "says"),
    [
        (RUN, "extra", 1, "RunRecord: unknown field 'extra'"),
        (RUN, "server.process.ppid", 1, "RunRecord.server.process: unknown field 'ppid'"),
        (RUN, "id", ..., "RunRecord: field 'id' is missing"),
        (RUN, "server.process.start_time", ..., "RunRecord.server.process: field 'start_time' is missing"),
        (RUN, "state", "sleeping", "RunRecord.state: 'sleeping' is none of 'starting', 'running'"),
        (RUN, "kind", 1, "RunRecord.kind: 1 is none of"),
        (RUN, "kind", ["ab"], "RunRecord.kind: ['ab'] is none of"),
        (RUN, "schema", True, "RunRecord.schema: expected int, got a boolean"),
        (RUN, "schema", 1.0, "RunRecord.schema: expected int, got float"),
        (RUN, "schema", "1", "RunRecord.schema: expected int, got str"),
        (RUN, "created", True, "RunRecord.created: expected float, got bool"),
        (RUN, "created", None, "RunRecord.created: expected float, got NoneType"),
        (RUN, "server", [], "RunRecord.server: expected dict, got list"),
        (RUN, "server.tree.0.pid", None, "RunRecord.server.tree[0].pid: expected int, got NoneType"),
        (RUN, "server.exit_code", False, "RunRecord.server.exit_code: expected int, got a boolean"),
        (RUN, "reason", 3, "RunRecord.reason: expected str, got int"),
        (LAUNCH, "speculating", 1, "LaunchSpec.speculating: expected bool, got int"),
        (LAUNCH, "argv", "vllm serve", "LaunchSpec.argv: expected list, got str"),
        (LAUNCH, "added.1", "x", "LaunchSpec.added[1]: expected int, got str"),
        (LAUNCH, "env.HF_HOME", 5, "LaunchSpec.env.HF_HOME: expected str, got int"),
        (LAUNCH, "env", ["A=b"], "LaunchSpec.env: expected dict, got list"),
        (LOAD, "temperature", "hot", "LoadSpec.temperature: expected float, got str"),
        (PLAN, "arms.0.port", "8000", "Plan.arms[0].port: expected int, got str"),
        (REPORT, "arms.0.cells.0.batches.1.seconds", "5",
         "Report.arms[0].cells[0].batches[1].seconds: expected float, got str"),
        (REPORT, "arms.0.cells.0.ttft_ms.p50", None, "Report.arms[0].cells[0].ttft_ms.p50: expected float"),
        (REPORT, "verdicts.0.call", "maybe", "Report.verdicts[0].call: 'maybe' is none of"),
        (SNAPSHOT, "gpus.1.watts", 3, "Snapshot.gpus[1]: unknown field 'watts'"),
        (EVENT, "level", "fatal", "Event.level: 'fatal' is none of 'info', 'warning', 'error'"),
    ],
)  # fmt: skip
def test_a_wrong_shape_is_named_by_its_path(sample: Any, path: str, value: Any, says: str) -> None:
    steps = path.split(".")
    if steps[-1].isdigit():
        plain = to_plain(sample)
        plain[steps[0]][int(steps[1])] = value
    else:
        plain = changed(sample, path, value)
    with pytest.raises(SchemaError) as caught:
        from_plain(type(sample), plain)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize("data", [b"", b"{", b"nonsense", b"\xff\xfe", "ünclosed", b'{"a": NaN}'])
@pytest.mark.parametrize("cls", [RunRecord, Plan, Experiment])
def test_what_is_not_json_is_refused(cls: type, data: bytes | str) -> None:
    with pytest.raises(SchemaError, match=r"^not JSON: "):
        loads(cls, data)


@pytest.mark.parametrize("data", [b"null", b"[]", b"3", b'"x"', b"true"])
@pytest.mark.parametrize("cls", [RunRecord, LaunchSpec, LoadSpec, Snapshot, Event, Report])
def test_other_json_is_refused_by_the_class_it_should_have_been(cls: type, data: bytes) -> None:
    with pytest.raises(SchemaError, match=f"^{cls.__name__}: expected dict, got "):
        loads(cls, data)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_has_not_never_comes_back_as_a_number(value: float) -> None:
    with pytest.raises(SchemaError, match=r"ProcessRef\.start_time: expected float, got NoneType"):
        loads(ProcessRef, dumps(ProcessRef(1, value)))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "not JSON"),
        (b"\n", "not JSON"),
        (b'{"type":"SetLoad"', "not JSON"),
        (b"[]\n", "a message is an object of type and body"),
        (b"null\n", "a message is an object of type and body"),
        (b'{"concurrency":3}\n', "a message is an object of type and body"),
        (b'{"type":"SetLoad","body":{"concurrency":3},"x":1}\n', "a message is an object of type and body"),
        (b'{"type":"Shell","body":{}}\n', "unknown message type 'Shell'"),
        (b'{"type":"ProcessRef","body":{"pid":1,"start_time":1}}\n', "unknown message type 'ProcessRef'"),
        (b'{"type":null,"body":{}}\n', "unknown message type None"),
        (b'{"type":["SetLoad"],"body":{}}\n', "unknown message type ['SetLoad']"),
        (b'{"type":{},"body":{}}\n', "unknown message type {}"),
        (b'{"type":"SetLoad","body":{}}\n', "SetLoad: field 'concurrency' is missing"),
        (b'{"type":"SetLoad","body":{"concurrency":true}}\n', "SetLoad.concurrency: expected int"),
        (b'{"type":"SetLoad","body":null}\n', "SetLoad: expected dict, got NoneType"),
        (b'{"type":"StopRun","body":{"force":true}}\n', "StopRun: unknown field 'force'"),
    ],
)
def test_a_line_that_is_no_message_is_refused(line: bytes, says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        from_line(line)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize("sample", MESSAGES, ids=lambda m: type(m).__name__)
def test_every_message_refuses_an_unknown_field(sample: Any) -> None:
    line = to_line(sample).replace(b'"body":{', b'"body":{"surprise":1,', 1).replace(b",}", b"}")
    with pytest.raises(SchemaError, match="unknown field 'surprise'"):
        from_line(line)


@pytest.mark.parametrize("value", [RUN, {"type": "SetLoad"}, None, "SetLoad"])
def test_only_messages_become_lines(value: Any) -> None:
    with pytest.raises(SchemaError, match="is not a message"):
        to_line(value)

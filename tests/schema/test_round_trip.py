"""Every dataclass survives the way to disk or socket and back."""

from __future__ import annotations

import dataclasses
import typing
from types import ModuleType
from typing import Any

import pytest

from sparktui.host.experiment import Boot, Experiment
from sparktui.schema import bootlog, launch, live, messages, records
from sparktui.schema.codec import dumps, from_plain, loads, to_plain
from sparktui.schema.messages import from_line, to_line
from tests.schema.samples import ARM, CELL, FINDING, LAUNCH, MESSAGES, PHASE, SAMPLES

MODULES = (bootlog, launch, live, messages, records)


def declared(module: ModuleType) -> set[type]:
    return {
        value
        for value in vars(module).values()
        if dataclasses.is_dataclass(value) and isinstance(value, type) and value.__module__ == module.__name__
    }


def name(value: object) -> str:
    return type(value).__name__


def test_there_is_a_sample_of_every_dataclass() -> None:
    everything = set().union(*map(declared, MODULES))
    assert {type(sample) for sample in SAMPLES} == everything
    assert {type(sample) for sample in MESSAGES} == declared(messages)


@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_no_field_of_a_sample_is_at_its_default(sample: Any) -> None:
    for field in dataclasses.fields(sample):
        value = getattr(sample, field.name)
        assert value != field.default, field.name
        if field.default_factory is not dataclasses.MISSING:
            assert value != field.default_factory(), field.name


@pytest.mark.parametrize("indent", [False, True])
@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_dumps_then_loads_gives_an_equal_value(sample: Any, indent: bool) -> None:
    again = loads(type(sample), dumps(sample, indent=indent))
    assert again == sample
    assert type(again) is type(sample)


@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_to_plain_then_from_plain_gives_an_equal_value(sample: Any) -> None:
    assert from_plain(type(sample), to_plain(sample)) == sample


@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_optional_fields_may_be_null(sample: Any) -> None:
    hints = typing.get_type_hints(type(sample))
    names = [n for n, kind in hints.items() if type(None) in typing.get_args(kind)]
    emptied = dataclasses.replace(sample, **dict.fromkeys(names))
    assert loads(type(sample), dumps(emptied)) == emptied


@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_fields_with_a_default_may_be_left_out(sample: Any) -> None:
    needed = {
        field.name: value
        for field, value in zip(dataclasses.fields(sample), to_plain(sample).values(), strict=True)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    built = from_plain(type(sample), needed)
    for field in dataclasses.fields(sample):
        if field.name in needed:
            assert getattr(built, field.name) == getattr(sample, field.name)
        elif field.default is not dataclasses.MISSING:
            assert getattr(built, field.name) == field.default


@pytest.mark.parametrize("sample", MESSAGES, ids=name)
def test_a_message_survives_its_line(sample: Any) -> None:
    line = to_line(sample)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert from_line(line) == sample


def test_a_line_holds_one_line_whatever_the_text() -> None:
    line = to_line(messages.LogLines(1, ("a\nb\r\n", "\u2028", "\x1b[31m")))
    assert line.count(b"\n") == 1
    assert from_line(line).lines == ("a\nb\r\n", "\u2028", "\x1b[31m")


@pytest.mark.parametrize(
    "experiment",
    [
        Experiment((0, 1), (0, 1), (1, 8)),
        Experiment(
            (0, 1), (0, 1, 1, 0), (1, 8, 32), "winner", 1, 3, 2, "window", 2, 1, False, 2, "cancelled",
            (Boot(0, 93.5, "0.27.1", (FINDING,), {"k": [1, {"a": None}]}, (PHASE,), "no memory"), Boot(1)),
            (CELL, CELL),
        ),
    ],
    ids=["begun", "in the middle"],
)  # fmt: skip
def test_an_experiment_survives_its_file(experiment: Experiment) -> None:
    assert loads(Experiment, dumps(experiment, indent=True)) == experiment


def test_whole_numbers_become_floats_where_floats_are_due() -> None:
    value = loads(live.HostMemory, b'{"total_mib": 3, "available_mib": 2}')
    assert value == live.HostMemory(3.0, 2.0, 0.0)
    assert isinstance(value.total_mib, float)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("spark.local", "http://spark.local:8000"),
    ],
)
def test_the_url_of_a_server_is_one_that_clients_can_use(host: str, url: str) -> None:
    assert dataclasses.replace(LAUNCH, host=host, port=8000).url == url


def test_a_list_becomes_a_tuple() -> None:
    assert isinstance(loads(records.ArmReport, dumps(ARM)).cells, tuple)

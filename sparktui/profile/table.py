"""Every key of the profile format, once: its name, what it takes, where it may stand."""

from __future__ import annotations

from sparktui.profile import flags
from sparktui.profile.kinds import json_object, name, url, workload
from sparktui.profile.model import Expectation, Slo, Variant
from sparktui.schema.launch import LoadSpec, MeasureSpec, Roof
from sparktui.yamlfile.kinds import (
    Key,
    Kind,
    boolean,
    choice,
    integer,
    list_of,
    mapping,
    number,
    section,
    text,
)
from sparktui.yamlfile.problems import Report
from sparktui.yamlfile.source import Map, Node

_POSITIVE = number(above=0)

LOAD = {
    "workload": Key(workload),
    "input_tokens": Key(integer(1)),
    "output_tokens": Key(integer(1)),
    "temperature": Key(number(low=0)),
    "top_p": Key(number(above=0, high=1)),
    "top_k": Key(integer(-1)),  # vLLM: 0 and -1 mean all
    "min_p": Key(number(low=0, high=1)),
    "presence_penalty": Key(number(low=-2, high=2)),
    "frequency_penalty": Key(number(low=-2, high=2)),
    "repetition_penalty": Key(number(above=0)),
    "chat_template_kwargs": Key(json_object),
    "ignore_eos": Key(boolean),
    "seed": Key(integer(0)),
    "url": Key(url),
    "model": Key(text),
}

MEASURE = {
    "settle_s": Key(_POSITIVE),
    "batch_s": Key(_POSITIVE),
    "min_window_s": Key(_POSITIVE),
    "max_window_s": Key(_POSITIVE),
    "precision": Key(number(above=0, high=1)),
    "stall_s": Key(_POSITIVE),
}

DOCKER = {
    "image": Key(text),
    "ipc": Key(text),
    "gpus": Key(text),
    "volumes": Key(list_of(text)),
}

ROOF = {"bandwidth_gb_s": Key(_POSITIVE, required=True), "gb_per_step": Key(_POSITIVE, required=True)}

SLO = {"ttft_s": Key(_POSITIVE)}

EXPECTATION = {"when": Key(choice("always", "spec", "off")), "line": Key(text, required=True)}

VARIANT = {
    "speculative": Key(flags.speculative_change),
    "args": Key(flags.args),
    "env": Key(flags.env_change),
    "model": Key(text),
    "vllm_bin": Key(text),
    "vllm": Key(text),
    "docker": Key(section(DOCKER)),
}

RESERVED_VARIANTS = ("off", "on", "base")


def _expectation(node: Node, label: str, report: Report) -> Expectation | None:
    if isinstance(node, Map):
        made: Expectation | None = section(EXPECTATION, Expectation)(node, label, report)
        return made
    return Expectation(text(node, label, report))


def _variants(node: Node, label: str, report: Report) -> dict[str, Variant]:
    made: dict[str, Variant] = {}
    for key, value in mapping(node, label, report).entries:
        where = f"{label}.{key.text}"
        if key.text in RESERVED_VARIANTS:
            report.add(key, f"{where}: off, on and base are made from the profile; choose another name")
            continue
        variant = name(key, label, report)
        changes = section(VARIANT)(value, where, report)
        if changes is not None:
            made[variant] = Variant(variant, **changes)
    return made


def _measure() -> Kind:
    read = section(MEASURE, MeasureSpec)

    def checked(node: Node, label: str, report: Report) -> MeasureSpec | None:
        made: MeasureSpec | None = read(node, label, report)
        if made is not None and made.max_window_s < made.min_window_s:
            least = f"min_window_s is {made.min_window_s:g}"
            report.add(node, f"{label}: max_window_s is {made.max_window_s:g}, less than {least}")
        return made

    return checked


PROFILE = {
    "name": Key(name),
    "about": Key(text),
    "runner": Key(choice("local", "docker", "command", "attach", "sim")),
    "vllm_bin": Key(text),
    "vllm": Key(text),
    "model": Key(text),
    "port": Key(integer(1, 65535)),
    "host": Key(text),
    "env": Key(flags.env),
    "env_file": Key(text),
    "args": Key(flags.args),
    "speculative": Key(flags.speculative),
    "variants": Key(_variants),
    "docker": Key(section(DOCKER)),
    "start": Key(list_of(text)),
    "stop": Key(list_of(text)),
    "url": Key(url),
    "expect": Key(list_of(_expectation)),
    "observe": Key(flags.args),
    "roof": Key(section(ROOF, Roof)),
    "load": Key(section(LOAD, LoadSpec)),
    "measure": Key(_measure()),
    "slo": Key(section(SLO, Slo)),
    "memory_floor_gib": Key(number(low=0)),
    "ready_timeout_s": Key(_POSITIVE),
}

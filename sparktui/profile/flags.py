"""Kinds for what ends up in a command line or an environment: args, observe, speculative, env."""

from __future__ import annotations

import re
from typing import Any, Literal

from sparktui.profile.kinds import json_object
from sparktui.profile.model import Args, ArgValue
from sparktui.profile.secrecy import ADVICE, is_secret_env
from sparktui.yamlfile.kinds import describe, mapping, text
from sparktui.yamlfile.problems import Report
from sparktui.yamlfile.source import Map, Node, Scalar, Seq

_FLAG = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_ENV = {"api-key": "VLLM_API_KEY", "hf-token": "HF_TOKEN"}
_PROFILE_KEY = {
    "model": "model",
    "port": "port",
    "host": "host",
    "speculative-config": "speculative",
    "spec-method": "speculative",
    "spec-model": "speculative",
    "spec-tokens": "speculative",
}


def args(node: Node, label: str, report: Report) -> Args:
    """vLLM's flags by name, without leading dashes; underscores in names become dashes."""
    made: Args = {}
    for key, value in mapping(node, label, report).entries:
        flag = key.text.replace("_", "-")
        where = f"{label}.{key.text}"
        if problem := _flag_problem(key.text, flag, value):
            report.add(key, f"{where}: {problem}")
        elif flag in made:
            report.add(key, f"{where}: --{flag} is here twice")
        else:
            made[flag] = _flag_value(value, where, report)
    return made


def _flag_problem(written: str, flag: str, value: Node) -> str:
    if flag in _SECRET_ENV and not (flag == "hf-token" and isinstance(value, Scalar) and value.boolean):
        name = _SECRET_ENV[flag]
        return f"a command line shows in ps, so it holds no secrets; {ADVICE.format(name=name)}"
    if flag in _PROFILE_KEY:
        return f"use the profile's own key {_PROFILE_KEY[flag]!r} instead"
    if written.startswith("-"):
        return "write flags without the leading dashes"
    head, dot, rest = written.partition(".")
    if dot:
        return f"nest it instead, as {head}: {{{rest}: …}} (vLLM drops one of two forms of a flag)"
    if not _FLAG.fullmatch(written):
        return "is not the name of a flag"
    if flag.startswith("no-") and isinstance(value, Scalar) and value.boolean is False:
        return f"is negated twice; write {flag[3:]}: true"
    return ""


def _flag_value(node: Node, label: str, report: Report) -> ArgValue:
    if isinstance(node, Map):
        return json_object(node, label, report)
    if isinstance(node, Seq):
        if not node.items:
            report.add(node, f"{label}: an empty list; leave the flag out or write null")
        return tuple(_token(item, f"{label}[{i}]", report) for i, item in enumerate(node.items))
    if node.is_null:
        return None
    return node.text if node.boolean is None else node.boolean


def _token(node: Node, label: str, report: Report) -> str:
    if not isinstance(node, Scalar) or node.is_null:
        report.add(node, f"{label}: expected text, got {describe(node)}")
        return ""
    return node.text


def speculative(node: Node, label: str, report: Report) -> dict[str, Any]:
    """The object of --speculative-config."""
    made = json_object(node, label, report)
    if isinstance(node, Map):
        if not made:
            report.add(node, f"{label}: is empty; leave it out when there is no speculation")
        for key, _ in node.entries:
            if "-" in key.text:
                better = key.text.replace("-", "_")
                report.add(key, f"{label}: unknown key {key.text!r}; did you mean {better!r}?")
    return made


def speculative_change(node: Node, label: str, report: Report) -> dict[str, Any] | Literal[False]:
    """A variant's: keys that merge into the profile's, or ``off``."""
    if isinstance(node, Scalar):
        if node.text != "off" and node.boolean is not False:
            report.add(node, f"{label}: expected a mapping or off, got {describe(node)}")
        return False
    return speculative(node, label, report)


def env(node: Node, label: str, report: Report) -> dict[str, str]:
    """Environment variables, none of which looks like a secret."""
    return {key: value for key, value in _env(node, label, report, False).items() if value is not None}


def env_change(node: Node, label: str, report: Report) -> dict[str, str | None]:
    """A variant's: null removes a variable."""
    return _env(node, label, report, True)


def _env(node: Node, label: str, report: Report, may_remove: bool) -> dict[str, str | None]:
    made: dict[str, str | None] = {}
    for key, value in mapping(node, label, report).entries:
        where = f"{label}.{key.text}"
        removes = may_remove and isinstance(value, Scalar) and value.is_null
        if not _ENV.fullmatch(key.text):
            report.add(key, f"{where}: is not the name of an environment variable")
        elif is_secret_env(key.text) and not removes:
            advice = ADVICE.format(name=key.text)
            report.add(key, f"{where}: looks like a secret, and a profile holds none; {advice}")
        elif removes:
            made[key.text] = None
        elif isinstance(value, Scalar) and not value.plain:
            made[key.text] = value.text
        else:
            made[key.text] = text(value, where, report)
    return made

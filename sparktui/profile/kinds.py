"""Kinds of value that only a profile's keys take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sparktui.schema import promptfile
from sparktui.schema.workloads import FILE, WORKLOADS
from sparktui.yamlfile.kinds import describe, expected, mapping, text
from sparktui.yamlfile.problems import Report, did_you_mean
from sparktui.yamlfile.source import Map, Node, Seq

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def name(node: Node, label: str, report: Report) -> str:
    """A name that can be typed as PROFILE:VARIANT and be part of a folder's name."""
    value = text(node, label, report)
    if value and not _NAME.fullmatch(value):
        report.add(node, f"{label}: {value!r} is not a name: letters, digits, '.', '_' and '-', at most 100")
    return value


def url(node: Node, label: str, report: Report) -> str:
    """An http or https base URL without credentials; a slash at the end is dropped."""
    value = text(node, label, report)
    if not value:
        return value
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        expected("a URL such as http://127.0.0.1:8000", node, label, report)
    elif "@" in parts.netloc:
        report.add(node, f"{label}: no user or password in a URL: a profile holds no secrets")
    return value.rstrip("/")


def workload(node: Node, label: str, report: Report) -> str:
    """A workload's name, or ``file:PATH`` of a prompt file that is read to its end here, made absolute:
    ``~/`` is the home, anything relative starts at the profile's folder."""
    value = text(node, label, report)
    if not value.startswith(FILE):
        if value and value not in WORKLOADS:
            message = f"{label}: expected {', '.join(WORKLOADS)} or file:PATH, got {describe(node)}"
            report.add(node, message + did_you_mean(value, WORKLOADS))
        return value
    written = value.removeprefix(FILE).strip()
    if not written:
        expected("file:PATH with the path of a prompt file", node, label, report)
        return value
    try:
        path = Path(report.path).absolute().parent / Path(written).expanduser()
        promptfile.read(path)
    except RuntimeError:  # ~somebody whom this machine doesn't know
        report.add(node, f"{label}: there is no home folder for {written!r}")
        return value
    except promptfile.PromptFileError as exc:
        report.add(node, f"{label}: {exc}")
    return f"{FILE}{path}"


def json_object(node: Node, label: str, report: Report) -> dict[str, Any]:
    """A mapping as JSON will carry it: YAML 1.2 core numbers, booleans and null, all else text."""
    entries = mapping(node, label, report).entries
    return {key.text: json_value(value, f"{label}.{key.text}", report) for key, value in entries}


def json_value(node: Node, label: str, report: Report) -> Any:
    """Any node as JSON will carry it."""
    if isinstance(node, Map):
        return json_object(node, label, report)
    if isinstance(node, Seq):
        return [json_value(item, f"{label}[{i}]", report) for i, item in enumerate(node.items)]
    if node.is_null:
        return None
    if node.boolean is not None:
        return node.boolean
    if node.integer is not None:
        return node.integer
    if node.number is not None and node.finite is None:
        report.add(node, f"{label}: JSON has no {node.text}; quote it if it is text")
    return node.text if node.finite is None else node.finite

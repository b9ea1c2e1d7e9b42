"""Profiles from text, for the tests of this room."""

from __future__ import annotations

import textwrap
from pathlib import Path

from sparktui.profile.decode import load
from sparktui.profile.model import Profile
from sparktui.profile.problems import ProfileError
from sparktui.yamlfile.problems import Report
from sparktui.yamlfile.source import Map, Node, parse

HOME = {"HOME": "/home/ada"}


def write(folder: Path, text: str | bytes, name: str = "spark.yaml") -> Path:
    """A profile file; text is dedented."""
    path = folder / name
    data = text if isinstance(text, bytes) else textwrap.dedent(text).lstrip("\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def profile(folder: Path, text: str) -> Profile:
    """The profile of a text that is right."""
    return load(write(folder, text))


def errors(folder: Path, text: str | bytes) -> list[str]:
    """What is wrong with a text, as ``LINE: message`` (or ``message`` for the file as a whole)."""
    path = write(folder, text)
    try:
        load(path)
    except ProfileError as exc:
        lines = str(exc).splitlines()
        assert all(line.startswith(f"{path}:") for line in lines)
        return [line.removeprefix(f"{path}:").lstrip() for line in lines]
    return []


def tree(text: str | bytes) -> Map:
    """The tree of YAML that is right."""
    report = Report("x.yaml")
    made = parse(text if isinstance(text, bytes) else textwrap.dedent(text).encode(), report)
    report.raise_if_any()
    assert made is not None
    return made


def value(yaml_text: str) -> Node:
    """The node of ``x: …``."""
    node = tree(f"x: {yaml_text}").get("x")
    assert node is not None
    return node

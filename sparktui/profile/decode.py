"""A profile file to a Profile, or a ProfileError that lists everything wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sparktui.profile import kinds
from sparktui.profile.model import Profile
from sparktui.profile.problems import ProfileError, profile_error
from sparktui.profile.table import PROFILE
from sparktui.yamlfile.kinds import read_keys
from sparktui.yamlfile.problems import Report
from sparktui.yamlfile.source import MAX_BYTES, Map, Node, Scalar, parse

# What a runner can't do without.
_NEEDS = {
    "local": ("model",),
    "sim": ("model",),
    "docker": ("model", "docker"),
    "command": ("model", "start"),
    "attach": ("url",),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one file: a profile or an error, and its name as far as that could be read."""

    path: Path
    name: str
    profile: Profile | None
    error: ProfileError | None
    ambiguous: bool = False  # a second file of the folder has the same name


def load(path: Path) -> Profile:
    """The profile of a file. Raises ProfileError."""
    entry = examine(path)
    if entry.profile is None:
        raise entry.error or profile_error("can't be read", str(path))
    return entry.profile


def examine(path: Path) -> Entry:
    """The profile of a file, or what is wrong with it; never raises for the file's sake."""
    try:
        data = _read(path)
    except ProfileError as exc:
        return Entry(path, path.stem, None, exc)
    report = Report(str(path), ProfileError)
    tree = parse(data, report)
    name = _name_of(tree, path)
    profile = decode(tree, path, report) if tree is not None else None
    try:
        report.raise_if_any()
    except ProfileError as exc:
        return Entry(path, name, None, exc)
    return Entry(path, name, profile, None)


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise profile_error("is not a file" if path.exists() else "there is no such file", str(path))
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as exc:
        if isinstance(exc, ProfileError):
            raise
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise profile_error(f"can't be read: {reason}", str(path)) from None


def _name_of(tree: Map | None, path: Path) -> str:
    named = tree.get("name") if tree is not None else None
    return named.text if isinstance(named, Scalar) and named.text else path.stem


def decode(tree: Map, path: Path, report: Report) -> Profile | None:
    """The profile of a tree; None when ``report`` has problems."""
    values = read_keys(tree, PROFILE, "", report)
    if tree.get("name") is None:
        stem = Scalar(path.stem, False, tree.line, tree.column)
        values["name"] = kinds.name(stem, "name", report)
    _check_runner(tree, str(values.get("runner", "local")), report)
    if report.problems:
        return None
    values.setdefault("model", "")
    lines = {key.text: key.line for key, _ in tree.entries}
    return Profile(path=str(path.absolute()), lines=lines, **values)


def _check_runner(tree: Map, runner: str, report: Report) -> None:
    for key in _NEEDS.get(runner, ()):
        if tree.get(key) is None:
            place: Node = tree.get("runner") or tree
            report.add(place, f"{key}: is missing; runner {runner} needs it")
    docker = tree.get("docker")
    if runner == "docker" and isinstance(docker, Map) and docker.get("image") is None:
        report.add(docker, "docker.image: is missing; runner docker needs it")

"""Where profiles are: ./profiles, the user's config directory, the shipped ones; the first of a name wins."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import platformdirs

from sparktui.profile.decode import Entry, examine
from sparktui.profile.problems import profile_error
from sparktui.yamlfile.problems import did_you_mean

_SUFFIXES = (".yaml", ".yml")


def folders() -> list[Path]:
    """Folders that hold profiles, in the order of the search."""
    candidates = [
        Path.cwd() / "profiles",
        platformdirs.user_config_path("sparktui") / "profiles",
        *_shipped(),
    ]
    found: dict[Path, Path] = {}
    for folder in candidates:
        if folder.is_dir():
            found.setdefault(folder.resolve(), folder)
    return list(found.values())


def _shipped() -> list[Path]:
    package = Path(__file__).resolve().parent.parent
    checkout = package.parent
    if (checkout / "pyproject.toml").is_file():
        return [checkout / "profiles"]
    return [package / "shipped_profiles"]


def all_profiles() -> list[Entry]:
    """Every profile that a name can find, and every file on the way that is broken."""
    taken: set[str] = set()
    entries: list[Entry] = []
    for folder in folders():
        here = [entry for entry in _folder(folder) if entry.profile is None or entry.name not in taken]
        entries.extend(here)
        taken.update(entry.name for entry in here if entry.profile is not None or entry.ambiguous)
    return entries


def find(name_or_path: str) -> Path:
    """The file of a profile by its name or path.

    A broken file holds its name: what it hides further on is not what its owner means to run. Raises
    ProfileError for a name that nothing has or that two files of one folder have.
    """
    path = Path(name_or_path)
    if path.suffix in _SUFFIXES or "/" in name_or_path:
        path = path.expanduser() if name_or_path.startswith("~/") else path
        if not path.is_file():
            raise profile_error("there is no such file", name_or_path)
        return path
    known: list[str] = []
    for folder in folders():
        entries = _folder(folder)
        for entry in sorted(entries, key=lambda entry: entry.profile is None):
            if entry.name == name_or_path:
                if entry.ambiguous and entry.error is not None:
                    raise entry.error
                return entry.path
        known.extend(entry.name for entry in entries)
    hint = did_you_mean(name_or_path, known) or f" (there are {', '.join(sorted(set(known))) or 'none'})"
    raise profile_error(f"there is no profile {name_or_path!r}{hint}")


def split_target(target: str) -> tuple[str, str | None]:
    """``PROFILE[:VARIANT]`` to its parts; what follows the last colon is not looked at further."""
    if Path(target).is_file():
        return target, None
    name, colon, variant = target.rpartition(":")
    if not colon or "/" in variant:
        return target, None
    if not name or not variant:
        raise profile_error(f"expected PROFILE or PROFILE:VARIANT, got {target!r}")
    return name, variant


def _folder(folder: Path) -> list[Entry]:
    """Entries of one folder by file name; a name that two good files have is an error of both."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)
    except OSError as exc:
        error = profile_error(f"can't be listed: {exc.strerror}", str(folder))
        return [Entry(folder, folder.name, None, error)]
    entries = [examine(path) for path in paths]
    count = Counter(entry.name for entry in entries if entry.profile is not None)
    return [_double(entry, entries) if count[entry.name] > 1 else entry for entry in entries]


def _double(entry: Entry, entries: list[Entry]) -> Entry:
    if entry.profile is None:
        return entry
    others = [e.path.name for e in entries if e.name == entry.name and e.path != entry.path]
    line = entry.profile.lines.get("name", 0)
    error = profile_error(
        f"name: {entry.name!r} is also the name of {', '.join(others)}", str(entry.path), line
    )
    return replace(entry, profile=None, error=error, ambiguous=True)

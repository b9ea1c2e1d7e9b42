"""What is wrong with a profile."""

from __future__ import annotations

from sparktui.yamlfile.problems import FileError, Problem


class ProfileError(FileError):
    """A profile, or what was asked of one, is wrong. Its text has one ``file:line: message`` a line."""


def profile_error(message: str, path: str = "", line: int = 0) -> ProfileError:
    """A ProfileError of one problem."""
    return ProfileError([Problem(path, line, 1 if line else 0, message)])

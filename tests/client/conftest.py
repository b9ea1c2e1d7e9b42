"""Fixtures of this room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.servers import Nursery
from tests.support import Home


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    made = Nursery(tmp_path / "bin")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def state(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The test's own state directory, for this process too."""
    monkeypatch.setenv("XDG_STATE_HOME", home.env["XDG_STATE_HOME"])
    return home

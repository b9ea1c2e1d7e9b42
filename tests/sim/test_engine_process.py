"""The engine's process, from the server's side."""

from __future__ import annotations

import os

import pytest

from sparktui.sim.engine_process import spawn


def test_what_was_reaped_is_never_signalled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    (engine,) = spawn(["EngineCore"])
    engine.stop()
    assert engine.exited()
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    engine.stop()
    engine.kill()
    assert sent == [], "the number may be somebody else's by now"

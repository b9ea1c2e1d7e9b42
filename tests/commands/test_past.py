"""What earlier runs have shown, as text."""

from __future__ import annotations

from sparktui.client.history import KnownCell, ProfileHistory
from sparktui.commands.past import past_text


def test_nothing_yet() -> None:
    assert past_text(ProfileHistory("p")) == "Nothing has been measured with this profile yet."


def test_grid_boots_and_verdict() -> None:
    known = ProfileHistory(
        "p",
        "Turn speculation OFF: 1.89x \x1b[31mfaster",
        0.0,
        {"off": (70.4, 69.0)},
        cells={
            ("off", 1): KnownCell(71.2, 77.5, 0.0, 1),
            ("on", 1): KnownCell(38.1, None, 0.0, 1),
            ("on", 32): KnownCell(640.0, 20.0, 0.0, 2),
        },
    )
    text = past_text(known)
    assert "\x1b" not in text
    assert "Turn speculation OFF: 1.89x" in text
    grid = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith("  o")}
    assert grid["off"] == ["71.2", "(77.5)", "—"]
    assert grid["on"] == ["38.1", "(—)", "640.0", "(20.0)"]
    assert "  off: 70, 69" in text

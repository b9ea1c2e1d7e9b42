"""The wheel stands alone: installed outside the checkout it finds its profiles, rules and prompts."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout by hatchling itself."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the unpacked wheel: what an installer does with a pure one."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(installed: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, "-m", "sparktui", *args], cwd=installed, env=env, text=True, capture_output=True
    )


def test_wheel_holds_data_and_license(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    wanted = {
        "sparktui/shipped_profiles/demo.yaml",
        "sparktui/shipped_profiles/cpu-tiny.yaml",
        "sparktui/bootlog/rules/cudagraph.yaml",
        "sparktui/bootlog/asked_flags.txt",
        "sparktui/load/texts/code.txt",
        "sparktui/load/texts/prose.txt",
        "sparktui/load/texts/system.txt",
        "sparktui/py.typed",
    }
    assert wanted <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith("tests/")]


def test_installed_outside_the_checkout(installed: Path) -> None:
    where = subprocess.run(
        [sys.executable, "-c", "import sparktui; print(sparktui.__file__)"],
        cwd=installed, env={**os.environ, "PYTHONPATH": str(installed)}, text=True, capture_output=True,
    )  # fmt: skip
    assert where.stdout.strip().startswith(str(installed))
    listed = run(installed, "list")
    assert listed.returncode == 0, listed.stderr
    assert "demo" in listed.stdout
    assert "cpu-tiny" in listed.stdout
    shown = run(installed, "show", "demo:on", "--as", "argv")
    assert shown.returncode == 0, shown.stderr
    assert "--speculative-config" in shown.stdout


def test_version_and_entry_point(installed: Path, wheel: Path) -> None:
    from sparktui import __version__

    assert run(installed, "--version").stdout.strip() == f"sparktui {__version__}"
    (entry,) = [n for n in zipfile.ZipFile(wheel).namelist() if n.endswith("entry_points.txt")]
    assert "sparktui = sparktui.cli:main" in zipfile.ZipFile(wheel).read(entry).decode()

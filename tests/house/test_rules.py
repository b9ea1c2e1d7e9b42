"""Rules of the house that a machine can check."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "sparktui"
MODULES = sorted(PACKAGE.rglob("*.py"))
HEAVY = ("textual", "aiohttp", "httpx", "yaml", "prometheus_client", "psutil", "pynvml")


def imported_by(statement: str) -> set[str]:
    """Top-level names in sys.modules after running it in a fresh interpreter."""
    code = f"{statement}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(result.stdout.split())


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_module_over_350_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 350


def test_no_function_over_45_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > 45
    ]
    assert long == []


def test_nothing_outside_ui_imports_textual() -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in MODULES
        if "ui" not in path.relative_to(PACKAGE).parts and path.name != "__main__.py"
    ]
    loaded = imported_by("\n".join(f"import {name.removesuffix('.__init__')}" for name in names))
    assert "textual" not in loaded
    assert {"httpx", "aiohttp", "psutil"} <= loaded  # or the check above proves nothing


def test_command_line_starts_light() -> None:
    loaded = imported_by("from sparktui.cli import _parser; _parser(['--help'])")
    assert not loaded & set(HEAVY)


def test_judging_and_schema_need_no_network_code() -> None:
    loaded = imported_by("import sparktui.compare.report, sparktui.compare.verdict, sparktui.schema.messages")
    assert not loaded & set(HEAVY)


def test_no_shell_and_no_unsafe_yaml() -> None:
    banned = ("shell=" + "True", "os." + "system(", "yaml." + "load(", "os." + "popen(")
    found = [
        (path.name, word) for path in MODULES for word in banned if word in path.read_text(encoding="utf-8")
    ]
    assert found == []

"""The contract's own tests, run against real vLLM: conftest.py gives them another launcher, nothing else."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

import pytest

import tests.contract

pytestmark = pytest.mark.real


def _contract() -> dict[str, Callable[..., object]]:
    """Every test of every module there; no name twice."""
    found: dict[str, Callable[..., object]] = {}
    for module in pkgutil.iter_modules(tests.contract.__path__, "tests.contract."):
        if ".test_" in module.name:
            members = vars(importlib.import_module(module.name))
            new = {name: member for name, member in members.items() if name.startswith("test_")}
            assert not found.keys() & new.keys(), found.keys() & new.keys()
            found |= new
    return found


globals().update(_contract())

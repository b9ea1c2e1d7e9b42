"""What the server samples with: what we send, over what it took from the model, over its own defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparktui.schema.launch import LoadSpec
from sparktui.schema.workloads import SAMPLING, sampling

FACT = "sampling_overrides"  # of the boot log: generation_config.json, or --override-generation-config


def sampling_text(load: LoadSpec, facts: Mapping[str, Any]) -> str:
    """One line: each parameter with its origin where it isn't ours, and who decides on the rest."""
    sent = sampling(load)
    given = facts.get(FACT)
    model = given if isinstance(given, Mapping) else {}
    parts = [f"{name} {value:g}" for name, value in sent.items()]
    parts += [f"{name} {model[name]} (model's)" for name in SAMPLING if name in model and name not in sent]
    rest = "the rest is the server's own" if parts else "the server's own"
    return " · ".join([*parts, rest])

"""Cells, arms and findings for the tests of judging."""

from __future__ import annotations

from typing import Any

from sparktui.schema.live import Finding
from sparktui.schema.records import ArmReport, Batch, Cell


def batches(*rates: float, streams: int = 1, seconds: float = 5.0) -> tuple[Batch, ...]:
    """Batches of so many decode tok/s per stream; all output is decode output."""
    return tuple(
        Batch(seconds, round(rate * seconds * streams), round(rate * seconds * streams), seconds * streams)
        for rate in rates
    )


def cell(*rates: float, concurrency: int = 1, **values: Any) -> Cell:
    """A window of these batches; figures that a test doesn't name are not known."""
    made = batches(*rates, streams=concurrency)
    fields: dict[str, Any] = {
        "arm": 0, "variant": "off", "start": 0, "concurrency": concurrency, "seconds": 5.0 * len(rates),
        "batches": made, "decode_tok_s": None, "output_tok_s": None,
    }  # fmt: skip
    return Cell(**(fields | values))


def finding(
    rule: str, severity: Any = "costs speed", line: int = 1, text: str = "a line", cost: str = ""
) -> Finding:
    return Finding(rule, severity, line, text, "what it means", cost)


def arm(
    name: str,
    *cells: Cell,
    speculating: bool = False,
    findings: tuple[Finding, ...] = (),
    facts: dict[str, Any] | None = None,
    **values: Any,
) -> ArmReport:
    fields: dict[str, Any] = {
        "argv": ("vllm", "serve", "m"),
        "vllm_version": "0.27.1",
        "boot_s": 90.0,
    } | values
    return ArmReport(
        name=name, speculating=speculating, findings=findings, facts=facts or {}, cells=cells, **fields
    )

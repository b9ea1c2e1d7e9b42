"""Reads a server's log as it grows: lines, phases, findings and facts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from sparktui.bootlog.facts import read_facts
from sparktui.bootlog.lines import Line, LineSplitter
from sparktui.bootlog.phases import PhaseTracker
from sparktui.bootlog.rules import Matcher, Rule, shipped_rules
from sparktui.schema.live import BootPhase, Finding

_JIT = "kernel JIT compilation during inference"
_CPU_SIGNS = ("device_config=cpu", "CPU KV cache size:", "CPU_ATTN")
_DEVICE = "device_config="
_MOST_PER_RULE = 100  # a server that fails for days must not fill the memory


class BootReader:
    """One server start's log. ``t0`` is when the server started, on the clock of the ``t`` given to ``feed``.

    With ``t0=None`` it is the first ``t``. Phases are in seconds since ``t0``. Findings go on while the
    server serves; facts are of the boot and settle when it is ready, because later lines may quote users.
    """

    def __init__(self, t0: float | None = None, rules: tuple[Rule, ...] | None = None) -> None:
        self._t0 = t0
        self._matcher = Matcher(shipped_rules() if rules is None else rules)
        self._splitter = LineSplitter()
        self._tracker = PhaseTracker()
        self._findings: list[Finding] = []
        self._seen: set[tuple[str, str]] = set()
        self._counts: Counter[str] = Counter()
        self._unless_cpu: set[str] = set()  # ids whose severity depends on the device
        self._reported: set[int] = set()  # indices into _findings
        self._cpu: bool | None = None
        self._facts: dict[str, Any] = {}
        self.jit_lines = 0

    def feed(self, data: bytes, t: float) -> list[Line]:
        """The lines that ``data`` completes, after reading them."""
        lines = self._splitter.feed(data)
        self._read(lines, t)
        bar = self._splitter.partial_line
        if bar is not None:
            self._tracker.feed(bar, self._since(t))
        return lines

    def flush(self, t: float) -> list[Line]:
        """The log has ended: its unfinished last line, after reading it."""
        lines = self._splitter.flush()
        self._read(lines, t)
        self._cpu = bool(self._cpu)
        return lines

    def mark_ready(self, t: float) -> None:
        """The caller knows that the server answers."""
        self._tracker.ready(self._since(t))

    @property
    def ready(self) -> bool:
        return self._tracker.is_ready

    @property
    def phases(self) -> tuple[BootPhase, ...]:
        return self._tracker.phases

    @property
    def facts(self) -> dict[str, Any]:
        """A copy. Facts that the log doesn't state are absent."""
        return dict(self._facts)

    @property
    def partial(self) -> str:
        """The progress bar that is being rewritten now, or nothing."""
        return self._splitter.partial

    @property
    def findings(self) -> tuple[Finding, ...]:
        """In the log's order; a message that repeats is there once, a rule at most a hundred times."""
        return tuple(self._weighed(finding) for finding in self._findings)

    def new_findings(self) -> tuple[Finding, ...]:
        """Those not returned before. One that weighs less on a CPU waits until the log names the device."""
        known = self._cpu is not None or self.ready
        fresh = [
            index
            for index, finding in enumerate(self._findings)
            if index not in self._reported and (known or finding.id not in self._unless_cpu)
        ]
        self._reported.update(fresh)
        return tuple(self._weighed(self._findings[index]) for index in fresh)

    def _weighed(self, finding: Finding) -> Finding:
        if self._cpu and finding.id in self._unless_cpu:
            return replace(finding, severity="note")
        return finding

    def _since(self, t: float) -> float:
        if self._t0 is None:
            self._t0 = t
        return max(0.0, t - self._t0)

    def _read(self, lines: list[Line], t: float) -> None:
        since = self._since(t)
        for line in lines:
            if not self.ready:
                self._read_device(line.message)
                read_facts(line, self._facts)
            self._tracker.feed(line, since)
            if _JIT in line.message:
                self.jit_lines += 1
            self._explain(line)

    def _read_device(self, message: str) -> None:
        if self._cpu is None and any(sign in message for sign in _CPU_SIGNS):
            self._cpu = True
        elif self._cpu is None and _DEVICE in message:
            self._cpu = False

    def _explain(self, line: Line) -> None:
        for rule, finding in self._matcher.match(line):
            key = (finding.id, finding.text)
            if key in self._seen or self._counts[rule.id] >= _MOST_PER_RULE:
                continue
            self._seen.add(key)
            self._counts[rule.id] += 1
            self._findings.append(finding)
            if rule.unless_cpu:
                self._unless_cpu.add(rule.id)

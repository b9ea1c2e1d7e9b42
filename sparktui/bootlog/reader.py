"""Reads a server's log as it grows: lines, phases, findings, facts, and the engine's periodic lines."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sparktui.bootlog.asked import compare_argv
from sparktui.bootlog.context import Context
from sparktui.bootlog.derived import derived
from sparktui.bootlog.expect import Expectations
from sparktui.bootlog.facts import read_facts
from sparktui.bootlog.failure import explanation, find_failure, root_cause
from sparktui.bootlog.findings import FindingLog
from sparktui.bootlog.graphsteps import GraphTable
from sparktui.bootlog.lines import Line, LineSplitter
from sparktui.bootlog.overhead import OverheadWatch
from sparktui.bootlog.phases import PhaseTracker
from sparktui.bootlog.rules import Rule, shipped_rules
from sparktui.bootlog.stats import read_stats
from sparktui.schema.bootlog import EngineStats, SpecStats
from sparktui.schema.live import BootPhase, Expectation, Finding, GraphSteps, Silence

KEPT = 10_000  # lines for the search of a failure's cause
_STATS_KEPT = 100
_JIT = re.compile(r"\S+ (?:kernel )?JIT compilation during inference: ")
_LONGEST = 4_000  # characters of a kept line: logged requests may have 64 KiB
_ODD = (ValueError, OverflowError)  # numbers that are none, in lines that look like vLLM's


class Clock(Protocol):
    """Seconds since the log's first time stamp, for logs read from disk."""

    def read(self, line: Line) -> float: ...


class BootReader:
    """One server start's log. ``t0`` is when the server started, on the clock of the ``t`` given to ``feed``.

    With ``t0=None`` it is the first ``t``; with a ``clock`` every ``t`` comes from the lines instead. Phases
    are in seconds since ``t0``. Findings go on while the server serves; facts are of the boot and settle when
    it is ready, because later lines may quote users. ``expect``: texts that the log should hold; ``argv``:
    the command line that was started; ``gpu``: the GPU's name; ``speculating``: whether it should, if known.
    """

    def __init__(
        self,
        t0: float | None = None,
        rules: tuple[Rule, ...] | None = None,
        *,
        clock: Clock | None = None,
        expect: Sequence[str] = (),
        argv: Sequence[str] | None = None,
        gpu: str = "",
        speculating: bool | None = None,
    ) -> None:
        self._t0 = t0
        self._clock = clock
        self._now = 0.0  # by the clock
        self._argv = tuple(argv or ())
        self._splitter = LineSplitter()
        self._tracker = PhaseTracker()
        self._context = Context(gpu, speculating)
        self._rules = shipped_rules() if rules is None else rules
        self._log = FindingLog(self._rules)
        self._facts: dict[str, Any] = {}
        self._expectations = Expectations(expect)
        self._graphs = GraphTable()
        self._overhead = OverheadWatch()
        self._stats: deque[EngineStats | SpecStats] = deque(maxlen=_STATS_KEPT)
        self._kept: deque[Line] = deque(maxlen=KEPT)
        self._ended = False
        self.jit_lines = 0

    def feed(self, data: bytes, t: float = 0.0) -> list[Line]:
        """The lines that ``data`` completes, after reading them."""
        lines = self._splitter.feed(data)
        self._read(lines, t)
        bar = self._splitter.partial_line
        if bar is not None and self._clock is None:
            self._tracker.feed(bar, self._since(t))
        return lines

    def flush(self, t: float = 0.0) -> list[Line]:
        """The log has ended: its unfinished last line, after reading it."""
        lines = self._splitter.flush()
        self._read(lines, t)
        self._ended = True
        self._settle()
        return lines

    def mark_ready(self, t: float) -> None:
        """The caller knows that the server answers."""
        self._tracker.ready(self._since(t))
        self._settle()

    @property
    def ready(self) -> bool:
        return self._tracker.is_ready

    @property
    def phases(self) -> tuple[BootPhase, ...]:
        return self._tracker.phases

    def silence(self, t: float, before: Mapping[str, float]) -> Silence | None:
        """That the boot has printed nothing for a while, and why that may be; ``before``: the longest silence
        of each phase in earlier boots, in seconds."""
        return None if self._ended else self._tracker.silence(self._since(t), before)

    @property
    def facts(self) -> dict[str, Any]:
        """A copy. Facts that the log doesn't state are absent."""
        return dict(self._facts)

    @property
    def partial(self) -> str:
        """The progress bar that is being rewritten now, or nothing."""
        return self._splitter.partial

    @property
    def expected(self) -> tuple[Expectation, ...]:
        """The expected texts: unmet once the boot has ended without them."""
        return self._expectations.state(self._is_settled)

    @property
    def graph_steps(self) -> GraphSteps | None:
        """Engine steps by graph mode, of the newest table."""
        return self._graphs.steps

    @property
    def all_graph_steps(self) -> GraphSteps | None:
        """Engine steps by graph mode, of all tables."""
        return self._graphs.total

    def take_stats(self) -> tuple[EngineStats | SpecStats, ...]:
        """The periodic lines since the last call."""
        taken = tuple(self._stats)
        self._stats.clear()
        return taken

    @property
    def root_cause(self) -> str | None:
        """The first real error among the last lines."""
        return root_cause(tuple(self._kept), served=self.ready)

    @property
    def remedy(self) -> str:
        """What the rule of the root cause advises; empty when there is none."""
        failure = find_failure(tuple(self._kept), served=self.ready)
        finding = explanation(failure, self._rules) if failure else None
        return finding.remedy if finding else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Each thing once, in the order in which it was said."""
        return self._log.all(self._context)

    def new_findings(self) -> tuple[Finding, ...]:
        """Those not returned before. One whose severity depends on what isn't known yet waits for the boot's
        end."""
        return self._log.new(self._context, self._is_settled)

    @property
    def _is_settled(self) -> bool:
        return self.ready or self._ended

    def _since(self, t: float) -> float:
        if self._clock is not None:
            return self._now
        if self._t0 is None:
            self._t0 = t
        return max(0.0, t - self._t0)

    def _read(self, lines: list[Line], t: float) -> None:
        since = self._since(t)
        self._kept.extend(_brief(line) for line in lines)
        booting = not self._tracker.is_ready
        for line in lines:
            serving = not booting
            if self._clock is not None:
                since = self._now = self._clock.read(line)
            if booting:
                self._read_boot(line, since)
            else:
                self._tracker.feed(line, since)
            booting = not self._tracker.is_ready
            with contextlib.suppress(*_ODD):
                self._log.read(line, serving)
            with contextlib.suppress(*_ODD):
                self._graphs.read(line)
                self._read_running(line, since)

    def _read_boot(self, line: Line, since: float) -> None:
        self._tracker.feed(line, since)
        self._expectations.read(line)
        with contextlib.suppress(*_ODD):
            read_facts(line, self._facts)
        with contextlib.suppress(*_ODD):
            self._context.read(line)
        if self._tracker.is_ready:
            self._settle()

    def _read_running(self, line: Line, since: float) -> None:
        if _JIT.match(line.message):
            self.jit_lines += 1
        stats = read_stats(line)
        if stats is None:
            return
        self._stats.append(stats)
        finding = self._overhead.read(stats, since) if isinstance(stats, SpecStats) else None
        if finding is not None:
            self._log.add(finding)

    def _settle(self) -> None:
        """The boot has ended, one way or the other: what only the whole of it tells."""
        self._context.learn(self._facts)
        for finding in (*derived(self._facts, self._context, True), *compare_argv(self._argv, self._facts)):
            self._log.add(finding)


def _brief(line: Line) -> Line:
    """What the search for a cause needs of a line."""
    if len(line.text) <= _LONGEST:
        return line
    return dataclasses.replace(line, text=line.text[:_LONGEST], message=line.message[:_LONGEST])

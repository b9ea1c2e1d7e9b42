"""Boot logs of the stand-in without a process or a wait, and what sparktui's own reader makes of them."""

from __future__ import annotations

import io
from dataclasses import dataclass

from sparktui.bootlog.failure import root_cause
from sparktui.bootlog.reader import BootReader
from sparktui.sim import arguments
from sparktui.sim.boot import failing
from sparktui.sim.boot.facts import boot_facts
from sparktui.sim.boot.logfile import Log
from sparktui.sim.boot.script import banner, moments
from sparktui.sim.model.truth import Truth

API, ENGINE = 11, 22


@dataclass(frozen=True, slots=True)
class Boot:
    """``text``: everything logged, to the point where the boot failed if it did."""

    text: str
    failed: bool

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def read(self) -> BootReader:
        reader = BootReader(0.0)
        reader.feed(self.text.encode(), 1.0)
        reader.flush(2.0)
        return reader

    @property
    def cause(self) -> str | None:
        """What sparktui names as the reason of the failure."""
        reader = BootReader(0.0)
        return root_cause([*reader.feed(self.text.encode(), 1.0), *reader.flush(2.0)])

    @property
    def found(self) -> set[str]:
        """Ids of the rules that matched."""
        return {finding.id for finding in self.read().findings}


def boot(version: str, *args: str, truth: Truth | None = None, stream: io.StringIO | None = None) -> Boot:
    given = arguments.parse(["m", "--sim-vllm", version, *args])
    facts = boot_facts(given, truth or Truth())
    out = stream or io.StringIO()
    log = Log(out, API, ENGINE, given.release, given.engines)
    log.engine_pids = [ENGINE + rank for rank in range(given.engines)]
    banner(log, facts)
    failure = failing.boot_failure(given, facts)
    for moment in moments(facts):
        if failure is not None and moment.mark == failure.mark:
            failing.tell(log, failure)
            return Boot(out.getvalue(), True)
        moment.emit(log)
    return Boot(out.getvalue(), False)

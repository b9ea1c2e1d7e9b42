"""The runs of this user: which live, which ended, and hosts for those that lost theirs."""

from __future__ import annotations

from dataclasses import dataclass

from sparktui.client.link import ENDED, start_host
from sparktui.rundir import RunDir, RunError, all_runs
from sparktui.schema.records import RunRecord


@dataclass(frozen=True, slots=True)
class RunInfo:
    run: RunDir
    record: RunRecord
    hosted: bool

    @property
    def live(self) -> bool:
        return self.record.state not in ENDED

    @property
    def state(self) -> str:
        """The state, or that it has lost its host."""
        return self.record.state if self.hosted or not self.live else "no host"


def listed() -> list[RunInfo]:
    """Every readable run, newest first; unreadable ones are left out."""
    found = []
    for run in all_runs():
        try:
            record = run.record()
        except RunError:
            continue
        found.append(RunInfo(run, record, record.state not in ENDED and run.has_host()))
    return sorted(found, key=lambda info: info.record.created, reverse=True)


def adopt_unhosted() -> list[RunInfo]:
    """Start a host for each living run that has none. Those runs."""
    lost = [info for info in listed() if info.live and not info.hosted]
    for info in lost:
        start_host(info.run)
    return lost

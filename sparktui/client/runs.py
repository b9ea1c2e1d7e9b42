"""The runs of this user: which live, which ended, and hosts for those that lost theirs."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass

from sparktui.client.link import ENDED, start_host
from sparktui.rundir import RunDir, RunError, all_runs
from sparktui.schema.records import RunRecord

_UNBORN_S = 30.0  # a client needs seconds at most to start its host


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
    """Start a host for each living run that lost the one it had: it adopts the server that lives, or closes
    the run. A run that never had a host (its client died first) is closed here: looking starts no server."""
    lost = [info for info in listed() if info.live and not info.hosted]
    for info in lost:
        if info.record.host is not None:
            start_host(info.run)
        elif time.time() - info.record.created > _UNBORN_S:
            reason = "its client ended before it had a host"
            info.run.write(dataclasses.replace(info.record, state="failed", reason=reason, ended=time.time()))
    return lost

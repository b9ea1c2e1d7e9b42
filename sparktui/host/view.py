"""The snapshot: state of a run at one instant, from everything the host knows."""

from __future__ import annotations

import dataclasses
import time

from sparktui.gpu.memory import host_memory
from sparktui.host.desk import Desk
from sparktui.host.journal import Journal
from sparktui.host.rig import Rig
from sparktui.schema.codec import SCHEMA_VERSION
from sparktui.schema.live import ServerView, Snapshot


class Viewer:
    """Makes snapshots, numbered."""

    def __init__(self, run_id: str, rig: Rig, journal: Journal, desk: Desk) -> None:
        self._run_id = run_id
        self._rig = rig
        self._journal = journal
        self._desk = desk
        self._seq = 0

    def _server(self) -> ServerView:
        """Whether it speculates is what its counters say, as soon as they say anything."""
        view, page = self._rig.owner.view, self._rig.live.scrapes.last
        if page is None or view.state != "ready":
            return view
        return dataclasses.replace(view, speculating=page.speculating)

    def snapshot(self) -> Snapshot:
        """Now. The seq rises by one each time."""
        self._seq += 1
        owner = self._rig.owner
        tail = owner.tail
        return Snapshot(
            schema=SCHEMA_VERSION,
            seq=self._seq,
            t=time.time(),
            run_id=self._run_id,
            server=self._server(),
            load=self._rig.live.load_view(),
            figures=self._rig.live.figures(),
            phases=tail.reader.phases if tail else (),
            gpus=self._rig.gpu.latest,
            memory=host_memory(),
            experiment=self._desk.experiment.view() if self._desk.experiment else None,
            driver=self._desk.driver,
            log_lines=owner.ring.count,
            findings=len(tail.findings) if tail else 0,
            events=len(self._journal.events),
        )

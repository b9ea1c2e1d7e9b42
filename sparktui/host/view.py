"""The snapshot: state of a run at one instant, from everything the host knows."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from sparktui.gpu.memory import host_memory
from sparktui.host.desk import Desk
from sparktui.host.journal import Journal
from sparktui.host.rig import Rig
from sparktui.host.sampling import sampling_text
from sparktui.host.tail import Tail
from sparktui.schema.codec import SCHEMA_VERSION
from sparktui.schema.live import GpuView, LoadView, ServerView, Silence, Snapshot


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
        return dataclasses.replace(view, speculating=page.speculating, stalled_s=self._rig.live.stalled_s)

    def _load(self) -> LoadView:
        tail, load = self._rig.owner.tail, self._rig.load
        return dataclasses.replace(
            self._rig.live.load_view(),
            workload=load.workload,
            sampling=sampling_text(load, tail.reader.facts if tail else {}),
        )

    def _silence(self) -> Silence | None:
        owner = self._rig.owner
        if owner.tail is None or owner.spec is None or owner.view.state != "booting":
            return None
        return owner.tail.silence(owner.spec.quiet_s)

    def snapshot(self) -> Snapshot:
        """Now. The seq rises by one each time."""
        self._seq += 1
        owner, gpus = self._rig.owner, self._rig.gpu.latest
        return Snapshot(
            schema=SCHEMA_VERSION,
            seq=self._seq,
            t=time.time(),
            run_id=self._run_id,
            server=self._server(),
            load=self._load(),
            figures=self._rig.live.figures(),
            gpus=gpus,
            memory=host_memory(),
            experiment=self._desk.experiment.view() if self._desk.experiment else None,
            driver=self._desk.driver,
            log_lines=owner.ring.count,
            events=len(self._journal.events),
            **(_of_log(owner.tail) if owner.tail else {}),
            silence=self._silence(),
            gpu_age_s=self._rig.gpu.age_s(),
            gpu_problem=self._rig.gpu.problem,
            server_gpu_mib=memory_of(gpus, owner.pids),
        )


def memory_of(gpus: tuple[GpuView, ...], pids: frozenset[int]) -> float | None:
    """MiB that these processes hold on all GPUs; None where the driver names none of them."""
    used = [process.used_mib for gpu in gpus for process in gpu.processes if process.pid in pids]
    return sum(used) if used else None


def _of_log(tail: Tail) -> dict[str, Any]:
    """The fields that server.log states."""
    findings = tail.findings
    return {
        "phases": tail.reader.phases,
        "findings": len(findings),
        "expected": tail.expected,
        "graph_steps": tail.reader.graph_steps,
        "log_partial": tail.reader.partial,
        "repeats": {f.id: f.count for f in findings if f.count > 1},
    }

"""Owning the server of a run: preflight, start or adopt, watch, readiness, stop; all of it on record."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

import httpx

from sparktui.bootlog.clock import LogClock
from sparktui.bootlog.lines import LineSplitter
from sparktui.bootlog.reader import BootReader
from sparktui.bootlog.rules import Rule, RuleError, load_user_rules, rules_folder, shipped_rules
from sparktui.host.journal import Journal
from sparktui.host.tail import LogRing, Tail
from sparktui.rundir import RunDir
from sparktui.schema.bootlog import EngineStats, SpecStats
from sparktui.schema.launch import LaunchSpec
from sparktui.schema.live import ServerView
from sparktui.schema.records import ServerRecord
from sparktui.schema.text import printable
from sparktui.server import local, port, ready
from sparktui.server.process import alive, descendants, living, name_of, reap_strangers, reference
from sparktui.server.stop import Stopped, stop

_WATCH_S = 0.1
_FOREIGN_LOOK_S, _SILENT_LOOKS = 2.0, 3
_TREE_EVERY = 5  # looks at the log between two looks at the process tree


class BootFailed(Exception):
    """The server will not serve; the text is the root cause as far as it is known."""


class Owner:
    """At most one server at a time. ``died`` is set when it ends without being asked to."""

    def __init__(self, run: RunDir, journal: Journal, http: httpx.AsyncClient) -> None:
        self._run = run
        self._journal = journal
        self._http = http
        self._popen: subprocess.Popen[bytes] | None = None
        self._record: ServerRecord | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._stopping = False
        self.helpers: Callable[[], tuple[int, ...]] = lambda: ()  # pids of ours that others wait for
        self.gpu_name: Callable[[], str] = lambda: ""
        self.on_stats: Callable[[EngineStats | SpecStats], None] = lambda stats: None
        self.ring = LogRing()
        self.tail: Tail | None = None
        self.spec: LaunchSpec | None = None
        self.view = ServerView()
        self.died = asyncio.Event()

    @property
    def foreign(self) -> bool:
        """A server that somebody else started: watched, never stopped."""
        return self.spec is not None and self.spec.runner == "attach"

    @property
    def lives(self) -> bool:
        if self.foreign:
            return self._watcher is not None and not self.died.is_set()
        return self._record is not None and self._record.ended is None and alive(self._record.process)

    @property
    def pids(self) -> frozenset[int]:
        """Every process that was seen of this server, living or not."""
        record = self._record
        return frozenset((record.process.pid, *(p.pid for p in record.tree))) if record else frozenset()

    @property
    def arm(self) -> int | None:
        """Index into the plan's arms of the server on record."""
        return self._record.arm if self._record else None

    async def launch(self, spec: LaunchSpec, arm: int) -> None:
        """Start ``spec``. Raises BootFailed when it can't even start."""
        self.spec, self.tail = spec, None
        self.died.clear()
        self._set(state="booting", variant=spec.variant, speculating=spec.speculating, url=spec.url, pid=None,
                  boot_s=None, version=None, exit_code=None, reason="")  # fmt: skip
        if self.foreign:
            self._watcher = asyncio.create_task(self._watch_foreign(spec))
            return
        if not port.is_free(spec.host, spec.port):
            who = port.holder(spec.port)
            raise BootFailed(self._fail(f"port {spec.port} is taken" + (f" by {who}" if who else "")))
        log = self._run.log
        offset = log.stat().st_size if log.exists() else 0
        try:
            self._popen = local.start(spec, log, os.environ)
        except local.LaunchError as exc:
            raise BootFailed(self._fail(str(exc))) from None
        process = reference(self._popen.pid)
        if process is None:
            raise BootFailed(self._fail("the server ended at once"))
        record = ServerRecord(process, arm, spec.host, spec.port, time.time(), offset, self.ring.count)
        self._keep(record)
        self._journal.add(
            "server",
            f"{spec.variant}: started, pid {process.pid}",
            data={"started": spec.variant, "argv": list(spec.argv)},
        )
        self._watch(record)

    def adopt(self, spec: LaunchSpec, record: ServerRecord) -> None:
        """Take over a server that an earlier host left alive. Its exit code can't be known."""
        self.spec, self._popen = spec, None
        self.died.clear()
        self._set(state="booting", variant=spec.variant, speculating=spec.speculating, url=spec.url,
                  pid=record.process.pid, exit_code=None, reason="")  # fmt: skip
        self._journal.add(
            "host", f"{spec.variant}: adopted, pid {record.process.pid}", data={"adopted": spec.variant}
        )
        self._record = record
        self._watch(record, LogClock())

    def read_old_log(self, upto: int) -> None:
        """Lines of earlier boots, for the ring and its numbers."""
        if upto:
            with self._run.log.open("rb") as file:
                for line in LineSplitter().feed(file.read(upto)):
                    self.ring.add(line.text)

    def _watch(self, record: ServerRecord, clock: LogClock | None = None) -> None:
        """``clock``: for a boot that this host did not see from its start."""
        self.tail = Tail(self._run.log, self.ring, record.log_offset, record.log_line, self._reader(clock))
        self._set(pid=record.process.pid)
        self._stopping = False
        self._watcher = asyncio.create_task(self._watch_or_fail(self.tail))

    def _reader(self, clock: LogClock | None) -> BootReader:
        """Reads the log of the server that was just started or adopted."""
        assert self.spec is not None
        return BootReader(
            time.monotonic(),
            self._rules(),
            clock=clock,
            expect=self.spec.expect,
            argv=self.spec.argv,
            gpu=self.gpu_name(),
            speculating=self.spec.speculating,
        )

    def _rules(self) -> tuple[Rule, ...]:
        """With the user's own, which may have been changed since this run began."""
        try:
            return load_user_rules(rules_folder())
        except RuleError as exc:
            self._journal.add("note", f"your rules are left out: {exc}", "warning")
            return shipped_rules()

    async def wait_ready(self) -> ready.Answer:
        """Until it serves our model. Raises BootFailed with the root cause from its log."""
        assert self.spec is not None
        try:
            answer = await ready.wait_ready(self._http, self.spec, lambda: self.died.is_set())
        except ready.NotReady as exc:
            reason = self.view.reason if self.died.is_set() else self._fail(str(exc))
            raise BootFailed(reason) from None
        if self._record is not None and not port.listens(self.spec.port, self._pids()):
            who = port.holder(self.spec.port) or "somebody else"
            raise BootFailed(self._fail(f"{who} answers on port {self.spec.port}, not this server"))
        if self.tail:
            self.tail.poll()
            self.tail.reader.mark_ready(time.monotonic())
        seconds = time.time() - self._record.started if self._record and self._popen else None
        self._set(state="ready", boot_s=seconds, version=answer.version)
        self._tell_ready(self.spec, seconds)
        expected = self.spec.expected_version
        if expected and answer.version and not answer.version.startswith(expected):
            self._journal.add("note", f"vLLM is {answer.version}, the profile expects {expected}", "warning")
        return answer

    def _pids(self) -> set[int]:
        """Every living process of this server."""
        record = self._record
        return {p.pid for p in living(record.process, record.tree)} if record else set()

    def _tell_ready(self, spec: LaunchSpec, seconds: float | None) -> None:
        """With what a later boot is compared with; only a boot that this host saw from its start counts."""
        if seconds is None:
            how = f"attached at {spec.url}" if self.foreign else "ready"
            self._journal.add("server", f"{spec.variant}: {how}")
            return
        data: dict[str, Any] = {"variant": spec.variant, "boot_s": seconds, "phases": []}
        if self.tail is not None:
            data["phases"] = [dataclasses.asdict(phase) for phase in self.tail.reader.phases]
            data["facts"] = self.tail.reader.facts
            data["expected"] = [dataclasses.asdict(e) for e in self.tail.expected]
        self._journal.add("server", f"{spec.variant}: ready after {seconds:.1f} s", data=data)

    async def stop(self) -> Stopped | None:
        """End it, verified; None when there was none. Our own streams must be closed before."""
        record = self._record
        if self.foreign:
            await self._end_watch()
            self._journal.add("server", "left running: sparktui did not start it")
            self._set(state="stopped")
            return None
        if record is None:
            return None
        self._stopping = True
        if self.lives:
            self._set(state="stopping")
        self._see_tree()
        stopped = await stop(
            record.process, (self._record or record).tree, record.host, record.port, reap=self._reap
        )
        await self._end_watch()
        if self.tail is not None:
            self.tail.finish()
        self._ended()
        self._tell_stop(stopped)
        if self.view.state != "failed":
            self._set(state="stopped", pid=None)
        return stopped

    async def _end_watch(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watcher

    def _tell_stop(self, stopped: Stopped) -> None:
        left = ", ".join(f"{name_of(p)} (pid {p.pid})" for p in stopped.left)
        if left:
            self._journal.add("server", f"still alive after SIGKILL: {left}", "error")
        elif not stopped.port_free:
            self._journal.add("server", "the server is gone, its port is not free", "warning")
        elif stopped.by:
            self._journal.add("server", f"stopped by {stopped.by} in {stopped.seconds:.1f} s, nothing left")

    async def _watch_or_fail(self, tail: Tail) -> None:
        try:
            await self._watching(tail)
        except Exception as exc:  # an unwatched server is as good as a dead one
            self._fail(f"internal error while watching: {type(exc).__name__}: {exc}")
            self.died.set()

    async def _watch_foreign(self, spec: LaunchSpec) -> None:
        """Its death shows only in its silence."""
        silent = 0
        while silent < _SILENT_LOOKS:
            await asyncio.sleep(_FOREIGN_LOOK_S)
            silent = 0 if await ready.healthy(self._http, spec.url) else silent + 1
        self._fail(f"no answer at {spec.url} any more")
        self.died.set()

    async def _watching(self, tail: Tail) -> None:
        looks = 0
        while True:
            tail.poll()
            for finding in tail.new_findings():
                self._journal.add_finding(finding)
            for stats in tail.reader.take_stats():
                self.on_stats(stats)
            self._reap()
            if looks % _TREE_EVERY == 0:
                self._see_tree()
            looks += 1
            if not self.lives and not self._stopping and not self.died.is_set():
                tail.finish()
                self._ended()
                self._fail(tail.root_cause() or self._how_it_ended())
                self.died.set()
            await asyncio.sleep(_WATCH_S)

    def _reap(self) -> None:
        own = self.helpers()
        if self._popen is not None:
            self._popen.poll()
            own += (self._popen.pid,)
        reap_strangers(own)

    def _see_tree(self) -> None:
        """Remember descendants while they can be found: after reparenting they can't."""
        record = self._record
        if record is None or record.ended is not None:
            return
        known = {(p.pid, p.start_time): p for p in record.tree}
        new = [p for p in descendants(record.process) if (p.pid, p.start_time) not in known]
        if new:
            self._keep(dataclasses.replace(record, tree=(*record.tree, *new)))

    def _ended(self) -> None:
        record = self._record
        if record is None or record.ended is not None:
            return
        code = self._popen.poll() if self._popen is not None else None
        self._keep(dataclasses.replace(record, exit_code=code, ended=time.time()))
        self._set(exit_code=code, pid=None)

    def _how_it_ended(self) -> str:
        code = self.view.exit_code
        if code is None:
            return "the server ended (exit code unknown: an earlier host started it)"
        if code < 0:
            return f"the server was killed by signal {-code}"
        words = self.tail.last_words() if self.tail and code else ""
        return f"the server ended with exit code {code}" + (f": {words}" if words else "")

    def _keep(self, record: ServerRecord) -> None:
        self._record = record
        self._run.write(dataclasses.replace(self._run.record(), server=record))

    def _fail(self, reason: str) -> str:
        reason = printable(reason)
        self._set(state="failed", reason=reason)
        self._journal.add("server", f"{self.view.variant}: {reason}", "error")
        return reason

    def _set(self, **changes: object) -> None:
        changes.setdefault("since", time.time())
        self.view = dataclasses.replace(self.view, **changes)  # type: ignore[arg-type]
        self._journal.pulse.beat()

"""Processes by pid *and* start time, and every process that belongs to a server."""

from __future__ import annotations

import os
from collections.abc import Iterable

import psutil

from sparktui.schema.records import ProcessRef

_SAME_START_S = 1.5  # the kernel counts from boot, and the boot time is rounded


def reference(pid: int) -> ProcessRef | None:
    """The process that has this pid now, or None."""
    try:
        return ProcessRef(pid, psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def alive(process: ProcessRef) -> bool:
    """Whether that very process runs (a zombie doesn't)."""
    try:
        found = psutil.Process(process.pid)
        same = abs(found.create_time() - process.start_time) < _SAME_START_S
        return same and found.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def descendants(process: ProcessRef) -> tuple[ProcessRef, ...]:
    """Children, their children and so on, as long as the process lives to be asked about."""
    if not alive(process):
        return ()
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return ()
    return tuple(found for child in children if (found := reference(child.pid)))


def session_members(leader: ProcessRef) -> tuple[ProcessRef, ...]:
    """Processes in the session that ``leader`` began, also after its death.

    The kernel doesn't reuse the leader's pid while its session has members, so a living process of that
    pid with another start time means that the session is gone.
    """
    now = reference(leader.pid)
    if now is not None and abs(now.start_time - leader.start_time) >= _SAME_START_S:
        return ()
    members = []
    for pid in psutil.pids():
        try:
            inside = os.getsid(pid) == leader.pid
        except OSError:
            continue
        if inside and (found := reference(pid)) and alive(found):
            members.append(found)
    return tuple(members)


def living(leader: ProcessRef, tree: Iterable[ProcessRef]) -> tuple[ProcessRef, ...]:
    """All that is left of a server: its session, and descendants seen earlier that left the session."""
    found = {member.pid: member for member in session_members(leader)}
    found |= {p.pid: p for p in (leader, *tree) if p.pid not in found and alive(p)}
    return tuple(found.values())


def name_of(process: ProcessRef) -> str:
    """Name for messages; empty when it is gone."""
    try:
        return psutil.Process(process.pid).name()
    except psutil.Error:
        return ""


def reap_strangers(own: Iterable[int]) -> None:
    """Collect dead orphans that a subreaper inherited; ``own`` are pids whose status others wait for."""
    kept = set(own)
    for child in psutil.Process().children():
        try:
            if child.pid not in kept and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)
        except (psutil.Error, ChildProcessError):
            continue

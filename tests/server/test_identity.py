"""Processes by pid and start time, and everything that belongs to a server."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys

import psutil

from sparktui.schema.records import ProcessRef
from sparktui.server.process import alive, descendants, living, name_of, reference, session_members
from tests.server.processes import POLITE, Nursery, child_of, until


def aged(process: ProcessRef, seconds: float) -> ProcessRef:
    return dataclasses.replace(process, start_time=process.start_time + seconds)


def test_a_child_is_known_while_it_lives(nursery: Nursery) -> None:
    leader = nursery.lead(POLITE)
    assert leader.ref.pid == leader.process.pid
    assert leader.ref.start_time == psutil.Process(leader.process.pid).create_time()
    assert alive(leader.ref)
    assert name_of(leader.ref) == psutil.Process(leader.process.pid).name() != ""
    leader.kill()
    assert not alive(leader.ref)
    assert reference(leader.ref.pid) is None
    assert name_of(leader.ref) == ""


def test_a_pid_of_another_start_is_another_process(nursery: Nursery) -> None:
    leader = nursery.lead(child_of("") + POLITE)
    for other in (aged(leader.ref, -100.0), aged(leader.ref, 2.0)):
        assert not alive(other)
        assert descendants(other) == ()
        assert session_members(other) == ()
        assert living(other, (other,)) == ()
    assert nursery.child(leader) in session_members(leader.ref)


def test_a_boot_time_that_was_rounded_does_not_matter(nursery: Nursery) -> None:
    leader = nursery.lead(POLITE)
    assert alive(aged(leader.ref, 1.0))
    assert alive(aged(leader.ref, -1.0))


def test_a_zombie_is_not_alive(nursery: Nursery) -> None:
    leader = nursery.lead(POLITE)
    os.kill(leader.ref.pid, signal.SIGKILL)  # and its status is not collected
    until(lambda: psutil.Process(leader.ref.pid).status() == psutil.STATUS_ZOMBIE, "a zombie")
    assert reference(leader.ref.pid) == leader.ref
    assert not alive(leader.ref)
    assert session_members(leader.ref) == ()
    assert living(leader.ref, (leader.ref,)) == ()


def test_descendants_are_found_at_any_depth(nursery: Nursery) -> None:
    leader = nursery.lead(child_of(child_of("")) + POLITE)
    child = nursery.child(leader)
    found = descendants(leader.ref)
    assert child in found
    (grandchild,) = descendants(child)
    assert set(found) == {child, grandchild}
    assert descendants(grandchild) == ()


def test_a_session_outlives_its_leader(nursery: Nursery) -> None:
    leader = nursery.lead(child_of(child_of("")) + POLITE)
    child = nursery.child(leader)
    (grandchild,) = descendants(child)
    assert set(session_members(leader.ref)) == {leader.ref, child, grandchild}
    leader.kill()
    assert descendants(leader.ref) == ()
    assert set(session_members(leader.ref)) == {child, grandchild}
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: not alive(child), "the child's end")
    assert session_members(leader.ref) == (grandchild,)
    assert living(leader.ref, ()) == (grandchild,)


def test_a_child_that_left_the_session_is_found_by_the_tree_seen_before(nursery: Nursery) -> None:
    leader = nursery.lead(child_of("", own_session=True) + POLITE)
    child = nursery.child(leader)
    tree = descendants(leader.ref)
    assert tree == (child,)
    leader.kill()
    assert session_members(leader.ref) == ()
    assert living(leader.ref, ()) == ()
    assert living(leader.ref, tree) == (child,)
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: living(leader.ref, tree) == (), "the child's end")


def test_nothing_is_counted_twice(nursery: Nursery) -> None:
    leader = nursery.lead(child_of("") + POLITE)
    child = nursery.child(leader)
    found = living(leader.ref, (leader.ref, child, child))
    assert sorted(p.pid for p in found) == sorted((leader.ref.pid, child.pid))


REAPER = """
import os, subprocess, sys, time
import psutil
from sparktui.server.local import become_subreaper
from sparktui.server.process import reap_strangers

def zombie(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)

assert become_subreaper()
own = subprocess.Popen(["true"])
middle = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!"], stdout=subprocess.PIPE)
orphan = int(middle.stdout.readline())
middle.wait()
until(lambda: psutil.Process(orphan).ppid() == os.getpid())
os.kill(orphan, 9)
until(lambda: zombie(orphan) and zombie(own.pid))
reap_strangers([own.pid])
print(zombie(orphan), zombie(own.pid), own.wait())
"""


def test_a_subreaper_inherits_orphans_and_collects_only_strangers() -> None:
    argv = [sys.executable, "-c", REAPER]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("False True 0\n", "")

"""Stopping for good: gently where that is enough, and nothing is left."""

from __future__ import annotations

import dataclasses
import os
import socket
from typing import Any

import pytest

from sparktui.schema.records import ProcessRef
from sparktui.server.process import alive, descendants, living
from sparktui.server.stop import Patience, Stopped, stop
from tests.server.processes import IGNORES_BOTH, IGNORES_INT, POLITE, Leader, Nursery, child_of

SHORT = Patience(interrupt_s=0.4, terminate_s=0.4, kill_s=10.0, orphan_s=0.4)
LONG = Patience(interrupt_s=60.0, terminate_s=60.0, kill_s=10.0, orphan_s=0.4)


async def stopped(
    leader: Leader, port: int, patience: Patience, tree: tuple[ProcessRef, ...] = ()
) -> Stopped:
    return await stop(leader.ref, tree, "127.0.0.1", port, patience=patience, reap=leader.reap)


@pytest.mark.parametrize(
    ("manners", "patience", "by", "at_least"),
    [
        (POLITE, LONG, "SIGINT", 0.0),
        (IGNORES_INT, SHORT, "SIGTERM", 0.4),
        (IGNORES_BOTH, SHORT, "SIGKILL", 0.8),
    ],
    ids=["polite", "ignores SIGINT", "ignores both"],
)
async def test_signals_escalate_only_as_far_as_needed(
    nursery: Nursery, free: int, manners: str, patience: Patience, by: str, at_least: float
) -> None:
    leader = nursery.lead(manners)
    result = await stopped(leader, free, patience)
    assert (result.by, result.left, result.port_free) == (by, (), True)
    assert at_least <= result.seconds < at_least + 10
    assert not alive(leader.ref)
    assert leader.process.returncode is not None


async def test_a_polite_server_takes_its_children_along(nursery: Nursery, free: int) -> None:
    leader = nursery.lead(child_of(POLITE) + POLITE)
    child = nursery.child(leader)
    result = await stopped(leader, free, LONG)
    assert (result.by, result.left) == ("SIGINT", ())
    assert not alive(child)


async def test_orphans_of_a_killed_leader_go_without_the_long_wait(nursery: Nursery, free: int) -> None:
    leader = nursery.lead(child_of(IGNORES_INT) + POLITE)
    child = nursery.child(leader)
    leader.kill()
    assert alive(child)
    result = await stopped(leader, free, LONG)
    assert (result.by, result.left) == ("SIGTERM", ())
    assert 0.4 <= result.seconds < 10
    assert not alive(child)


async def test_a_child_that_outlives_its_leader_is_not_given_the_long_wait(
    nursery: Nursery, free: int
) -> None:
    leader = nursery.lead(child_of(IGNORES_BOTH) + POLITE)
    child = nursery.child(leader)
    result = await stopped(leader, free, LONG)
    assert (result.by, result.left) == ("SIGKILL", ())
    assert 0.4 <= result.seconds < 10
    assert not alive(child)


async def test_a_child_in_a_session_of_its_own_goes_by_the_tree(nursery: Nursery, free: int) -> None:
    leader = nursery.lead(child_of(POLITE, own_session=True) + POLITE)
    child = nursery.child(leader)
    tree = descendants(leader.ref)
    leader.kill()
    result = await stopped(leader, free, LONG, tree)
    assert (result.by, result.left) == ("SIGINT", ())
    assert not alive(child)


async def test_where_nothing_runs_no_signal_is_needed(nursery: Nursery, free: int) -> None:
    leader = nursery.lead(POLITE)
    leader.kill()
    result = await stopped(leader, free, LONG)
    assert (result.by, result.left, result.port_free) == ("", (), True)
    assert result.seconds < 5


async def test_a_process_that_got_the_pid_of_ours_is_left_alone(nursery: Nursery, free: int) -> None:
    innocent = nursery.lead(POLITE)
    ours = dataclasses.replace(innocent.ref, start_time=innocent.ref.start_time - 1000)
    result = await stop(ours, (ours,), "127.0.0.1", free, patience=SHORT)
    assert (result.by, result.left) == ("", ())
    assert innocent.process.poll() is None


async def test_what_may_not_be_signalled_is_reported_as_left(
    nursery: Nursery, free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = nursery.lead(POLITE)

    def refuse(*_: Any) -> None:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "kill", refuse)
        result = await stopped(leader, free, Patience(0.05, 0.05, 0.05, 0.05))
    assert (result.by, result.left) == ("SIGKILL", (leader.ref,))
    assert living(leader.ref, ()) == (leader.ref,)


async def test_a_port_that_somebody_still_holds_is_said(nursery: Nursery, held: socket.socket) -> None:
    leader = nursery.lead(POLITE)
    result = await stopped(leader, held.getsockname()[1], LONG)
    assert (result.by, result.left, result.port_free) == ("SIGINT", (), False)

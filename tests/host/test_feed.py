"""The socket: what clients are told, what they may ask, and who may connect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sparktui.bootlog.reader import BootReader
from sparktui.client.link import HostGone, Link
from sparktui.host.feed import Feed
from sparktui.host.journal import Journal
from sparktui.host.tail import RING, LogRing, Tail
from sparktui.rundir import RunDir
from sparktui.schema.codec import SCHEMA_VERSION, SchemaError
from sparktui.schema.live import Figures, LoadView, ServerView, Snapshot
from sparktui.schema.messages import (
    EventMessage,
    Finished,
    Hello,
    LogLines,
    Problem,
    SetLoad,
    SnapshotMessage,
    Subscribe,
    to_line,
)


class Served:
    """A feed with a journal and a ring, on a socket in a folder as deep as users' are."""

    def __init__(self, folder: Path) -> None:
        self.run = RunDir(folder)
        self.journal = Journal(self.run.events)
        self.ring = LogRing()
        self.intents: list[Any] = []
        self.seq = 0
        self.gone: list[int] = []
        self.feed = Feed(self.run, self.journal, self.ring, self.snapshot, self)

    def snapshot(self) -> Snapshot:
        self.seq += 1
        return Snapshot(SCHEMA_VERSION, self.seq, 0.0, "r", ServerView(), LoadView(), Figures(5.0))

    async def take(self, client: int, intent: Any) -> None:
        if intent == SetLoad(13):
            raise ValueError("not thirteen")
        self.intents.append(intent)

    def left(self, client: int) -> None:
        self.gone.append(client)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    folder = tmp_path / ("deep" * 20) / ("deeper" * 10)
    folder.mkdir(parents=True)
    made = Served(folder)
    await made.feed.open()
    yield made
    await made.feed.close(Finished("done", ""))
    made.journal.close()


async def next_of(link: Link, kind: type) -> Any:
    while True:
        message = await asyncio.wait_for(link.receive(), 10)
        if isinstance(message, kind):
            return message


async def test_events_come_from_the_cursor_on_and_as_they_happen(served: Served) -> None:
    served.journal.add("note", "one")
    served.journal.add("note", "two")
    link = await Link.open(served.run, Subscribe(events_from=1, snapshots=False))
    assert (await next_of(link, EventMessage)).event.text == "two"
    served.journal.add("note", "three")
    assert (await next_of(link, EventMessage)).event.text == "three"
    await link.close()


async def test_log_lines_come_in_increments_with_their_numbers(served: Served) -> None:
    for number in range(2500):
        served.ring.add(f"line {number + 1}")
    link = await Link.open(served.run, Subscribe(log_from=10, snapshots=False))
    got: list[str] = []
    first = None
    while len(got) < 2490:
        message = await next_of(link, LogLines)
        first = first or message.first
        got += message.lines
    assert first == 11
    assert got[0] == "line 11"
    assert got[-1] == "line 2500"
    await link.close()


async def test_two_clients_get_snapshots_and_one_leaving_disturbs_nobody(served: Served) -> None:
    one = await Link.open(served.run, Subscribe())
    two = await Link.open(served.run, Subscribe())
    await next_of(one, SnapshotMessage)
    await one.close()
    first = (await next_of(two, SnapshotMessage)).snapshot.seq
    assert (await next_of(two, SnapshotMessage)).snapshot.seq > first
    await two.close()


async def test_intents_arrive_and_a_refused_one_is_told(served: Served) -> None:
    link = await Link.open(served.run, Subscribe(snapshots=False))
    await link.send(SetLoad(4))
    await link.send(SetLoad(13))
    assert (await next_of(link, Problem)).error == "not thirteen"
    assert served.intents == [SetLoad(4)]
    await link.close()


async def test_nonsense_gets_a_problem_and_hurts_nobody(served: Served) -> None:
    with served.run.socket_address() as address:
        reader, writer = await asyncio.open_unix_connection(address)
    writer.write(b"GET / HTTP/1.1\r\n")
    assert b"Hello" in await reader.readline()
    assert b"Problem" in await reader.readline()
    assert await reader.read() == b""
    writer.close()
    link = await Link.open(served.run, Subscribe())
    await next_of(link, SnapshotMessage)
    await link.close()


async def test_finished_is_the_last_word(served: Served) -> None:
    link = await Link.open(served.run, Subscribe(snapshots=False))
    closing = asyncio.create_task(served.feed.close(Finished("stopped", "asked to")))
    assert await next_of(link, Finished) == Finished("stopped", "asked to")
    with pytest.raises(HostGone):
        await link.receive()
    await link.close()
    await closing


async def test_another_version_is_refused_plainly(tmp_path: Path) -> None:
    run = RunDir(tmp_path)

    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(to_line(Hello("r", 1, 1, schema=SCHEMA_VERSION + 1)))
        await reader.read()
        writer.close()

    with run.socket_address() as address:
        server = await asyncio.start_unix_server(old, address)
    with pytest.raises(SchemaError, match="another version"):
        await Link.open(run, Subscribe())
    server.close()


async def test_no_host_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(HostGone, match="no host answers"):
        await Link.open(RunDir(tmp_path), Subscribe())


def test_journal_goes_on_where_a_killed_host_stopped(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    first = Journal(path)
    first.add("note", "one")
    first.add("note", "two")
    first.close()
    with path.open("ab") as file:
        file.write(b'{"seq":3,"t":1.0,"kind":"no')  # cut short by a kill
    second = Journal(path)
    assert second.add("note", "three").seq == 3
    second.close()
    assert [event.text for event in Journal(path).events] == ["one", "two", "three"]


def test_ring_is_bounded_and_keeps_its_numbers() -> None:
    ring = LogRing()
    for number in range(RING + 500):
        ring.add(str(number + 1))
    first, lines = ring.after(0, most=3)
    assert (first, lines) == (501, ("501", "502", "503"))


def test_tail_numbers_findings_over_the_whole_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    before = "an earlier boot\n" * 7
    recorded = Path(__file__).parents[1] / "fixtures/vllm-0.24.0-h200-flashinfer/boot_fi_ngram.log"
    log.write_bytes(before.encode() + recorded.read_bytes())
    ring = LogRing()
    for _ in range(7):
        ring.add("an earlier boot")
    tail = Tail(log, ring, len(before), 7, BootReader(0.0))
    tail.poll()
    tail.finish()
    (downgrade,) = [finding for finding in tail.findings if finding.id == "cg-spec-piecewise"]
    assert downgrade.line == 34 + 7
    assert "setting cudagraph_mode=PIECEWISE" in ring.after(downgrade.line - 1, most=1)[1][0]

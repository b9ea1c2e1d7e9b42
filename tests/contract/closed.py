"""A closed run of our own load process: from idle to idle, nothing cut."""

from __future__ import annotations

from sparktui.host.loader import Loader
from sparktui.schema.launch import LoadSpec
from sparktui.schema.messages import LoadConfig, LoadTarget, LoadTotals
from sparktui.schema.records import RequestRow
from tests.contract.page import Counts, counts, settled
from tests.contract.server import Server

SERVED = "tiny"


async def closed_run(
    server: Server, spec: LoadSpec, streams: int, requests: int
) -> tuple[list[RequestRow], LoadTotals, Counts]:
    """At least so many requests: their rows, the last totals, and how the server's counters moved."""
    rows: list[RequestRow] = []
    loader = Loader(rows.append, lambda totals: None)
    before = counts(server)
    await loader.start(LoadConfig(server.url, SERVED, spec, f"closed {server.port}"), server.key)
    try:
        await loader.aim(LoadTarget(streams))
        while (totals := await loader.next_totals()).done + totals.in_flight < requests:
            pass
        await loader.aim(LoadTarget(0))
        while (totals := await loader.next_totals()).in_flight:
            pass
    finally:
        await loader.stop()
    return rows, totals, settled(server, before, len(rows))
